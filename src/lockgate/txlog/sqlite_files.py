"""Rows of files in and out of SQLite."""

from __future__ import annotations

import sqlite3
from itertools import count, repeat
from typing import TYPE_CHECKING

from lockgate.txlog import statements
from lockgate.txlog.store import ADD_COLUMNS, LIVE, Changes

if TYPE_CHECKING:
    import pyarrow as pa


def insert_adds(connection: sqlite3.Connection, changes: Changes) -> None:
    if changes.adds:
        connection.executemany(statements.INSERT_ADD, changes.adds)
    for table_id, version, first, table in changes.add_tables:
        columns = [table.column(name).to_pylist() for name in ADD_COLUMNS[4:]]
        known = (repeat(table_id), repeat(version), repeat(LIVE), count(first))
        connection.executemany(statements.INSERT_ADD, zip(*known, *columns, strict=False))


def files_at(connection: sqlite3.Connection, table_id: int, version: int, *, extra: bool) -> pa.Table:
    import pyarrow as pa

    from lockgate.txlog.files import files_schema

    schema = files_schema(extra=extra)
    statement = statements.FILES_AT.format(columns=", ".join(schema.names))
    rows = connection.execute(statement, (table_id, version, table_id, version, version)).fetchall()
    columns = zip(*rows, strict=True) if rows else [()] * len(schema)
    arrays = []
    for values, field in zip(columns, schema, strict=True):
        array = pa.array(values, pa.int64()) if pa.types.is_boolean(field.type) else pa.array(values, field.type)
        arrays.append(array.cast(field.type))
    return pa.Table.from_arrays(arrays, schema=schema)
