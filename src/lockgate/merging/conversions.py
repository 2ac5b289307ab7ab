"""One Arrow array to another type, exactly: every value keeps its meaning or the whole conversion is refused.

Arrow's own casts are not enough. They refuse 2**60 as a double though it is exact, turn the decimal 0.3 into
0.30000000000000004, and cut a timestamp to its date without a word.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from lockgate.merging.type_families import is_bytes, is_list, is_list_view, is_text


class Lossy(ValueError):
    """A value has no equal in the other type. Arrow's own casts say so with ArrowInvalid, a ValueError too."""


def convertible(source: pa.DataType, to: pa.DataType) -> bool:
    """Whether values of one type may become values of the other at all, if they fit.

    >>> convertible(pa.int64(), pa.float32()), convertible(pa.string(), pa.int64())
    (True, False)
    """
    if source == to or pa.types.is_null(source) or pa.types.is_null(to):
        return True
    if _is_extension(source) and _is_extension(to):
        return False
    source, to = _storage(source), _storage(to)
    if is_list(source) and is_list(to):
        return not is_list_view(to) and convertible(source.value_type, to.value_type)
    if pa.types.is_struct(source) and pa.types.is_struct(to):
        fields, wanted = {f.name: f.type for f in source}, {f.name: f.type for f in to}
        if fields.keys() != wanted.keys() or not (len(fields) == source.num_fields == to.num_fields):
            return False
        return all(convertible(fields[name], wanted[name]) for name in wanted)
    if pa.types.is_map(source) and pa.types.is_map(to):
        return convertible(source.key_type, to.key_type) and convertible(source.item_type, to.item_type)
    return _family(source) == _family(to)


def exact(array: pa.Array, to: pa.DataType) -> pa.Array:
    """The array as type `to`; the types must be convertible. Raises a ValueError if a value would be lost."""
    source = array.type
    if source == to:
        return array
    if pa.types.is_null(source):
        return pa.nulls(len(array), to)
    if pa.types.is_null(to):
        return _only_nulls(array)
    if _is_extension(source):
        return exact(array.storage, to)
    if _is_extension(to):
        return pa.ExtensionArray.from_storage(to, exact(array, to.storage_type))
    if pa.types.is_run_end_encoded(source):
        return exact(pc.run_end_decode(array), to)
    if pa.types.is_dictionary(source):
        return exact(_decoded(array), to)
    if pa.types.is_dictionary(to):
        return _dictionary(exact(array, to.value_type), to)
    if is_list(source):
        return _list(array, to)
    if pa.types.is_struct(source):
        return _struct(array, to)
    if pa.types.is_map(source):
        return _map(array, to)
    if _family(source) == "number":
        return _number(array, to)
    if pa.types.is_date(source) != pa.types.is_date(to):
        converted = array.cast(to)  # Arrow drops the time of day silently
        return _same(array, converted.cast(source), converted)
    return array.cast(to)


def _is_extension(type_: pa.DataType) -> bool:
    return isinstance(type_, pa.BaseExtensionType)


def _storage(type_: pa.DataType) -> pa.DataType:
    """The type of the values themselves, without the way they are packed."""
    if _is_extension(type_):
        return _storage(type_.storage_type)
    if pa.types.is_dictionary(type_) or pa.types.is_run_end_encoded(type_):
        return _storage(type_.value_type)
    return type_


def _family(type_: pa.DataType) -> str:
    """Types of one family hold the same kind of thing."""
    if pa.types.is_integer(type_) or pa.types.is_floating(type_) or pa.types.is_decimal(type_):
        return "number"
    if is_text(type_):
        return "text"
    if is_bytes(type_):
        return "bytes"
    if pa.types.is_date(type_) or (pa.types.is_timestamp(type_) and type_.tz is None):
        return "local time"
    if pa.types.is_timestamp(type_):
        return "instant"
    if pa.types.is_time(type_):
        return "time of day"
    if pa.types.is_duration(type_):
        return "duration"
    return str(type_)


def _number(array: pa.Array, to: pa.DataType) -> pa.Array:
    source = array.type
    if pa.types.is_float16(source):  # most kernels do not know it
        return exact(array.cast(pa.float32()), to)
    if pa.types.is_decimal(source) and source.bit_width < 128 and not pa.types.is_decimal(to):
        return exact(array.cast(pa.decimal128(38, source.scale)), to)  # Arrow calls 5.00 out of bounds for an int64
    if pa.types.is_integer(source) and pa.types.is_decimal(to):
        roomy = pa.decimal128 if 20 + to.scale <= 38 else pa.decimal256  # 20: a uint64's digits, which Arrow insists on
        return _decimal(array.cast(roomy(20 + max(to.scale, 0), max(to.scale, 0))), to)
    if pa.types.is_integer(source) and pa.types.is_floating(to):
        converted = array.cast(to, safe=False)  # the safe cast refuses everything beyond 2**53
        wide = converted.cast(pa.float64())
        _refuse_out_of_range(wide, source)
        return _same(array, wide.cast(source, safe=False), converted)
    if pa.types.is_floating(source) and pa.types.is_integer(to):
        _refuse_out_of_range(array, to)
        return array.cast(to)
    if pa.types.is_floating(source) and pa.types.is_floating(to):
        converted = array.cast(to)
        back = converted.cast(source)
        same = pc.or_(pc.equal(array, back), pc.and_(pc.is_nan(array), pc.is_nan(back)))
        return converted if _all(same) else _lossy(source, to)
    if pa.types.is_floating(source):
        return _decimal_of(array, to)
    if pa.types.is_floating(to):
        converted = _float_of(array, to)
        return _same(array, _decimal_of(converted, source), converted)
    if pa.types.is_decimal(source) and pa.types.is_decimal(to):
        return _decimal(array, to)
    return array.cast(to)  # decimals to integers, integers among themselves


