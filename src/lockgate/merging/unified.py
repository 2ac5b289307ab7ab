"""One type for a column whose files do not agree: one that holds every value of both, or none."""

from __future__ import annotations

import pyarrow as pa

from lockgate.merging.type_families import is_bytes, is_text
from lockgate.merging.widening import widened

_FINER = ("s", "ms", "us", "ns")


def unified(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    """The narrowest type that loses nothing of either; None where there is none.

    >>> unified(pa.int32(), pa.int64())
    DataType(int64)
    >>> unified(pa.int64(), pa.float64()) is None
    True
    """
    if left == right:
        return left
    wide = widened(left, right)
    if widened(wide, left) == wide and (wide == right or widened(right, wide) == wide):
        return wide
    if (is_text(left) and is_text(right)) or (is_bytes(left) and is_bytes(right)):
        return _plain(left)
    if pa.types.is_integer(left) and pa.types.is_integer(right):
        return _integer(left, right)
    if pa.types.is_timestamp(left) and pa.types.is_timestamp(right) and (left.tz is None) == (right.tz is None):
        return max(left, right, key=lambda t: _FINER.index(t.unit))
    return None


def _plain(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _integer(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    signed = pa.types.is_signed_integer(left) or pa.types.is_signed_integer(right)
    if not signed:
        return max(left, right, key=lambda t: t.bit_width)
    bits = max(t.bit_width if pa.types.is_signed_integer(t) else 2 * t.bit_width for t in (left, right))
    return {8: pa.int8(), 16: pa.int16(), 32: pa.int32(), 64: pa.int64()}.get(bits)
