"""Writing the log: `TxnLogWriter` commits to the tables of one log, and is the `TxnLog` that reads them."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from lockgate.errors import TableExists, ValidationError
from lockgate.txlog import statements
from lockgate.txlog.actions import Action, Add, Metadata, Remove
from lockgate.txlog.addresses import store_at
from lockgate.txlog.commits import Note, Operation, TableCommit
from lockgate.txlog.committer import Request, state_of
from lockgate.txlog.grouping import Group
from lockgate.txlog.locations import require_free, spelled
from lockgate.txlog.metrics import METRICS
from lockgate.txlog.outcome import settle
from lockgate.txlog.prepared import Prepared, prepare
from lockgate.txlog.publisher import Publisher
from lockgate.txlog.reader import TxnLog
from lockgate.txlog.records import TableRecord
from lockgate.txlog.store import MANY, Store, TableRow
from lockgate.txlog.validation import TableState, check_name, read_actions, refused, validate

if TYPE_CHECKING:
    import pyarrow as pa


class TxnLogWriter(TxnLog):
    """Commits to the tables of one log. May be used by many threads at once; their commits are grouped.

    A commit is acknowledged when the database has it. A thread then publishes it to the table's `_delta_log`, at the
    latest when the log is closed; `publish()` does it at once.
    """

    def __init__(
        self,
        store: Store,
        *,
        root: Path | None = None,
        publish: bool = True,
        group: bool = True,
        ids: Callable[[], str] = lambda: str(uuid.uuid4()),
    ) -> None:
        super().__init__(store, root=root)
        self.publisher = Publisher(store, background=publish)
        self._ids = ids
        self._group = group
        self._mutex = threading.Lock()
        self._groups: dict[str, Group] = {}
        self._known: dict[str, tuple[TableRow, TableState]] = {}

    @classmethod
    def open(
        cls,
        url: str,
        *,
        pool_size: int = 10,
        timeout: float = 30.0,
        publish: bool = True,
        root: Path | None = None,
        group: bool = True,
    ) -> Self:
        """Open a log, which is made where there is none. `timeout` is for each wait: for a connection, for a lock.
        `publish=False` leaves publishing to `publish()` and to others. `group=False`: a transaction for every commit.
        """
        store = store_at(url, root=root, pool_size=pool_size, timeout=timeout)
        try:
            store.open(create=True)
        except BaseException:
            store.close()
            raise
        return cls(store, root=root, publish=publish, group=group)

    def close(self) -> None:
        """Publish what is pending, and let go of the database."""
        try:
            self.publisher.close()
        finally:
            super().close()

    def create_table(self, name: str, location: str, *, publish: bool = True) -> TableRecord:
        """Enter a table without a version. Its first commit has to bring protocol and metaData. `location` is a folder
        or an `s3://` address that belongs to no other table."""
        check_name(name, "the name of a table")
        place = spelled(location, self.root)
        require_free(self.tables(), name, place)
        self.publisher.require_empty(place)
        made = self.store.change(statements.CREATE_TABLE, name, place, int(time.time() * 1000), publish)
        if not made:
            require_free(self.tables(), name, place)  # somebody else was faster
            raise TableExists(f"the table {name} or its location {place} was taken meanwhile")
        return self.table(name)

    def commit(
        self,
        table: str,
        expected_version: int | None,
        actions: Iterable[Action | Mapping[str, Any]] = (),
        *,
        txn_id: str | None = None,
        operation: Operation | str | None = None,
        read_version: int | None = None,
        read_files: Collection[str] | None = None,
        adds: pa.Table | None = None,
        read_partitions: Sequence[Mapping[str, str | None]] | None = None,
        read_table: bool = False,
    ) -> int:
        """Commit to one table; returns the new version. `TableCommit` says what the parameters mean. A retry with the
        same `txn_id` returns the version that it became, and commits nothing."""
        one = TableCommit(
            table, expected_version, tuple(actions), adds, operation, read_version, read_files, read_partitions,
            read_table,
        )  # fmt: skip
        return self.commit_many([one], txn_id=txn_id)[table]

    def commit_many(
        self, commits: Sequence[TableCommit], *, txn_id: str | None = None, notes: Sequence[Note] = ()
    ) -> dict[str, int]:
        """Commit to several tables of this log in one transaction: all or none, with the notes kept beside them.
        Returns the version of each."""
        names = [each.table for each in commits]
        if not commits or len(set(names)) < len(names):
            raise refused("a transaction has one commit for each of its tables, and at least one")
        if txn_id is not None:
            check_name(txn_id, "txn_id")
        started = time.perf_counter()
        request = Request(txn_id or self._ids(), [self._prepared(each) for each in commits], notes)
        for name in names:
            self._require_ours(name)
        if self._group and request.can_be_grouped:
            self._group_of(names[0]).commit(request)
        else:
            settle(self.store, [request])
        METRICS.committed(request, time.perf_counter() - started)
        if request.error is not None:
            raise request.error
        self.publisher.wake(names)
        return {name: request.versions[name] for name in names}

    def publish(self, table: str | None = None) -> dict[str, int]:
        """Publish what is pending, of one table or of all; returns how many versions were published of each. Raises
        where it cannot."""
        rows = [self._row(table)] if table is not None else [TableRow(*r) for r in self.store.rows(statements.TABLES)]
        return {row.name: self.publisher.publish(row.name) for row in rows if row.publish}

    def _prepared(self, commit: TableCommit) -> Prepared:
        table, given = commit.adds, commit.actions
        if table is None and len(given) >= MANY:
            from lockgate.txlog.file_rows import split

            table, given = split(given)
        actions = read_actions(given)
        fresh = commit.table not in self._known
        row, state = self._state(commit.table, fresh=fresh)
        try:
            validate(actions, state, table=commit.table)
            files = _rows(table, actions, state, commit.table)
        except ValidationError:
            if fresh:
                raise
            row, state = self._state(commit.table, fresh=True)  # somebody else may have changed the schema
            validate(actions, state, table=commit.table)
            files = _rows(table, actions, state, commit.table)
        part = prepare(commit, actions, files)
        part.state_versions = row.metadata_version, row.protocol_version
        return part

    def _state(self, table: str, *, fresh: bool) -> tuple[TableRow, TableState]:
        if fresh:
            row = self._row(table)
            self._known[table] = row, state_of(self.store.rows, row, row.current_version)
        return self._known[table]

    def _require_ours(self, table: str) -> None:
        row = self._known[table][0]
        if row.publish:
            found = self.publisher.require_ours(row)
            row.published_version = max(row.published_version, found.published_version)

    def _group_of(self, table: str) -> Group:
        with self._mutex:
            if table not in self._groups:
                self._groups[table] = Group(lambda requests: settle(self.store, requests))
            return self._groups[table]


def _rows(table: pa.Table | None, actions: Sequence[Action], state: TableState, name: str) -> pa.Table | None:
    if table is None or not table.num_rows:
        return None
    from lockgate.txlog.file_rows import refuse_both, rows_of

    metadata = next((a for a in actions if isinstance(a, Metadata)), None) or state.metadata
    assert metadata is not None  # `validate` asks for it
    rows = rows_of(table, set(metadata.partition_columns), name)
    refuse_both(rows, [a for a in actions if isinstance(a, (Add, Remove))], name)
    return rows
