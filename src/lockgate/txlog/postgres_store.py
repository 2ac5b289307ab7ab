"""The log in PostgreSQL: for many writers on many machines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

import psycopg

from lockgate.config import redact_address
from lockgate.txlog import statements
from lockgate.txlog.migrations import require_current, require_known, scripts
from lockgate.txlog.postgres_connections import Connection, Connections, Lent
from lockgate.txlog.postgres_errors import UNIQUE_VIOLATION, explained, is_connection_lost, translated
from lockgate.txlog.postgres_files import ArrowReader, copy_adds, few_files_at
from lockgate.txlog.postgres_statements import (
    END_FILES,
    INSERT_ADDS,
    INSERT_DOMAINS,
    INSERT_METADATA,
    INSERT_PROTOCOLS,
    INSERT_REMOVES,
    INSERT_TXNS,
    INSERT_VERSIONS,
)
from lockgate.txlog.store import Changes, CommitUncertain, DuplicateFile, Locked, Row, TableRow

if TYPE_CHECKING:
    import pyarrow as pa

    from lockgate.txlog.appending import Append

_NOTHING = "nothing was committed"
_NOTHING_READ = "nothing was read"
_MIGRATING = 7_301_949_221_460_114_247  # of the advisory lock under which the schema is changed

# A rebase sees what was committed while it waited, so each statement needs its own snapshot. A commit survives a
# power cut also where the server's default is that it need not.
_BEGIN = "BEGIN ISOLATION LEVEL READ COMMITTED"
_SETTINGS = (
    "SELECT set_config('lock_timeout', %s, true), CASE WHEN current_setting('synchronous_commit') = 'off'"
    " THEN set_config('synchronous_commit', 'on', true) END"
)
_LOCK = statements.TABLE_BY_NAME.replace("name = ?", "name = ANY(%s)") + " ORDER BY table_id FOR UPDATE"
_NOW = "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint"  # now() would be the time of BEGIN
_APPEND = "SELECT dl_append(%s, %s, %s, %s, %s, %s, %s)"
_DONE = statements.DONE.replace("txn_id = ?", "txn_id = ANY(%s)")


@cache
def _spelled(statement: str) -> str:
    return statement.replace("?", "%s")


class PostgresStore:
    appends = True

    def __init__(self, url: str, *, timeout: float, pool_size: int) -> None:
        self.address = redact_address(url)
        self._timeout = timeout
        self._connections = Connections(url, self.address, size=pool_size, timeout=timeout)
        self._arrow = ArrowReader(url, self.address)
        self._large: set[int] = set()  # tables with too many files to be read as texts

    def open(self, *, create: bool) -> None:
        found, known = self.schema_version(), len(scripts("postgres"))
        if create and found == 0:
            self.migrate()
        else:
            require_current(found, known, self.address)

    def schema_version(self) -> int:
        if self.rows("SELECT to_regclass('dl_schema')")[0][0] is None:
            return 0
        return int(self.rows("SELECT max(version) FROM dl_schema")[0][0] or 0)

    def migrate(self) -> int:
        known = scripts("postgres")
        require_known(self.schema_version(), len(known), self.address)
        with (
            self._connections.lent("the schema is as it was") as lent,
            explained(self.address, "the schema is as it was"),
        ):
            run = lent.connection
            run.execute(_BEGIN)
            run.execute("SELECT pg_advisory_xact_lock(%s)", (_MIGRATING,))
            run.execute("CREATE TABLE IF NOT EXISTS dl_schema (version integer PRIMARY KEY)")
            done = run.execute("SELECT coalesce(max(version), 0) FROM dl_schema").fetchone()
            assert done is not None
            for number, script in enumerate(known[done[0] :], done[0] + 1):
                for statement in script:
                    run.execute(statement.encode())
                run.execute("INSERT INTO dl_schema VALUES (%s)", (number,))
            run.execute("COMMIT")
        return len(known)

    @contextmanager
    def transaction(self) -> Iterator[PostgresTransaction]:
        with self._connections.lent(_NOTHING) as lent:
            yield PostgresTransaction(lent, self.address, self._timeout)

    def append(self, given: Append) -> int | None:
        with self._connections.lent(_NOTHING) as lent:
            lent.renew_if_gone()
            try:
                found = lent.connection.execute(
                    _APPEND,
                    (
                        f"{int(self._timeout * 1000)}ms", given.table, given.expected_version, given.metadata_version,
                        given.protocol_version, given.commits, given.files,
                    ),
                    prepare=True,
                ).fetchone()  # fmt: skip
            except psycopg.Error as error:
                if is_connection_lost(error):
                    lent.connection.close()
                    raise CommitUncertain(by_itself=True) from error
                if error.sqlstate == UNIQUE_VIOLATION:
                    raise DuplicateFile from error
                raise translated(error, self.address, _NOTHING) from error
            assert found is not None
            return None if found[0] is None else int(found[0])

    def rows(self, statement: str, *values: Any) -> list[Row]:
        with self._connections.lent(_NOTHING_READ) as lent, explained(self.address, _NOTHING_READ):
            try:
                return lent.connection.execute(_spelled(statement), values).fetchall()
            except psycopg.Error as error:
                if not (lent.was_idle and is_connection_lost(error)):
                    raise
                lent.renew()
                return lent.connection.execute(_spelled(statement), values).fetchall()

    def change(self, statement: str, *values: Any) -> list[Row]:
        # One statement that may be run twice: the second time it finds its work done.
        return self.rows(statement, *values)

    def files_at(self, table_id: int, version: int, *, extra: bool = False) -> pa.Table:
        if table_id not in self._large:
            few = few_files_at(self.rows, table_id, version, extra=extra)
            if few is not None:
                return few
            self._large.add(table_id)
        return self._arrow.files_at(table_id, version, extra=extra)

    def close(self) -> None:
        self._connections.close()
        self._arrow.close()


class PostgresTransaction:
    """Two round trips: one locks and tells what is there, one writes and commits."""

    def __init__(self, lent: Lent, address: str, timeout: float) -> None:
        self._lent = lent
        self._address = address
        self._timeout = timeout
        self._changes = Changes()

    @property
    def _connection(self) -> Connection:
        return self._lent.connection

    def lock(self, names: Sequence[str], txn_ids: Sequence[str]) -> Locked:
        with explained(self._address, _NOTHING):
            try:
                return self._lock(names, txn_ids)
            except psycopg.Error as error:
                self._connection.close()  # as in `commit`
                if not (self._lent.was_idle and is_connection_lost(error)):
                    raise
                self._lent.renew()
                return self._lock(names, txn_ids)

    def _lock(self, names: Sequence[str], txn_ids: Sequence[str]) -> Locked:
        run = self._connection
        with run.pipeline():
            run.execute(_BEGIN)
            run.execute(_SETTINGS, (f"{int(self._timeout * 1000)}ms",))
            tables = run.execute(_LOCK, (list(names),))
            now = run.execute(_NOW)
            done = run.execute(_DONE, (list(txn_ids),)) if txn_ids else None
        found = now.fetchone()
        assert found is not None
        versions: dict[str, dict[int, int]] = {}
        for txn_id, table_id, version in done.fetchall() if done else ():
            versions.setdefault(txn_id, {})[table_id] = version
        return Locked({row[1]: TableRow(*row) for row in tables.fetchall()}, found[0], versions)

    def rows(self, statement: str, *values: Any) -> list[Row]:
        with explained(self._address, _NOTHING):
            return self._connection.execute(_spelled(statement), values).fetchall()

    def run(self, statement: str, *values: Any) -> None:
        with explained(self._address, _NOTHING):
            self._connection.execute(_spelled(statement), values)

    def load(self, table: str, columns: Sequence[str], rows: Iterable[Row]) -> None:
        """Tables and columns are the schema's own names."""
        into = f"COPY {table} ({', '.join(columns)}) FROM STDIN"
        with explained(self._address, _NOTHING), self._connection.cursor().copy(into) as copy:
            for row in rows:
                copy.write_row(row)

    def live(self, table_id: int, hashes: Sequence[int]) -> dict[int, str]:
        return dict(self.rows(statements.LIVE_POSTGRES, table_id, list(hashes)))

    def write(self, changes: Changes) -> None:
        """Large numbers of files go to the server now, the rest with the COMMIT."""
        self._changes = changes
        if changes.is_large:
            try:
                self._run(END_FILES, changes.removed)
                copy_adds(self._connection, changes)
            except psycopg.Error as error:
                raise self._failure(error) from error

    def commit(self) -> None:
        changes = self._changes
        run = self._connection
        try:
            with run.pipeline():
                if not changes.is_large:
                    self._run(END_FILES, changes.removed)
                    self._run(INSERT_ADDS, changes.adds)
                self._run(INSERT_VERSIONS, changes.versions)
                self._run(INSERT_REMOVES, changes.removes)
                self._run(INSERT_METADATA, changes.metadata)
                self._run(INSERT_PROTOCOLS, changes.protocols)
                self._run(INSERT_TXNS, changes.txns)
                self._run(INSERT_DOMAINS, changes.domains)
                for note in changes.notes:
                    run.execute(_spelled(statements.SET_NOTE), note)
                for row in changes.tables.values():
                    run.execute(_spelled(statements.UPDATE_TABLE), row.as_update())
                run.execute("COMMIT")
        except psycopg.Error as error:
            # The client takes statements for prepared that the server skipped when the pipeline failed: not for reuse.
            self._connection.close()
            if is_connection_lost(error):
                raise CommitUncertain from error
            raise self._failure(error) from error

    def _run(self, statement: str, rows: Sequence[Row]) -> None:
        """One statement for all rows, which go as one array a column."""
        if rows:
            columns = [list(column) for column in zip(*rows, strict=True)]
            self._connection.execute(statement, columns)

    def _failure(self, error: psycopg.Error) -> Exception:
        if error.sqlstate == UNIQUE_VIOLATION and self._changes.has_adds:
            return DuplicateFile()
        return translated(error, self._address, _NOTHING)
