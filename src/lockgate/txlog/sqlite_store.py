"""The log in a SQLite file: for one machine, with nothing installed."""

from __future__ import annotations

import json
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lockgate.errors import DatabaseError, TimeoutError
from lockgate.storage.local import LocalStorage
from lockgate.txlog import statements
from lockgate.txlog.migrations import require_current, require_known, scripts
from lockgate.txlog.sqlite_errors import code_of, explained, is_busy
from lockgate.txlog.sqlite_files import files_at, insert_adds
from lockgate.txlog.store import Changes, CommitUncertain, DuplicateFile, Locked, Row, TableRow

if TYPE_CHECKING:
    import pyarrow as pa

    from lockgate.txlog.appending import Append

_PAUSES = (0.0005, 0.001, 0.002, 0.004)  # seconds between two tries to become the writer
_NOTHING = "nothing was committed"


class SqliteStore:
    """One connection writes; a reader has one of its own. WAL, so that readers never wait."""

    appends = False

    def __init__(self, path: Path, *, timeout: float, pool_size: int, clock: Callable[[], float] = time.time) -> None:
        self.path = path
        self.address = f"sqlite:///{path}"
        self._timeout = timeout
        self._clock = clock
        self._writing = threading.Lock()
        self._writer: sqlite3.Connection | None = None
        self._readers: list[sqlite3.Connection] = []
        self._free = threading.Semaphore(pool_size)
        self._closed = False

    def open(self, *, create: bool) -> None:
        if create:
            LocalStorage().make_folders(self.path.parent)
        elif not self.path.exists():
            require_current(0, len(scripts("sqlite")), self.address)
        found = self.schema_version()
        known = len(scripts("sqlite"))
        if create and found == 0:
            self.migrate()
        else:
            require_current(found, known, self.address)

    def schema_version(self) -> int:
        return int(self.rows("PRAGMA user_version")[0][0])

    def migrate(self) -> int:
        known = scripts("sqlite")
        require_known(self.schema_version(), len(known), self.address)
        with self._write() as connection, explained(self.address, "the schema is as it was"):
            done = connection.execute("PRAGMA user_version").fetchone()[0]
            for script in known[done:]:
                for statement in script:
                    connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {len(known)}")
            connection.execute("COMMIT")
        return len(known)

    @contextmanager
    def transaction(self) -> Iterator[SqliteTransaction]:
        with self._write() as connection:
            yield SqliteTransaction(connection, self)

    def append(self, given: Append) -> int | None:
        del given  # a statement costs no round trip
        return None

    def rows(self, statement: str, *values: Any) -> list[Row]:
        with self.reading() as connection:
            return connection.execute(statement, values).fetchall()

    def change(self, statement: str, *values: Any) -> list[Row]:
        with self._write() as connection, explained(self.address, _NOTHING):
            rows = connection.execute(statement, values).fetchall()
            connection.execute("COMMIT")
            return rows

    def files_at(self, table_id: int, version: int, *, extra: bool = False) -> pa.Table:
        with self.reading() as connection:
            return files_at(connection, table_id, version, extra=extra)

    def now(self) -> int:
        return int(self._clock() * 1000)

    def close(self) -> None:
        with self._writing:
            self._closed = True
            while self._readers:
                self._readers.pop().close()
            if self._writer is not None:
                self._writer.close()
                self._writer = None

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """A connection to read with."""
        with self._free:
            with explained(self.address, "nothing was read"):
                connection = self._readers.pop() if self._readers else self._connect()
                try:
                    yield connection
                except BaseException:
                    connection.close()
                    raise
            if self._closed:
                connection.close()
            else:
                self._readers.append(connection)

    @contextmanager
    def _write(self) -> Iterator[sqlite3.Connection]:
        """The writing connection inside a transaction that is rolled back unless it was committed."""
        if not self._writing.acquire(timeout=self._timeout):
            raise TimeoutError(
                f"another thread has written to the log {self.address} for {self._timeout:g} s",
                in_place=_NOTHING,
                hint="try again, or open the log with a longer timeout",
            )
        try:
            with explained(self.address, _NOTHING):
                if self._writer is None:
                    self._writer = self._connect()
                connection = self._writer
                self._begin(connection)
            try:
                yield connection
            finally:
                self._end(connection)
        finally:
            self._writing.release()

    def _connect(self) -> sqlite3.Connection:
        if self._closed:
            raise DatabaseError(f"the log {self.address} was closed", in_place=_NOTHING)
        connection = sqlite3.connect(
            self.path, timeout=self._timeout, isolation_level=None, check_same_thread=False, cached_statements=256
        )
        try:
            # FULL: what was committed survives a power cut, also in WAL mode.
            connection.execute("PRAGMA synchronous = FULL")
            if connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
                connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA temp_store = MEMORY")
            connection.execute("PRAGMA cache_size = -65536")
            connection.execute("PRAGMA wal_autocheckpoint = 8192")  # pages: 32 MB; each takes two more syncs
        except BaseException:
            connection.close()
            raise
        return connection

    def _begin(self, connection: sqlite3.Connection) -> None:
        """Become the one writer. SQLite's own waiting sleeps for up to 0.1 s; many short commits need better."""
        give_up = time.monotonic() + self._timeout
        connection.execute("PRAGMA busy_timeout = 0")
        tries = 0
        while True:
            try:
                connection.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError as error:
                if not is_busy(error) or time.monotonic() >= give_up:
                    raise
                time.sleep(_PAUSES[min(tries, len(_PAUSES) - 1)])
                tries += 1
            else:
                return

    def _end(self, connection: sqlite3.Connection) -> None:
        if not connection.in_transaction:
            return
        try:
            connection.execute("ROLLBACK")
        except sqlite3.Error:  # a connection that cannot roll back is of no more use; closing it rolls back
            connection.close()
            self._writer = None


