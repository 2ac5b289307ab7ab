"""The type of a column after a source of another type is merged into it under `schema="evolve"`.

Only what both Spark and Arrow read from an old file under the new type: a file is not rewritten because its column
was widened.
"""

from __future__ import annotations

import pyarrow as pa

from lockgate.merging.type_families import is_list

_INTEGERS = ("int8", "int16", "int32", "int64")
_INTO_DOUBLE = ("int8", "int16", "int32", "float")


def widened(target: pa.DataType, source: pa.DataType) -> pa.DataType:
    """The target's type, made wider where the source needs it; else the target's own type.

    Whether the source's values fit into it is another question: see `lossless`.

    >>> widened(pa.int32(), pa.int64())
    DataType(int64)
    >>> widened(pa.int64(), pa.int8())
    DataType(int64)
    """
    if target == source or pa.types.is_null(source):
        return target
    if pa.types.is_null(target):
        return source
    if pa.types.is_dictionary(source):
        return widened(target, source.value_type)
    if pa.types.is_struct(target) and pa.types.is_struct(source):
        return _struct(target, source)
    if is_list(target) and is_list(source):
        return _list(target, source)
    if pa.types.is_map(target) and pa.types.is_map(source):
        item = target.item_field.with_type(widened(target.item_type, source.item_type))
        return pa.map_(target.key_field, item, keys_sorted=target.keys_sorted)
    if pa.types.is_decimal(target) and pa.types.is_decimal(source):
        return _decimal(target, source)
    if _is_wider_number(source, target):
        return source
    return target


def _is_wider_number(source: pa.DataType, target: pa.DataType) -> bool:
    wide, narrow = str(source), str(target)
    if wide == "double":
        return narrow in _INTO_DOUBLE
    return wide in _INTEGERS and narrow in _INTEGERS and _INTEGERS.index(wide) > _INTEGERS.index(narrow)


def _decimal(target: pa.DataType, source: pa.DataType) -> pa.DataType:
    scale = max(target.scale, source.scale)
    precision = max(target.precision - target.scale, source.precision - source.scale) + scale
    if (precision, scale) == (target.precision, target.scale) or precision > 38:  # 38: Spark's limit
        return target
    return pa.decimal128(precision, scale)


def _list(target: pa.DataType, source: pa.DataType) -> pa.DataType:
    element = target.value_field.with_type(widened(target.value_type, source.value_type))
    if pa.types.is_large_list(target):
        return pa.large_list(element)
    if pa.types.is_fixed_size_list(target):
        return pa.list_(element, target.list_size)
    return pa.list_(element) if pa.types.is_list(target) else target


def _struct(target: pa.DataType, source: pa.DataType) -> pa.DataType:
    theirs = {field.name: field for field in source}
    fields = [f.with_type(widened(f.type, theirs.pop(f.name).type)) if f.name in theirs else f for f in target]
    return pa.struct(fields + [added(field) for field in theirs.values()])


def added(field: pa.Field) -> pa.Field:
    """A source's field as a new one of the target: NULL in old rows, and without the id it had in the source."""
    return pa.field(field.name, field.type, nullable=True)
