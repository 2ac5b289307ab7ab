"""One connection to a PostgreSQL server. Statements and the binary COPY go through one driver, so that they share a
transaction."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from lockgate.config import Connection, Profile
from lockgate.errors import ConfigError, RunError
from lockgate.postgres.address import address_problem, full_address, secrets, without
from lockgate.postgres.reach import hint_about

if TYPE_CHECKING:
    import pyarrow as pa

_FIELD = "PG_DIAG_"


class ServerError(Exception):
    """What the server, or the way to it, said. `sqlstate` is None where there is none: the connection failed."""

    def __init__(self, message: str, sqlstate: str | None, fields: dict[str, str], *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.sqlstate = sqlstate
        self.fields = fields
        self.hint = hint  # where more is known than the SQLSTATE tells

    @property
    def detail(self) -> str:
        return self.fields.get("MESSAGE_DETAIL", "")

    @property
    def lost(self) -> bool:
        """Whether the connection is gone, and with it every transaction that had not been told to commit."""
        return self.sqlstate is None or self.sqlstate[:2] == "08" or self.sqlstate in ("57P01", "57P02", "57P03")


class Session:
    """Each statement is a transaction of its own unless BEGIN was run."""

    def __init__(self, connection: Any, words: list[str], label: str) -> None:
        self._connection = connection
        self._cursor = connection.cursor()
        self._words = words
        self.label = label  # how messages call the server

    def rows(self, sql: str, *values: Any) -> list[dict[str, Any]]:
        """Run a query; its values are bound, never pasted."""
        with self._explained():
            self._cursor.execute(sql, values or None)
            names = [column[0] for column in self._cursor.description]
            return [dict(zip(names, row, strict=True)) for row in self._cursor.fetchall()]

    def run(self, sql: str) -> int:
        """Run a statement; returns how many rows it has written."""
        with self._explained():
            self._cursor.execute(sql)
            return max(int(self._cursor.rowcount), 0)

    def copy(self, table: str, schema: str | None, rows: pa.RecordBatchReader) -> int:
        """Stream rows into a table by binary COPY; no schema: a temporary table of this session."""
        with self._explained():
            count = self._cursor.adbc_ingest(
                table, rows, mode="append", temporary=schema is None, **({"db_schema_name": schema} if schema else {})
            )
            return int(count)

    def close(self) -> None:
        with suppress(Exception):  # what it had open the server rolls back, as the caller wants
            self._cursor.close()
        with suppress(Exception):
            self._connection.close()

    @contextmanager
    def _explained(self) -> Iterator[None]:
        from adbc_driver_manager import Error

        try:
            yield
        except Error as error:
            raise _server_error(error, self._words) from None  # the driver's own text repeats the statement


def version_of(opened: Session) -> int:
    return int(opened.rows("SELECT pg_catalog.current_setting('server_version_num')::int4 AS v")[0]["v"])


@contextmanager
def session(profile: Profile, name: str) -> Iterator[Session]:
    """A connection of the profile, opened; closed when the block ends, whatever it had not committed forgotten."""
    opened = _open(connection_of(profile, name))
    try:
        yield opened
    finally:
        opened.close()


def connection_of(profile: Profile, name: str) -> Connection:
    """The connection as the profile has it now: it may have changed since the run was planned."""
    connection = profile.connections.get(name)
    if connection is None:
        raise ConfigError(f"the profile {profile.name} has no connection {name!r}", hint="add it to lockgate.toml")
    if problem := address_problem(connection):
        raise ConfigError(f"the connection {name!r} {problem.message}", hint=problem.hint)
    return connection


def _open(connection: Connection) -> Session:
    try:
        from adbc_driver_manager import Error
        from adbc_driver_postgresql import dbapi
    except ImportError as error:
        raise RunError(
            "TYPE POSTGRES needs a driver that is not installed", hint="install lockgate[postgres]"
        ) from error
    words, address = secrets(connection), full_address(connection)
    try:
        opened = dbapi.connect(address, autocommit=True)
    except Error as error:
        found = _server_error(error, words)
        found.hint = hint_about(address) if found.sqlstate is None else None
        raise found from None  # the driver's own text may hold what must not be shown
    return Session(opened, words, connection.name)


def _server_error(error: Any, words: list[str]) -> ServerError:
    fields = {
        _text(name).removeprefix(_FIELD): without(words, _text(value))
        for name, value in getattr(error, "details", None) or ()
    }
    text = fields.get("MESSAGE_PRIMARY") or str(error).partition("\n\nQuery was:")[0].strip()
    if text.startswith(("IO: [libpq] Failed to execute query '", "Failed to execute query '")):
        text = text.rpartition("': ")[2]  # of the driver's own questions, which say nothing to a reader
    text = " ".join(text.removeprefix("IO: ").removeprefix("[libpq] ").split())
    return ServerError(without(words, text), error.sqlstate or None, fields)


def _text(value: Any) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)
