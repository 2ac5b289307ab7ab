"""Rows of files in and out of SQLite, a column at a time where that saves work on each value."""

from __future__ import annotations

import sqlite3
from itertools import repeat
from typing import TYPE_CHECKING, Any

from lockgate.txlog import statements
from lockgate.txlog.store import ADD_COLUMNS, LIVE, Changes

if TYPE_CHECKING:
    import pyarrow as pa

_KNOWN, _GIVEN = ADD_COLUMNS[:4], ADD_COLUMNS[4:]


def insert_adds(connection: sqlite3.Connection, changes: Changes) -> None:
    columns: dict[str, Any]
    if changes.adds:
        columns = dict(zip(ADD_COLUMNS, zip(*changes.adds, strict=True), strict=True))
        _insert(connection, columns, len(changes.adds))
    for table_id, version, first, table in changes.add_tables:
        count = table.num_rows
        known = (repeat(table_id), repeat(version), repeat(LIVE), range(first, first + count))
        columns = dict(zip(_KNOWN, known, strict=True))
        columns |= {name: _values(table.column(name)) for name in _GIVEN if table.column(name).null_count < count}
        _insert(connection, columns, count)


def _insert(connection: sqlite3.Connection, columns: dict[str, Any], count: int) -> None:
    """Columns that are NULL throughout are left out, and flags go as numbers: sqlite3 is slow to bind either."""
    kept = {name: values for name, values in columns.items() if name == "path" or not _is_empty(values, count)}
    if "data_change" in kept:
        kept["data_change"] = map(int, kept["data_change"])
    statement = statements.insert_adds(tuple(kept))
    connection.executemany(statement, zip(*kept.values(), strict=False))


def _is_empty(values: Any, count: int) -> bool:
    return isinstance(values, tuple) and values[0] is None and values.count(None) == count


def _values(column: pa.ChunkedArray) -> Any:
    """The values of a column as Python's, with None for NULL."""
    import pyarrow.compute as pc

    if column.null_count:
        return column.to_pylist()
    first = column[0]
    if pc.all(pc.equal(column, first)).as_py():
        return repeat(first.as_py())
    return column.to_numpy().tolist()


def files_at(connection: sqlite3.Connection, table_id: int, version: int, *, extra: bool) -> pa.Table:
    """Each column comes as one text, which Arrow takes apart."""
    import pyarrow as pa

    from lockgate.txlog.file_texts import NEXT, NULL, table_of
    from lockgate.txlog.files import files_schema

    schema = files_schema(extra=extra)
    texts = ", ".join(
        f"group_concat(ifnull({f.name}, '{NULL}'), '{NEXT}')" if f.nullable else f"group_concat({f.name}, '{NEXT}')"
        for f in schema
    )
    values = (table_id, version, table_id, version, version)
    try:
        found = connection.execute(statements.FILES_AT.format(columns=f"count(*), {texts}"), values).fetchall()
    except sqlite3.DataError:  # longer than SQLite's longest text
        return _row_by_row(connection, values, schema)
    parts = [table_of(row[0], row[1:], schema) for row in found if row[0]]
    return pa.concat_tables(parts) if parts else schema.empty_table()


def _row_by_row(connection: sqlite3.Connection, values: tuple[int, ...], schema: pa.Schema) -> pa.Table:
    import pyarrow as pa

    statement = statements.FILES_AT.format(columns=", ".join(schema.names))
    columns = list(zip(*connection.execute(statement, values), strict=True))
    arrays = [
        pa.array(map(bool, each) if pa.types.is_boolean(field.type) else each, field.type)
        for each, field in zip(columns, schema, strict=True)
    ]
    return pa.Table.from_arrays(arrays, schema=schema)