def _decimal(array: pa.Array, to: pa.DataType) -> pa.Array:
    """First wide, then to the new digits, then narrow: in one step Arrow drops the upper bits of what does not fit."""
    wide = array if array.type.bit_width >= to.bit_width else array.cast(_of_width(to, 38, array.type.scale))
    return wide.cast(_of_width(wide.type, to.precision, to.scale)).cast(to)


def _of_width(like: pa.DataType, precision: int, scale: int) -> pa.DataType:
    make = {32: pa.decimal32, 64: pa.decimal64, 128: pa.decimal128, 256: pa.decimal256}[like.bit_width]
    return make(min(precision, {32: 9, 64: 18}.get(like.bit_width, 76)), scale)


def _decimal_of(floats: pa.Array, to: pa.DataType) -> pa.Array:
    """Whole numbers digit by digit; fractions by the shortest text that means this float: 0.1 is 0.1."""
    wide = floats.cast(pa.float64())
    whole = pc.equal(wide, pc.trunc(wide))
    roomy = pa.decimal256(76, max(to.scale, 0))
    integers = pc.if_else(whole, wide, None).cast(pa.decimal256(76, 0)).cast(roomy)
    if pa.types.is_float16(floats.type):
        floats = floats.cast(pa.float32())
    fractions = pc.if_else(whole, None, floats).cast(pa.string()).cast(roomy)
    return _decimal(pc.coalesce(integers, fractions), to)


def _float_of(decimals: pa.Array, to: pa.DataType) -> pa.Array:
    text = decimals.cast(pa.string())  # Arrow's own cast gives 0.30000000000000004 for 0.3
    return text.cast(pa.float64()).cast(to) if pa.types.is_float16(to) else text.cast(to)


def _refuse_out_of_range(floats: pa.Array, integer: pa.DataType) -> None:
    """Beyond the range a cast to integer is undefined: it wraps on one machine and saturates on another."""
    signed = pa.types.is_signed_integer(integer)
    upper = 2.0 ** (integer.bit_width - signed)
    lower = -upper if signed else 0.0
    if not _all(pc.and_(pc.greater_equal(floats, lower), pc.less(floats, upper))):
        _lossy(floats.type, integer)


def _same(array: pa.Array, back: pa.Array, converted: pa.Array) -> pa.Array:
    return converted if _all(pc.equal(array, back)) else _lossy(array.type, converted.type)


def _all(mask: pa.Array) -> bool:
    return bool(pc.all(mask, min_count=0).as_py())  # NULLs do not count


def _only_nulls(array: pa.Array) -> pa.Array:
    return pa.nulls(len(array)) if _all(pc.is_null(array)) else _lossy(array.type, pa.null())


def _lossy(source: pa.DataType, to: pa.DataType) -> pa.Array:
    raise Lossy(f"{source} to {to} would lose a value")


def _decoded(array: pa.Array) -> pa.Array:
    words = array.dictionary
    if pa.types.is_string_view(words.type) or pa.types.is_binary_view(words.type):  # Arrow cannot pick out of views
        words = words.cast(pa.large_string() if is_text(words.type) else pa.large_binary())
        array = pa.DictionaryArray.from_arrays(array.indices, words)
    return array.dictionary_decode()


def _dictionary(values: pa.Array, to: pa.DataType) -> pa.Array:
    encoded = values.dictionary_encode()
    indices = encoded.indices.cast(to.index_type)
    return pa.DictionaryArray.from_arrays(indices, encoded.dictionary, ordered=to.ordered)


def _list(array: pa.Array, to: pa.DataType) -> pa.Array:
    values = exact(array.flatten(), to.value_type)  # without what lies under a NULL list
    _refuse_null(values, to.value_field)
    offsets = _offsets(pc.list_value_length(array))
    mask = array.is_null()
    if pa.types.is_large_list(to):
        return pa.LargeListArray.from_arrays(offsets, values, type=to, mask=mask)
    if pa.types.is_fixed_size_list(to):
        return pa.LargeListArray.from_arrays(offsets, values, type=pa.large_list(to.value_field), mask=mask).cast(to)
    return pa.ListArray.from_arrays(offsets.cast(pa.int32()), values, type=to, mask=mask)


def _map(array: pa.Array, to: pa.DataType) -> pa.Array:
    entries = array.cast(pa.list_(pa.struct([array.type.key_field, array.type.item_field])))
    keys, items = entries.flatten().flatten()
    keys, items = exact(keys, to.key_type), exact(items, to.item_type)
    _refuse_null(items, to.item_field)
    offsets = _offsets(pc.list_value_length(entries)).cast(pa.int32())
    return pa.MapArray.from_arrays(offsets, keys, items, type=to, mask=array.is_null())


def _offsets(lengths: pa.Array) -> pa.Array:
    ends = pc.cumulative_sum(pc.fill_null(lengths.cast(pa.int64()), 0))
    return pa.concat_arrays([pa.array([0], pa.int64()), ends])


def _struct(array: pa.Array, to: pa.DataType) -> pa.Array:
    mine = {field.name: child for field, child in zip(array.type, array.flatten(), strict=True)}
    children = []
    for field in to:
        child = exact(mine[field.name], field.type)
        if child.null_count > array.null_count:  # NULL because its row is NULL is no value of the field
            _refuse_null(child, field)
        children.append(child)
    validity = pc.is_valid(array).buffers()[1] if array.null_count else None
    # from_arrays refuses a non-nullable field under a NULL row
    return pa.Array.from_buffers(to, len(array), [validity], children=children)


def _refuse_null(values: pa.Array, field: pa.Field) -> None:
    if not field.nullable and values.null_count:
        raise Lossy(f"{field.name} may not be NULL")
