"""Rows of files in and out of PostgreSQL: in by binary COPY, out to Arrow through ADBC."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from lockgate.errors import DatabaseError, LogError
from lockgate.txlog import statements
from lockgate.txlog.file_texts import NEXT, NULL, table_of
from lockgate.txlog.files import files_schema
from lockgate.txlog.postgres_statements import ADD_TYPES
from lockgate.txlog.store import ADD_COLUMNS, Changes, Row

if TYPE_CHECKING:
    import pyarrow as pa

    from lockgate.txlog.postgres_connections import Connection

_FEW = 100_000  # files up to which texts are not slower than ADBC, which needs a connection of its own: measured
_COPY = f"COPY dl_add_files ({', '.join(ADD_COLUMNS)}) FROM STDIN (FORMAT BINARY)"


def copy_adds(connection: Connection, changes: Changes) -> None:
    if changes.adds:
        with connection.cursor().copy(_COPY) as copy:
            copy.set_types(ADD_TYPES)
            for row in changes.adds:
                copy.write_row(row)
    if changes.add_tables:
        from lockgate.txlog.postgres_copy import HEADER, TRAILER, copy_rows

        with connection.cursor().copy(_COPY) as copy:
            copy.write(HEADER)
            for table_id, version, first, table in changes.add_tables:
                for block in copy_rows(table_id, version, first, table):
                    copy.write(block)
            copy.write(TRAILER)


def few_files_at(rows: Callable[..., list[Row]], table_id: int, version: int, *, extra: bool) -> pa.Table | None:
    """The files of a version over a connection that is there already; None where they are more than `_FEW`, whose texts
    would fill the server's memory."""
    schema = files_schema(extra=extra)
    files = statements.FILES_AT.format(columns=", ".join(schema.names))
    columns = ", ".join(f"string_agg({_as_text(field)}, chr({ord(NEXT)}))" for field in schema)
    found = rows(
        f"SELECT count(*), {columns} FROM ({files} LIMIT {_FEW + 1}) f", table_id, version, table_id, version, version
    )[0]
    if found[0] > _FEW:
        return None
    return table_of(found[0], found[1:], schema) if found[0] else schema.empty_table()


def _as_text(field: pa.Field) -> str:
    import pyarrow as pa

    if field.nullable:
        return f"coalesce({field.name}, chr({ord(NULL)}))"
    return f"{field.name}::int::text" if pa.types.is_boolean(field.type) else f"{field.name}::text"


class ArrowReader:
    """One ADBC connection, made when it is first needed."""

    def __init__(self, url: str, address: str) -> None:
        self._url = url
        self._address = address
        self._mutex = threading.Lock()
        self._connection: Any = None

    def files_at(self, table_id: int, version: int, *, extra: bool) -> pa.Table:
        import adbc_driver_manager

        schema = files_schema(extra=extra)
        statement = statements.FILES_AT.format(columns=", ".join(schema.names))
        for number in range(1, 6):
            statement = statement.replace("?", f"${number}", 1)
        values = (table_id, version, table_id, version, version)
        with self._mutex:
            was_idle = self._connection is not None
            try:
                return self._read(statement, values, schema)
            except adbc_driver_manager.Error as error:
                self._forget()
                if not was_idle:
                    raise self._explained(error) from error
            try:
                return self._read(statement, values, schema)
            except adbc_driver_manager.Error as error:
                self._forget()
                raise self._explained(error) from error

    def close(self) -> None:
        with self._mutex:
            self._forget()

    def _read(self, statement: str, values: tuple[int, ...], schema: pa.Schema) -> pa.Table:
        import adbc_driver_postgresql.dbapi

        if self._connection is None:
            self._connection = adbc_driver_postgresql.dbapi.connect(self._url, autocommit=True)
        with self._connection.cursor() as cursor:
            cursor.execute(statement, values)
            return cursor.fetch_arrow_table().cast(schema)

    def _forget(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _explained(self, error: Any) -> LogError:
        state = getattr(error, "sqlstate", None)
        return DatabaseError(
            f"the log {self._address} could not be read" + (f" (SQLSTATE {state})" if state else f": {error}"),
            in_place="nothing was read",
            hint="check that the server is up and can be reached, then try again",
        )
