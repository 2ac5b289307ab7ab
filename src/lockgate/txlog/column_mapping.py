"""Column mapping: the names that columns have in data files, beside those that people see."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from lockgate.errors import DamagedLog
from lockgate.txlog.actions import Metadata

MODE = "delta.columnMapping.mode"
PHYSICAL_NAME = "delta.columnMapping.physicalName"
FIELD_ID = "delta.columnMapping.id"
_MODES = ("none", "name", "id")


def mapping_mode(configuration: Mapping[str, str]) -> str:
    """How columns are found in data files: `none` (by name), `name` (by physical name) or `id` (by Parquet field id).

    >>> mapping_mode({})
    'none'
    """
    mode = configuration.get(MODE, "none").lower()
    if mode not in _MODES:
        raise DamagedLog(f"the table's property {MODE} is {mode!r}; it can be {', '.join(_MODES)}")
    return mode


def physical_names(metadata: Metadata) -> dict[str, str]:
    """The name in data files of each top-level column, by its name in the schema.

    >>> physical_names(Metadata("t", '{"type":"struct","fields":[{"name":"a","type":"long"}]}'))
    {'a': 'a'}
    """
    mapped = mapping_mode(metadata.configuration) != "none"
    return {field["name"]: _physical(field, mapped) for field in schema_fields(metadata)}


def schema_fields(metadata: Metadata) -> list[dict[str, Any]]:
    """The top-level fields of the table's schema, as the metadata spells them."""
    try:
        fields = json.loads(metadata.schema_string)["fields"]
        if all(isinstance(field["name"], str) and "type" in field for field in fields):
            return list(fields)
    except (ValueError, KeyError, TypeError, RecursionError):
        pass
    raise DamagedLog(f"the table's schema is no Delta schema: {metadata.schema_string[:80]!r}")


def _physical(field: Mapping[str, Any], mapped: bool) -> str:
    if not mapped:
        return str(field["name"])
    name = (field.get("metadata") or {}).get(PHYSICAL_NAME)
    if not isinstance(name, str) or not name:
        raise DamagedLog(f"the table maps columns, and its column {field['name']!r} has no {PHYSICAL_NAME}")
    return name
