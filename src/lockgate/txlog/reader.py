"""Reading the log: tables, snapshots of any version, history, changes.

`TxnLog` reads; `writer.TxnLogWriter` is a `TxnLog` that also writes. Both are opened by `open(url)`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from lockgate.errors import TableNotFound
from lockgate.txlog import statements
from lockgate.txlog.actions import DomainMetadata, Metadata, Protocol, Txn, from_json
from lockgate.txlog.addresses import store_at
from lockgate.txlog.commit_lines import commit_info, lines_of
from lockgate.txlog.committer import no_such_table, state_of
from lockgate.txlog.files import within_partitions
from lockgate.txlog.reading_features import require_actions_understood, require_understood
from lockgate.txlog.records import HistoryRecord, Snapshot, TableRecord, VersionChanges
from lockgate.txlog.retention import oldest_version
from lockgate.txlog.store import Row, Store, TableRow


class TxnLog:
    """The tables of one log, as they are and as they were."""

    def __init__(self, store: Store, *, root: Path | None = None) -> None:
        self.store = store
        self.root = root or Path.cwd()

    @classmethod
    def open(cls, url: str, *, pool_size: int = 10, timeout: float = 30.0, root: Path | None = None) -> Self:
        """Open a log that is there. A relative `sqlite:///file` and relative locations are relative to `root`, else to
        the current folder."""
        store = store_at(url, root=root, pool_size=pool_size, timeout=timeout)
        store.open(create=False)
        return cls(store, root=root)

    def close(self) -> None:
        self.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def tables(self) -> list[TableRecord]:
        """All tables, by name."""
        return [_record(TableRow(*row)) for row in self.store.rows(statements.TABLES)]

    def table(self, name: str) -> TableRecord:
        """One table; `TableNotFound` where the log has none of that name."""
        return _record(self._row(name))

    def has_table(self, name: str) -> bool:
        return bool(self.store.rows(statements.TABLE_BY_NAME, name))

    def current_version(self, table: str) -> int:
        """The newest version; -1 before the first commit."""
        return self._row(table).current_version

    def snapshot(
        self,
        table: str,
        *,
        version: int | None = None,
        timestamp: datetime | int | None = None,
        prune: Mapping[str, Collection[str | None]] | None = None,
        understood: Collection[str] = (),
    ) -> Snapshot:
        """The table at a version, or at a time (a datetime, or milliseconds since 1970): the newest version that is
        not younger. `prune` names partition columns with the values, as the log spells them, that files may have.
        `understood` are the features of files that the caller keeps right; a version with another is refused."""
        row = self._row(table)
        version = self._version_of(row, version, timestamp)
        found = self.store.rows(statements.VERSION, row.id, version)
        if not found:
            raise self._no_such_version(row, version)
        state = state_of(self.store.rows, row, version)
        assert state.protocol is not None
        assert state.metadata is not None
        files = self.store.files_at(row.id, version)
        if not self.store.rows(statements.VERSION, row.id, version):
            raise self._no_such_version(row, version)  # pruned while it was read
        require_understood(row.name, version, state.metadata, files, understood)
        return Snapshot(
            table=row.name,
            location=row.location,
            version=version,
            timestamp=found[0][1],
            protocol=state.protocol,
            metadata=state.metadata,
            transactions=self._transactions(row.id, version),
            domains=self._domains(row.id, version),
            files=within_partitions(files, prune) if prune else files,
        )

    def version_at(self, table: str, timestamp: datetime | int) -> int:
        """The newest version that is not younger than a time."""
        return self._version_of(self._row(table), None, timestamp)

    def metadata(self, table: str, *, version: int | None = None) -> tuple[Protocol, Metadata]:
        """Protocol and metadata alone, without the files."""
        row = self._row(table)
        version = self._version_of(row, version, None)
        state = state_of(self.store.rows, row, version)
        if state.protocol is None or state.metadata is None:
            raise self._no_such_version(row, version)
        return state.protocol, state.metadata

    def history(self, table: str, *, limit: int | None = None) -> list[HistoryRecord]:
        """The versions, newest first."""
        row = self._row(table)
        first = 0 if limit is None else max(0, row.current_version - limit + 1)
        versions = self.store.rows(statements.VERSIONS, row.id, first, row.current_version)
        return [_history(each) for each in reversed(versions)]

    def changes(
        self, table: str, first: int, last: int | None = None, *, understood: Collection[str] = ()
    ) -> Iterator[VersionChanges]:
        """The actions of the versions from `first` to `last` (else the newest), oldest first. `understood` are the
        features of files that the caller keeps right; a version with another is refused."""
        row = self._row(table)
        for version, lines in lines_of(
            self.store.rows, row.id, first, row.current_version if last is None else min(last, row.current_version)
        ):
            actions = [from_json(line) for line in lines]
            require_actions_understood(table, version[0], actions, understood)
            yield VersionChanges(version[0], version[1], version[2], actions)

    def notes(self, prefix: str) -> dict[str, tuple[int, str]]:
        """The notes whose names begin so: the version and text of each, by the rest of its name."""
        # The last character of Unicode ends what begins with the prefix, in the order of code points and of bytes.
        found = self.store.rows(statements.NOTES, prefix, prefix + "\U0010ffff")
        return {name.removeprefix(prefix): (version, note) for name, version, note in found if name.startswith(prefix)}

    def find_transaction(self, txn_id: str) -> dict[str, int]:
        """Which versions of which tables a transaction became; empty where it did not go through."""
        names = {row[0]: row[1] for row in self.store.rows(statements.TABLES)}
        return {names[row[1]]: row[2] for row in self.store.rows(statements.DONE, txn_id)}

    def _row(self, name: str) -> TableRow:
        found = self.store.rows(statements.TABLE_BY_NAME, name)
        if not found:
            raise no_such_table(name)
        return TableRow(*found[0])

    def _version_of(self, row: TableRow, version: int | None, timestamp: datetime | int | None) -> int:
        if timestamp is not None:
            if version is not None:
                raise TableNotFound(f"{row.name}: give a version or a timestamp, not both", in_place="nothing was read")
            wanted = _milliseconds(timestamp)
            found = self.store.rows(statements.VERSION_AT_TIME, row.id, wanted)[0][0]
            if found is None:
                raise TableNotFound(
                    f"{row.name} has no version as old as {_shown(wanted)}",
                    in_place="nothing was read",
                    hint="`lockgate table history` lists the versions",
                )
            return int(found)
        wanted = row.current_version if version is None else version
        if not 0 <= wanted <= row.current_version:
            raise self._no_such_version(row, wanted)
        return wanted

    def _no_such_version(self, row: TableRow, version: int) -> TableNotFound:
        if row.current_version < 0:
            return TableNotFound(
                f"{row.name} has no version yet", in_place="nothing was read", hint="commit to it first"
            )
        oldest = oldest_version(self.store.rows, row.id)
        return TableNotFound(
            f"{row.name} has no version {version}; its newest is {row.current_version}"
            + (f", its oldest {oldest}" if oldest else ""),
            in_place="nothing was read",
            hint="`lockgate table history` lists the versions",
        )

    def _transactions(self, table_id: int, version: int) -> dict[str, Txn]:
        found: dict[str, Txn] = {}
        for _, line in self.store.rows(statements.TXNS_AT, table_id, version):
            action = from_json(line)
            assert isinstance(action, Txn)
            found[action.app_id] = action
        return found

    def _domains(self, table_id: int, version: int) -> dict[str, DomainMetadata]:
        found: dict[str, DomainMetadata] = {}
        for _, line in self.store.rows(statements.DOMAINS_AT, table_id, version):
            action = from_json(line)
            assert isinstance(action, DomainMetadata)
            found[action.domain] = action
        return {name: each for name, each in found.items() if not each.removed}


def _record(row: TableRow) -> TableRecord:
    return TableRecord(row.name, row.id, row.location, row.current_version, bool(row.publish), row.published_version)


def _history(row: Row) -> HistoryRecord:
    info: dict[str, Any] = commit_info(row[4])
    return HistoryRecord(
        version=row[0],
        timestamp=row[1],
        operation=info.get("operation"),
        operation_parameters=info.get("operationParameters") or {},
        metrics=info.get("operationMetrics") or {},
        txn_id=row[2],
        engine_info=info.get("engineInfo"),
        read_version=info.get("readVersion"),
        blind_append=bool(row[3]),
    )


def _milliseconds(time: datetime | int) -> int:
    if isinstance(time, int):
        return time
    return int((time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp() * 1000)


def _shown(milliseconds: int) -> str:
    return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec="milliseconds")
