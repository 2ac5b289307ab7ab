"""A Delta table in the hands of a Python program."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal

from lockgate.errors import ArgumentError
from lockgate.storage.local import LocalStorage
from lockgate.tables.reading import files_table, read_arrow
from lockgate.txlog.schema_json import arrow_schema, columns_json, type_text

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.compute as pc

    from lockgate.merging.result import MergeResult, WriteResult
    from lockgate.tables.writable import Writable
    from lockgate.txlog.records import HistoryRecord, Snapshot
    from lockgate.txlog.writer import TxnLogWriter


class Table:
    """A table as it is now, or, from `at`, as it was. What is read comes from one snapshot each time.

    >>> import lockgate, pyarrow as pa, tempfile
    >>> address = f"sqlite:///{tempfile.mkdtemp()}/log.db"
    >>> schema = pa.schema({"id": pa.int64(), "x": pa.string()})
    >>> orders = lockgate.create_table("orders", schema, location=tempfile.mkdtemp(), log=address)
    >>> orders.append([{"id": 1, "x": "a"}]).version
    1
    >>> orders.merge([{"id": 1, "x": "b"}, {"id": 2, "x": "c"}], strategy="upsert", key_columns="id").updated
    1
    >>> orders.at(version=1).to_arrow().to_pylist()
    [{'id': 1, 'x': 'a'}]
    """

    def __init__(
        self,
        name: str,
        location: Path,
        txn_log: TxnLogWriter,
        *,
        pinned: int | None = None,
        storage: LocalStorage | None = None,
        owned: ExitStack | None = None,
    ) -> None:
        self.name = name
        self._location = location
        self._log = txn_log
        self._pinned = pinned
        self._storage = storage or LocalStorage()
        self._owned = owned.pop_all() if owned is not None else ExitStack()  # closed with the table

    @property
    def location(self) -> str:
        return str(self._location)

    @property
    def version(self) -> int:
        """The version that is read: the newest, unless the table is one from `at`."""
        return self._pinned if self._pinned is not None else self._log.current_version(self.name)

    @property
    def schema(self) -> pa.Schema:
        return arrow_schema(self.snapshot().metadata.schema_string)

    @property
    def partition_columns(self) -> tuple[str, ...]:
        return tuple(self.snapshot().metadata.partition_columns)

    @property
    def properties(self) -> dict[str, str]:
        return dict(self.snapshot().metadata.configuration)

    def snapshot(self) -> Snapshot:
        """Schema, properties and files of the version that is read."""
        return self._log.snapshot(self.name, version=self._pinned)

    def append(
        self,
        source: Any,
        *,
        schema: Literal["strict", "evolve"] = "strict",
        **options: Any,
    ) -> WriteResult:
        """Add the rows. Never clashes with another append. Options: compression, max_rows_per_file, row_group_size."""
        from lockgate.tables.writing import write_table

        return write_table(self._writable(), source, mode="append", schema=schema, **options)

    def overwrite(
        self,
        source: Any,
        *,
        schema: Literal["strict", "evolve"] = "strict",
        partition_by: str | Sequence[str] | None = None,
        **options: Any,
    ) -> WriteResult:
        """Replace all rows. With schema="evolve" the table takes the source's columns and types."""
        from lockgate.tables.writing import write_table

        return write_table(
            self._writable(), source, mode="overwrite", schema=schema, partition_by=partition_by, **options
        )

    def merge(
        self,
        source: Any,
        *,
        strategy: str,
        key_columns: str | Sequence[str],
        engine: str = "auto",
        **options: Any,
    ) -> MergeResult:
        """Merge rows by key, as `lockgate.merge` does. One that clashes with another writer is planned again."""
        from lockgate.tables.merging import merge_table

        return merge_table(
            self._writable(), source, strategy=strategy, key_columns=key_columns, engine=engine, **options
        )

    def to_arrow(self, columns: Sequence[str] | None = None, filter: pc.Expression | None = None) -> pa.Table:
        """The rows as Arrow. Files that the filter rules out are not opened."""
        return read_arrow(self.snapshot(), columns, filter)

    def to_spark(self, spark: Any) -> Any:
        """The rows as a DataFrame of that session, classic or over Connect. Spark reads the files itself."""
        from lockgate.engines.spark_snapshot import snapshot_frame

        return snapshot_frame(spark, self.snapshot())

    def at(self, version: int | None = None, timestamp: datetime | str | None = None) -> Table:
        """The table as it was at a version, or at a moment: the newest version that is not younger."""
        if (version is None) == (timestamp is None):
            raise ArgumentError("give a version or a timestamp, one of them", in_place="nothing was read")
        if isinstance(timestamp, str):
            timestamp = _moment(timestamp)
        found = self._log.snapshot(self.name, version=version, timestamp=timestamp)
        return Table(self.name, self._location, self._log, pinned=found.version, storage=self._storage)

    def history(self) -> list[HistoryRecord]:
        """The versions, newest first."""
        return list(self._log.history(self.name))

    def files(self) -> pa.Table:
        """The data files: path, rows, size, partition_values, modification_time, stats."""
        return files_table(self.snapshot())

    def summary(self) -> dict[str, Any]:
        """What there is to know of the version that is read, without its rows."""
        snapshot = self.snapshot()
        record = self._log.table(self.name)
        files = files_table(snapshot)
        rows = files.column("rows")
        return {
            "table": self.name,
            "version": snapshot.version,
            "published": record.published_version if record.publish else None,
            "location": self.location,
            "files": files.num_rows,
            "rows": sum(rows.to_pylist()) if not rows.null_count else None,
            "bytes": sum(files.column("size").to_pylist()),
            "partition_by": list(snapshot.metadata.partition_columns),
            "properties": dict(snapshot.metadata.configuration),
            "columns": [
                {"name": field["name"], "type": type_text(field["type"]), "nullable": field.get("nullable", True)}
                for field in columns_json(snapshot.metadata.schema_string).values()
            ],
        }

    def close(self) -> None:
        self._owned.close()

    def __enter__(self) -> Table:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Table({self.name!r}, version={self.version}, location={self.location!r})"

    def _writable(self) -> Writable:
        from lockgate.tables.writable import Writable

        if self._pinned is not None:
            raise ArgumentError(
                f"{self.name} at version {self._pinned} is the past, which cannot be written to",
                in_place="nothing was written",
                hint=f"write to the table itself: open_table({self.name!r})",
            )
        return Writable(self.name, self._location, self._log, self._storage)


def _moment(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise ArgumentError(
            f"{text!r} is not a moment", in_place="nothing was read", hint="write it like 2026-01-31T10:00:00Z"
        ) from None
