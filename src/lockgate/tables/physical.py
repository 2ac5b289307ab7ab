"""Columns of a table under the names that they have in its data files, and back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa

from lockgate.txlog.actions import Metadata
from lockgate.txlog.column_mapping import PHYSICAL_NAME, mapping_mode, physical_names


def physical_metadata(metadata: Metadata) -> Metadata:
    """The metadata as if the table's columns, nested ones too, were named as its files name them."""
    if mapping_mode(metadata.configuration) == "none":
        return metadata
    names = physical_names(metadata)
    schema = _renamed(json.loads(metadata.schema_string))
    return replace(
        metadata,
        schema_string=json.dumps(schema),
        partition_columns=tuple(names[column] for column in metadata.partition_columns),
    )


def with_logical_names(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """The same rows under the names of `schema`, which has the same columns in the same order."""
    columns = [
        pa.chunked_array([chunk.view(field.type) for chunk in column.chunks], field.type)
        if pa.types.is_nested(field.type)
        else column
        for column, field in zip(rows.columns, schema, strict=True)
    ]
    return pa.Table.from_arrays(columns, names=schema.names)


def _renamed(type_: Any) -> Any:
    if not isinstance(type_, Mapping):
        return type_
    match type_.get("type"):
        case "struct":
            return {**type_, "fields": [_renamed_field(field) for field in type_["fields"]]}
        case "array":
            return {**type_, "elementType": _renamed(type_["elementType"])}
        case "map":
            return {**type_, "keyType": _renamed(type_["keyType"]), "valueType": _renamed(type_["valueType"])}
        case _:
            return type_


def _renamed_field(field: Mapping[str, Any]) -> dict[str, Any]:
    name = (field.get("metadata") or {}).get(PHYSICAL_NAME, field["name"])
    return {**field, "name": name, "type": _renamed(field["type"])}
