"""A table's schema as Delta spells it in JSON, and as Arrow has it."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from lockgate.errors import SchemaMismatchError

_PLAIN: Mapping[str, pa.DataType] = {
    "byte": pa.int8(),
    "short": pa.int16(),
    "integer": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}
_NAMES = {kind: name for name, kind in _PLAIN.items()}
# Types that Delta lacks, and the narrowest of its types that holds every value of theirs.
_WIDER = {
    pa.uint8(): "short",
    pa.uint16(): "integer",
    pa.uint32(): "long",
    pa.uint64(): "decimal(20,0)",
    pa.float16(): "float",
    pa.date64(): "date",
}
_DECIMAL = re.compile(r"decimal\(\s*([0-9]+)\s*,\s*(-?[0-9]+)\s*\)")
_MOST_DIGITS = 38
_NOTHING = "nothing was written"


def schema_json(schema: pa.Schema, *, like: str | None = None) -> str:
    """The schema in Delta's JSON. What `like`, the schema before, says of a column beside its type stays said.

    >>> schema_json(pa.schema([("id", pa.uint8())]))
    '{"type":"struct","fields":[{"name":"id","type":"short","nullable":true,"metadata":{}}]}'
    """
    repeated = [name for name, times in Counter(n.lower() for n in schema.names).items() if times > 1]
    if repeated:
        same = ", ".join(repr(n) for n in schema.names if n.lower() == repeated[0])
        raise SchemaMismatchError(
            f"the columns {same} are one to Delta, which does not tell upper case from lower",
            in_place=_NOTHING,
            hint="rename one of them",
        )
    said = {field["name"]: field["metadata"] for field in json.loads(like)["fields"]} if like else {}
    fields = [{**_field(f, f.name), "metadata": said.get(f.name, {})} for f in schema]
    return json.dumps({"type": "struct", "fields": fields}, ensure_ascii=False, separators=(",", ":"))


def arrow_schema(text: str) -> pa.Schema:
    """The schema of a table's metadata, in the types that its rows are given in.

    >>> arrow_schema('{"type":"struct","fields":[{"name":"id","type":"long","nullable":false,"metadata":{}}]}')
    id: int64 not null
    """
    try:
        return pa.schema([_arrow_field(field) for field in json.loads(text)["fields"]])
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        if isinstance(error, SchemaMismatchError):
            raise
        raise SchemaMismatchError(
            f"the schema of the table cannot be read: {type(error).__name__}: {error}", in_place=_NOTHING
        ) from error


def held_schema(schema: pa.Schema) -> pa.Schema:
    """The schema as a Delta table holds it: types that Delta lacks are widened, or refused.

    >>> held_schema(pa.schema([("n", pa.uint64())]))
    n: decimal128(20, 0)
    """
    return arrow_schema(schema_json(schema))


def columns_json(text: str) -> dict[str, dict[str, Any]]:
    """What the metadata of a table says of each of its columns."""
    return {field["name"]: field for field in json.loads(text)["fields"]}


def type_text(kind: Any) -> str:
    """A type as people write it.

    >>> type_text({"type": "array", "elementType": "long", "containsNull": True})
    'array<long>'
    """
    if isinstance(kind, str):
        return kind
    if kind["type"] == "array":
        return f"array<{type_text(kind['elementType'])}>"
    if kind["type"] == "map":
        return f"map<{type_text(kind['keyType'])},{type_text(kind['valueType'])}>"
    inside = ",".join(f"{field['name']}:{type_text(field['type'])}" for field in kind["fields"])
    return f"struct<{inside}>"


def needs_timestamp_ntz(schema: pa.Schema) -> bool:
    """Whether readers must know the table feature `timestampNtz`.

    >>> needs_timestamp_ntz(pa.schema([("a", pa.list_(pa.timestamp("us")))]))
    True
    """
    return any(_has_ntz(field.type) for field in schema)


def _has_ntz(kind: pa.DataType) -> bool:
    if pa.types.is_timestamp(kind):
        return kind.tz is None
    return any(_has_ntz(child) for child in _children(kind))


def _children(kind: pa.DataType) -> list[pa.DataType]:
    if isinstance(kind, pa.BaseExtensionType):
        return [kind.storage_type]
    if pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
        return [kind.value_type]
    if pa.types.is_map(kind):
        return [kind.key_type, kind.item_type]
    return [kind.field(i).type for i in range(kind.num_fields)] if pa.types.is_nested(kind) else []


def _field(field: pa.Field, path: str) -> dict[str, Any]:
    if not field.name:
        raise SchemaMismatchError("a column has no name", in_place=_NOTHING, hint="name every column")
    return {"name": field.name, "type": _delta_type(field.type, path), "nullable": field.nullable, "metadata": {}}


def _delta_type(kind: pa.DataType, path: str) -> Any:
    if kind in _NAMES:
        return _NAMES[kind]
    if kind in _WIDER:
        return _WIDER[kind]
    if isinstance(kind, pa.BaseExtensionType):
        return _delta_type(kind.storage_type, path)
    if pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
        return _delta_type(kind.value_type, path)
    if pa.types.is_decimal(kind) and kind.precision <= _MOST_DIGITS and 0 <= kind.scale <= kind.precision:
        return f"decimal({kind.precision},{kind.scale})"
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return "string"
    if pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind) or pa.types.is_fixed_size_binary(kind):
        return "binary"
    if pa.types.is_timestamp(kind):  # nanoseconds too: each value is cast, and refused if it has more than Delta keeps
        return "timestamp_ntz" if kind.tz is None else "timestamp"
    if pa.types.is_struct(kind):
        return {"type": "struct", "fields": [_field(f, f"{path}.{f.name}") for f in kind]}
    if pa.types.is_map(kind):
        return {
            "type": "map",
            "keyType": _delta_type(kind.key_type, f"{path}.key"),
            "valueType": _delta_type(kind.item_type, f"{path}.value"),
            "valueContainsNull": kind.item_field.nullable,
        }
    if pa.types.is_nested(kind) and kind.num_fields == 1:  # a list in any of Arrow's layouts
        element = kind.field(0)
        return {
            "type": "array",
            "elementType": _delta_type(element.type, f"{path}.element"),
            "containsNull": element.nullable,
        }
    raise SchemaMismatchError(
        f'column "{path}": a Delta table has no type for {kind}',
        in_place=_NOTHING,
        hint="cast the column to text or to a number, or leave it out",
    )


def _arrow_field(field: Mapping[str, Any]) -> pa.Field:
    return pa.field(field["name"], _arrow_type(field["type"], field["name"]), bool(field.get("nullable", True)))


def _arrow_type(kind: Any, path: str) -> pa.DataType:
    if isinstance(kind, str):
        if kind in _PLAIN:
            return _PLAIN[kind]
        if kind == "decimal":
            return pa.decimal128(10, 0)
        if found := _DECIMAL.fullmatch(kind):
            return pa.decimal128(int(found[1]), int(found[2]))
    elif kind["type"] == "struct":
        return pa.struct([_arrow_field(field) for field in kind["fields"]])
    elif kind["type"] == "array":
        element = _arrow_type(kind["elementType"], f"{path}.element")
        return pa.list_(pa.field("element", element, bool(kind.get("containsNull", True))))
    elif kind["type"] == "map":
        value = _arrow_type(kind["valueType"], f"{path}.value")
        return pa.map_(
            pa.field("key", _arrow_type(kind["keyType"], f"{path}.key"), nullable=False),
            pa.field("value", value, bool(kind.get("valueContainsNull", True))),
        )
    raise SchemaMismatchError(
        f'column "{path}" has the type {kind!r}, which this version does not know', in_place=_NOTHING
    )