class SqliteTransaction:
    """The file has one writer at a time, so beginning is locking."""

    def __init__(self, connection: sqlite3.Connection, store: SqliteStore) -> None:
        self._connection = connection
        self._store = store

    def lock(self, names: Sequence[str], txn_ids: Sequence[str]) -> Locked:
        tables = {}
        done: dict[str, dict[int, int]] = {}
        with explained(self._store.address, _NOTHING):
            for name in names:
                for row in self._connection.execute(statements.TABLE_BY_NAME, (name,)):
                    tables[name] = TableRow(*row)
            for txn_id, table_id, version in self._connection.execute(statements.DONE_SQLITE, (json.dumps(txn_ids),)):
                done.setdefault(txn_id, {})[table_id] = version
        return Locked(tables, self._store.now(), done)

    def rows(self, statement: str, *values: Any) -> list[Row]:
        with explained(self._store.address, _NOTHING):
            return self._connection.execute(statement, values).fetchall()

    def run(self, statement: str, *values: Any) -> None:
        with explained(self._store.address, _NOTHING):
            self._connection.execute(statement, values)

    def load(self, table: str, columns: Sequence[str], rows: Iterable[Row]) -> None:
        marks = ", ".join("?" * len(columns))
        with explained(self._store.address, _NOTHING):
            self._connection.executemany(f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})", rows)

    def live(self, table_id: int, hashes: Sequence[int]) -> dict[int, str]:
        return dict(self.rows(statements.LIVE_SQLITE, table_id, json.dumps(list(hashes))))

    def write(self, changes: Changes) -> None:
        run = self._connection
        try:
            run.executemany(statements.END_FILE, changes.removed)
            insert_adds(run, changes)
            for statement, rows in (
                (statements.INSERT_VERSION, changes.versions),
                (statements.INSERT_REMOVE, changes.removes),
                (statements.INSERT_METADATA, changes.metadata),
                (statements.INSERT_PROTOCOL, changes.protocols),
                (statements.INSERT_TXN, changes.txns),
                (statements.INSERT_DOMAIN, changes.domains),
                (statements.SET_NOTE, changes.notes),
            ):
                if rows:
                    run.executemany(statement, rows)
            for row in changes.tables.values():
                run.execute(statements.UPDATE_TABLE, row.as_update())
        except sqlite3.IntegrityError as error:
            if error.sqlite_errorcode == sqlite3.SQLITE_CONSTRAINT_UNIQUE and changes.has_adds:
                raise DuplicateFile from error
            with explained(self._store.address, _NOTHING):
                raise
        except sqlite3.Error:
            with explained(self._store.address, _NOTHING):
                raise

    def commit(self) -> None:
        try:
            self._connection.execute("COMMIT")
        except sqlite3.Error as error:
            if code_of(error) == sqlite3.SQLITE_IOERR:
                raise CommitUncertain from error  # it may have reached the disk
            with explained(self._store.address, _NOTHING):
                raise
