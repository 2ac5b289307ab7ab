"""Which rows of two columns are equal, as SQL's IS NOT DISTINCT FROM: NULL equals NULL, NaN equals NaN."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from lockgate.merging.key_index import comparable


def equal_rows(left: pa.Table, right: pa.Table) -> pa.Array:
    """Row by row, whether all columns are equal. Both have the same columns and as many rows.

    >>> equal_rows(pa.table({"a": [1, None, 3]}), pa.table({"a": [1, None, 4]})).to_pylist()
    [True, True, False]
    """
    result = pa.repeat(pa.scalar(True), left.num_rows)
    for name in left.column_names:
        result = pc.and_(result, equal(comparable(left.column(name)), comparable(right.column(name))))
    return result


def equal(left: pa.Array, right: pa.Array) -> pa.Array:
    """Element by element, never null."""
    left, right = comparable(left), comparable(right)
    kind = left.type
    if pa.types.is_null(kind):
        return pa.repeat(pa.scalar(True), len(left))
    both_null = pc.and_(left.is_null(), right.is_null())
    one_null = pc.xor(left.is_null(), right.is_null())
    if pa.types.is_struct(kind):
        same = pa.repeat(pa.scalar(True), len(left))
        for i in range(kind.num_fields):
            same = pc.and_(same, equal(pc.struct_field(left, i), pc.struct_field(right, i)))
    elif pa.types.is_nested(kind):
        same = _equal_lists(left, right)
    else:
        same = pc.equal(left, right)
        if pa.types.is_floating(kind):
            same = pc.or_(same, pc.and_(pc.is_nan(left), pc.is_nan(right)))
        same = same.fill_null(False)
    return pc.and_(pc.or_(both_null, same), pc.invert(one_null))


def _equal_lists(left: pa.Array, right: pa.Array) -> pa.Array:
    """Lists are equal when they are as long and no element differs; differing elements are counted by list."""
    left, right = _as_large_list(left), _as_large_list(right)
    lengths = pc.equal(pc.list_value_length(left), pc.list_value_length(right)).fill_null(False)
    positions = pc.filter(pa.arange(0, len(left)), lengths)
    mine, theirs = left.take(positions), right.take(positions)
    differs = pc.invert(equal(mine.flatten(), theirs.flatten()))
    of_list = pc.filter(pc.list_parent_indices(mine), differs)
    wrong = positions.take(of_list.cast(pa.int64())).unique()
    return pc.and_(lengths, pc.invert(pc.is_in(pa.arange(0, len(left)), value_set=wrong)))


def _as_large_list(array: pa.Array) -> pa.Array:
    if pa.types.is_map(array.type):
        entry = pa.struct([pa.field("key", array.type.key_type), pa.field("value", array.type.item_type)])
        return array.cast(pa.list_(entry)).cast(pa.large_list(entry))
    return array.cast(pa.large_list(array.type.value_type))
