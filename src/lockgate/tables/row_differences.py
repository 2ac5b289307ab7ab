"""Rows of two tables compared, each with all its columns: what went, what came, what changed under the same key.

Rows are compared as SQL's IS NOT DISTINCT FROM does: NULL equals NULL, NaN equals NaN. A row that is there several
times counts so many times.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lockgate.errors import SchemaMismatchError
from lockgate.merging.key_index import KeyIndex

_NOTHING = "nothing was written"


@dataclass(frozen=True)
class RowDifferences:
    """`before` and `after` are the changed rows, in the same order."""

    removed: pa.Table
    added: pa.Table
    before: pa.Table
    after: pa.Table


def compare(old: pa.Table, new: pa.Table, key_columns: Sequence[str] | None) -> RowDifferences:
    """What makes `new` of `old`. Without a key a changed row is one that went and one that came.

    >>> found = compare(pa.table({"id": [1, 2], "x": [1, 1]}), pa.table({"id": [2, 3], "x": [5, 1]}), ["id"])
    >>> found.removed["id"].to_pylist(), found.added["id"].to_pylist(), found.before["x"].to_pylist()
    ([1], [3], [1])
    """
    schema = common_schema(old.schema, new.schema)
    old, new = as_schema(old, schema), as_schema(new, schema)
    codes_old, codes_new = _codes(old, new, schema.names)
    old = old.filter(pc.invert(_paired(codes_old, codes_new)))
    new = new.filter(pc.invert(_paired(codes_new, codes_old)))
    if key_columns is None:
        return RowDifferences(old, new, old.slice(0, 0), new.slice(0, 0))
    codes_old, codes_new = _codes(old, new, list(key_columns))
    here, there = _paired(codes_old, codes_new), _paired(codes_new, codes_old)
    return RowDifferences(
        removed=old.filter(pc.invert(here)),
        added=new.filter(pc.invert(there)),
        before=_by_code(old, codes_old, here),
        after=_by_code(new, codes_new, there),
    )


def common_schema(old: pa.Schema, new: pa.Schema) -> pa.Schema:
    """The columns of `new`, then those that only `old` has. Every column may be NULL."""
    fields = [field.with_nullable(True) for field in new]
    fields += [field.with_nullable(True) for field in old if field.name not in new.names]
    return pa.schema(fields)


def as_schema(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """The rows with these columns; one that they lack is NULL."""
    columns = []
    for field in schema:
        if field.name not in rows.column_names:
            columns.append(pa.nulls(rows.num_rows, field.type))
            continue
        try:
            columns.append(rows.column(field.name).cast(field.type))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise SchemaMismatchError(
                f'the column "{field.name}" was {rows.schema.field(field.name).type} and is {field.type}, and its '
                "values cannot be compared",
                in_place=_NOTHING,
            ) from error
    return pa.table(columns, schema=schema)


def _codes(old: pa.Table, new: pa.Table, columns: Sequence[str]) -> tuple[pa.Array, pa.Array]:
    """A number for each row, the same for rows that are equal in these columns."""
    both = pa.concat_tables([old.select(list(columns)), new.select(list(columns))])
    if not both.num_rows:
        nothing = pa.array([], pa.int64())
        return nothing, nothing
    flat = pa.table([_flat(column) for column in both.columns], names=[str(i) for i in range(both.num_columns)])
    codes = KeyIndex(flat).codes.cast(pa.int64())
    return codes.slice(0, old.num_rows), codes.slice(old.num_rows)


def _flat(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Arrow cannot hash nested values; their texts tell them apart as well."""
    if not pa.types.is_nested(column.type):
        return column
    return pa.chunked_array([pa.array([_text(value) for value in column.to_pylist()], pa.large_string())])


def _text(value: Any) -> str | None:
    return None if value is None else repr(_plain(value))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, float):
        return "nan" if math.isnan(value) else value + 0.0  # -0.0
    return value


def _paired(mine: pa.Array, theirs: pa.Array) -> pa.Array:
    """Of each of my rows, whether there is one among theirs for it: as many as they have of its code."""
    counted = theirs.value_counts()
    at = pc.index_in(mine, value_set=counted.field("values"))
    there = pc.coalesce(counted.field("counts").take(at), pa.scalar(0, pa.int64()))
    return pc.less(_occurrence(mine), there)


def _occurrence(codes: pa.Array) -> pa.Array:
    """Of each row, how many before it have its code."""
    count = len(codes)
    order = pc.array_sort_indices(codes)  # stable
    ordered = codes.take(order)
    places = pa.arange(0, count)
    if not count:
        return places
    first = pa.concat_arrays([pa.array([True]), pc.not_equal(ordered.slice(1), ordered.slice(0, count - 1))])
    starts = pc.cumulative_max(pc.if_else(first, places, 0))
    return pc.subtract(places, starts).take(pc.array_sort_indices(order))


def _by_code(rows: pa.Table, codes: pa.Array, wanted: pa.Array) -> pa.Table:
    """The wanted rows, in the order of their codes: rows with one code stay in their order."""
    return rows.filter(wanted).take(pc.array_sort_indices(codes.filter(wanted)))
