"""A Delta table in the hands of a Python program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal

from lockgate.errors import ArgumentError
from lockgate.storage.local import LocalStorage
from lockgate.tables.reading import files_table, read_arrow
from lockgate.txlog.reading_features import BOTH
from lockgate.txlog.schema_json import arrow_schema, columns_json, type_text

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.compute as pc

    from lockgate.merging.result import MergeResult, WriteResult
    from lockgate.tables.analyzing import AnalyzeResult
    from lockgate.tables.compacting import CompactResult
    from lockgate.tables.diffing import TableDiff
    from lockgate.tables.restoring import RestoreResult
    from lockgate.tables.vacuum import VacuumResult
    from lockgate.tables.writable import Writable
    from lockgate.txlog.pruning import PruneResult
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
        return arrow_schema(self._snapshot().metadata.schema_string)

    @property
    def partition_columns(self) -> tuple[str, ...]:
        return tuple(self._snapshot().metadata.partition_columns)

    @property
    def properties(self) -> dict[str, str]:
        return dict(self._snapshot().metadata.configuration)

    def snapshot(self) -> Snapshot:
        """Schema, properties and files of the version that is read. Refused where its files are not to be taken as they
        are: rows of them may be deleted, or columns have other names."""
        return self._log.snapshot(self.name, version=self._pinned)

    def _snapshot(self) -> Snapshot:
        """The same, for what keeps deleted rows and mapped columns right."""
        return self._log.snapshot(self.name, version=self._pinned, understood=BOTH)

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
        return read_arrow(self._snapshot(), columns, filter)

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
        found = self._log.snapshot(self.name, version=version, timestamp=timestamp, understood=BOTH)
        return Table(self.name, self._location, self._log, pinned=found.version, storage=self._storage)

    def restore(self, version: int | None = None, timestamp: datetime | str | None = None) -> RestoreResult:
        """Make a new version with the rows, the schema and the properties that the table had then."""
        from lockgate.tables.restoring import restore_table

        if (version is None) == (timestamp is None):
            raise ArgumentError("give a version or a timestamp, one of them", in_place="nothing was written")
        if isinstance(timestamp, str):
            timestamp = _moment(timestamp)
        return restore_table(self._writable(), version, timestamp)

    def vacuum(
        self, retention_hours: float | None = None, *, dry_run: bool = False, check_retention: bool = True
    ) -> VacuumResult:
        """Remove data files that no version of the retention needs: seven days, or what the table's property
        delta.deletedFileRetentionDuration says. `dry_run` only lists them."""
        from lockgate.tables.vacuum import vacuum_table

        return vacuum_table(
            self._writable(), retention_hours=retention_hours, dry_run=dry_run, check_retention=check_retention
        )

    def compact(
        self,
        *,
        target_size: int = 128 * 2**20,
        sort_by: str | Sequence[str] = (),
        zorder: str | Sequence[str] = (),
        **options: Any,
    ) -> CompactResult:
        """Write small files together, up to `target_size` bytes each. With `sort_by` or `zorder` all files are written
        again, their rows in that order. No row changes. Options: compression, row_group_size."""
        from lockgate.tables.compacting import compact_table

        return compact_table(self._writable(), target_size=target_size, sort_by=sort_by, zorder=zorder, **options)

    def analyze(self) -> AnalyzeResult:
        """Take the statistics of all files again, and put into the log those that differ."""
        from lockgate.tables.analyzing import analyze_table

        return analyze_table(self._writable())

    def diff(self, old: int, new: int, key_columns: str | Sequence[str]) -> TableDiff:
        """The rows that were added, removed and changed between two versions, told apart by key. Only files that
        differ are read."""
        from lockgate.tables.diffing import diff_table

        return diff_table(self._log, self.name, old, new, key_columns)

    def changes(
        self, from_version: int, to_version: int | None = None, key_columns: str | Sequence[str] | None = None
    ) -> pa.Table:
        """The rows that each of these versions inserted, updated and deleted, as Delta's change data has them:
        `_change_type`, `_commit_version`, `_commit_timestamp`. Updates are told by the key, where one is given."""
        from lockgate.tables.changes import table_changes

        return table_changes(self._log, self.name, from_version, to_version, key_columns)

    def add_constraint(self, name: str, condition: str) -> int:
        """From the returned version on, every write must keep the condition: one in Spark's SQL that is true of every
        row. Rows that are there are checked first."""
        from lockgate.tables.constraints import add_constraint

        return add_constraint(self._writable(), name, condition)

    def drop_constraint(self, name: str) -> int:
        from lockgate.tables.constraints import drop_constraint

        return drop_constraint(self._writable(), name)

    def add_column(self, name: str, kind: pa.DataType) -> int:
        """Add a column, which is NULL in every row; returns the version that has it."""
        from lockgate.tables.evolving import add_column

        return add_column(self._writable(), name, kind)

    def widen_column(self, name: str, kind: pa.DataType) -> int:
        """Give a column a wider type, where no file holds it yet; else it is refused, as Delta has it."""
        from lockgate.tables.evolving import widen_column

        return widen_column(self._writable(), name, kind)

    def rename_column(self, old: str, new: str) -> int:
        """Needs column mapping, without which it is refused."""
        from lockgate.tables.evolving import rename_column

        return rename_column(self._writable(), old, new)

    def drop_column(self, name: str) -> int:
        """Needs column mapping, without which it is refused."""
        from lockgate.tables.evolving import drop_column

        return drop_column(self._writable(), name)

    def set_properties(self, properties: Mapping[str, str | None]) -> int:
        """Set properties; None removes one. Returns the version that has them."""
        from lockgate.tables.evolving import set_properties

        return set_properties(self._writable(), properties)

    def prune(
        self,
        *,
        keep_versions: int | None = None,
        older_than: datetime | str | None = None,
        published_too: bool = False,
    ) -> PruneResult:
        """Forget old versions: all but the newest `keep_versions`, or those that were over before `older_than`. Data
        files stay until `vacuum`."""
        from lockgate.txlog.pruning import prune

        self._writable()
        at = _moment(older_than) if isinstance(older_than, str) else older_than
        if at is not None and at.tzinfo is None:
            at = at.replace(tzinfo=UTC)
        return prune(
            self._log.store,
            self.name,
            keep_versions=keep_versions,
            older_than=None if at is None else int(at.timestamp() * 1000),
            published_too=published_too,
        )

    def history(self) -> list[HistoryRecord]:
        """The versions, newest first."""
        return list(self._log.history(self.name))

    def files(self) -> pa.Table:
        """The data files: path, rows, size, partition_values, modification_time, stats."""
        return files_table(self._snapshot())

    def summary(self) -> dict[str, Any]:
        """What there is to know of the version that is read, without its rows."""
        snapshot = self._snapshot()
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
