"""Keys as Spark joins them: each as one of a few Spark types that have the values of the dataset's type, no more and
no less, so that two keys are equal for Spark where they are equal for every other engine."""

from __future__ import annotations

import pyarrow as pa

from lockgate.merging.key_index import comparable
from lockgate.merging.type_families import is_bytes, is_text


def spark_type(kind: pa.DataType) -> str:
    """The type that a key of this type has in a join, as Spark spells it.

    >>> spark_type(pa.int16()), spark_type(pa.timestamp("ns")), spark_type(pa.decimal128(9, 2))
    ('bigint', 'bigint', 'decimal(9,2)')
    """
    kind = _plain(kind)
    if pa.types.is_boolean(kind):
        return "boolean"
    if pa.types.is_uint64(kind):
        return "decimal(20,0)"
    if pa.types.is_floating(kind):
        return "double"
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})" if _fits_spark(kind) else "string"
    if is_text(kind):
        return "string"
    if is_bytes(kind):
        return "binary"
    return "bigint"  # whole numbers, and dates and times as such


def encoded(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    """Key values, of the dataset's type, as that type.

    >>> encoded(pa.array([True])).type, encoded(pa.array([1], pa.timestamp("us"))).to_pylist()
    (DataType(bool), [1])
    """
    array = comparable(column)
    kind = array.type
    if pa.types.is_null(kind):
        return array.cast(pa.int64())
    if pa.types.is_boolean(kind):
        return array
    if pa.types.is_uint64(kind):
        return array.cast(pa.decimal128(20, 0))
    if pa.types.is_floating(kind):
        return array.cast(pa.float64())
    if pa.types.is_decimal(kind):
        return array.cast(pa.decimal128(kind.precision, kind.scale) if _fits_spark(kind) else pa.string())
    if is_text(kind):
        return array.cast(pa.string())
    if is_bytes(kind):
        return array.cast(pa.binary())
    if pa.types.is_temporal(kind) and kind.bit_width == 32:
        return array.cast(pa.int32()).cast(pa.int64())
    return array.cast(pa.int64())


def is_joined_as_it_is(given: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether Spark's own cast makes the join's type of a source column, with no value that could be lost."""
    given, wanted = _plain(given), _plain(wanted)
    if pa.types.is_signed_integer(given) and pa.types.is_signed_integer(wanted):
        return bool(given.bit_width <= wanted.bit_width)
    if pa.types.is_decimal(given):
        return bool(given == wanted) and _fits_spark(given)
    if pa.types.is_floating(given):
        return bool(given == wanted)
    if pa.types.is_fixed_size_binary(wanted):
        return bool(given == wanted)
    return any(same(given) and same(wanted) for same in (pa.types.is_boolean, is_text, is_bytes))


def always_fits(given: pa.Field, wanted: pa.Field) -> bool:
    """Whether every value of a source column is one of the dataset's column, as the types say."""
    if not wanted.nullable:
        return False  # NULL is a value too
    same = _plain(given.type) == _plain(wanted.type)
    return bool(same) or is_joined_as_it_is(given.type, wanted.type)


def _plain(kind: pa.DataType) -> pa.DataType:
    if isinstance(kind, pa.BaseExtensionType):
        return _plain(kind.storage_type)
    return _plain(kind.value_type) if pa.types.is_dictionary(kind) else kind


def _fits_spark(kind: pa.DataType) -> bool:
    return bool(kind.precision <= 38 and 0 <= kind.scale <= kind.precision)
