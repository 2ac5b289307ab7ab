"""Taking rows of a table by their numbers, however much text it holds."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

_REACH = 2**31 - 1  # bytes, of the 32-bit offsets of a string column; taking rows joins its pieces first
_LARGE = {pa.string(): pa.large_string(), pa.binary(): pa.large_binary()}


def with_room(table: pa.Table) -> pa.Table:
    """The table with wider offsets in the columns that need them."""
    for number, field in enumerate(table.schema):
        if field.type in _LARGE and table.column(number).nbytes > _REACH:
            wide = field.with_type(_LARGE[field.type])
            table = table.set_column(number, wide, table.column(number).cast(wide.type))
    return table


def rows_of(table: pa.Table, numbers: pa.Array) -> pa.Table:
    """The rows of these numbers; all of them in their order are the table itself, and cost nothing.

    >>> rows_of(pa.table({"a": [1, 2, 3]}), pa.array([2, 0])).column("a").to_pylist()
    [3, 1]
    """
    if len(numbers) == table.num_rows and pc.all(pc.equal(numbers, pa.arange(0, len(numbers)))).as_py() is not False:
        return table
    return table.take(numbers)


def in_slices(table: pa.Table) -> Iterator[pa.Table]:
    """The table in pieces, none of which holds more text than 32-bit offsets reach."""
    most = max(1, int(table.num_rows * (_REACH // 2) / max(table.nbytes, 1)))
    if most >= table.num_rows:
        yield from [table] if table.num_rows else []
        return
    for start in range(0, table.num_rows, most):
        part = table.slice(start, most)
        # A slice of large text keeps its place in the whole, which is what would be out of reach: that is copied.
        columns = [c.take(pa.arange(0, len(c))) if c.type in _LARGE.values() else c for c in part.columns]
        yield pa.Table.from_arrays(columns, schema=part.schema)
