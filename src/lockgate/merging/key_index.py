"""Looking up many keys at once, exactly: no row loop, no hash that two keys could share.

A key of several columns becomes one number. Each column is replaced by its place among the source's values of that
column, two places are joined into one number, and that again is replaced by its place among the source's pairs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

# Types that Arrow can neither hash nor sort, and those with the same values that it can.
_WITHOUT_KERNELS = {pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary()}


class KeyIndex:
    """The keys of a source, one row a key, ready to be looked up.

    >>> index = KeyIndex(pa.table({"id": [7, 8]}))
    >>> index.find([pa.array([8, 9, 7])]).to_pylist()
    [1, None, 0]
    """

    def __init__(self, keys: pa.Table) -> None:
        self.rows = keys.num_rows
        first, *others = [comparable(keys.column(i)) for i in range(keys.num_columns)]
        self._column = first
        self._levels = [_Level(first.unique(), None)]
        codes = pc.index_in(first, value_set=self._levels[0].values) if others else None
        for column in others:
            values = column.unique()
            joined = _joined(codes, pc.index_in(column, value_set=values), len(values))
            pairs = joined.unique()
            self._levels.append(_Level(values, pairs))
            codes = pc.index_in(joined, value_set=pairs)
        self._codes = codes
        last = self._levels[-1]
        self.distinct = len(last.values if last.pairs is None else last.pairs)

    @property
    def codes(self) -> pa.Array:
        """A number for each row, the same for the same key, given in order of first appearance."""
        if self._codes is None:
            self._codes = pc.index_in(self._column, value_set=self._levels[0].values)
        return self._codes

    @property
    def is_unique(self) -> bool:
        return bool(self.distinct == self.rows)

    def duplicated_rows(self, limit: int) -> list[int]:
        """One source row of each key that occurs more than once, at most `limit`."""
        counted = pa.table({"code": self.codes, "row": pa.arange(0, self.rows)})
        groups = counted.group_by("code").aggregate([("row", "count"), ("row", "min")])
        several = groups.filter(pc.greater(groups["row_count"], 1)).sort_by("row_min").slice(0, limit)
        return [int(row) for row in several["row_min"].to_pylist()]

    def find(self, columns: Sequence[Any]) -> pa.Array:
        """For every row of `columns`, in the order of the key, the source row of that key, or null. A NULL in a
        column matches nothing. The index must be unique."""
        codes: pa.Array | None = None
        for level, column in zip(self._levels, columns, strict=True):
            own = pc.index_in(comparable(column), value_set=level.values, skip_nulls=True)
            if level.pairs is None:
                codes = own
            else:
                codes = pc.index_in(_joined(codes, own, len(level.values)), value_set=level.pairs, skip_nulls=True)
        assert codes is not None
        return codes.cast(pa.int64())  # codes are given in order of first appearance: code i is row i


class _Level:
    def __init__(self, values: pa.Array, pairs: pa.Array | None) -> None:
        self.values = values
        self.pairs = pairs


def _joined(left: pa.Array, right: pa.Array, size: int) -> pa.Array:
    return pc.add(pc.multiply(left.cast(pa.int64()), size), right.cast(pa.int64()))


def comparable(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """The column in one piece, with one spelling of every value: dictionaries decoded, one NaN, one zero."""
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(array, pa.ChunkedArray):  # more text than 32-bit offsets reach
        array = array.cast(pa.large_string() if pa.types.is_string(array.type) else pa.large_binary()).combine_chunks()
    if isinstance(array.type, pa.BaseExtensionType):
        array = array.storage
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if array.type in _WITHOUT_KERNELS:
        array = array.cast(_WITHOUT_KERNELS[array.type])
    if pa.types.is_decimal32(array.type) or pa.types.is_decimal64(array.type):
        array = array.cast(pa.decimal128(array.type.precision, array.type.scale))
    if pa.types.is_floating(array.type):
        if pa.types.is_float16(array.type):
            array = array.cast(pa.float32())
        zero, nan = pa.scalar(0.0, array.type), pa.scalar(float("nan"), array.type)
        array = pc.if_else(pc.equal(array, zero), zero, array)  # -0.0
        array = pc.if_else(pc.is_nan(array), nan, array)
    return array
