"""Statistics that a checkpoint holds as columns, spelled as the JSON text that commits hold: by column, not by row."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from lockgate.txlog.actions import json_text

_NEEDS_CARE = r"[\x00-\x1f\x7f]"  # Arrow's replacing knows no escapes for these


def stats_texts(stats: pa.StructArray) -> pa.Array:
    """One JSON text a row; NULL where the row has no statistics.

    >>> stats_texts(pa.array([{"numRecords": 3, "minValues": {"a": "x"}}])).to_pylist()
    ['{"numRecords":3,"minValues":{"a":"x"}}']
    """
    return _json(stats)


def _json(array: pa.Array) -> pa.Array:
    type_ = array.type
    if pa.types.is_struct(type_):
        return _object(array)
    if pa.types.is_dictionary(type_):
        return _json(array.cast(type_.value_type))
    if pa.types.is_string(type_) or pa.types.is_large_string(type_):
        return _quoted(array.cast(pa.string()))
    if pa.types.is_boolean(type_) or pa.types.is_integer(type_) or pa.types.is_decimal(type_):
        return array.cast(pa.string())
    if pa.types.is_floating(type_):
        return pc.if_else(pc.is_finite(array), array.cast(pa.string()), pa.scalar(None, pa.string()))
    if pa.types.is_date(type_):
        return _wrapped('"', array.cast(pa.string()), '"')
    if pa.types.is_timestamp(type_):
        text = pc.replace_substring(array.cast(pa.timestamp("us", type_.tz)).cast(pa.string()), " ", "T")
        return _wrapped('"', text, '"')
    return pa.nulls(len(array), pa.string())  # no bound of such a type says anything


def _object(array: pa.StructArray) -> pa.Array:
    members = [
        pc.fill_null(_wrapped(f",{json_text(field.name)}:", _json(array.field(i)), ""), "")
        for i, field in enumerate(array.type)
    ]
    # Joining with null_handling="skip" loses the rows in which all is skipped.
    empty = pa.repeat(pa.scalar("", pa.string()), len(array))
    joined = pc.utf8_slice_codeunits(pc.binary_join_element_wise(empty, *members, ""), start=1)
    return pc.if_else(array.is_valid(), _wrapped("{", joined, "}"), pa.scalar(None, pa.string()))


def _quoted(array: pa.Array) -> pa.Array:
    if pc.any(pc.match_substring_regex(array, _NEEDS_CARE)).as_py():
        return pa.array([None if text is None else json_text(text) for text in array.to_pylist()], pa.string())
    escaped = pc.replace_substring(pc.replace_substring(array, "\\", "\\\\"), '"', '\\"')
    return _wrapped('"', escaped, '"')


def _wrapped(before: str, array: pa.Array, after: str) -> pa.Array:
    return pc.binary_join_element_wise(before, array, after, "")
