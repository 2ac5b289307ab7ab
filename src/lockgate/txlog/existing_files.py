"""The shape in which files that join and leave a table are read from an existing log: two Arrow tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from lockgate.txlog.action_json import vector_body
from lockgate.txlog.actions import Add, Remove, json_text, to_json

# Objects are JSON text: the log stores them so, and few rows need more than a look at them.
_BOTH = [
    ("version", pa.int64()),
    ("path", pa.string()),
    ("data_change", pa.bool_()),
    ("partition_values", pa.string()),
    ("size", pa.int64()),
    ("stats", pa.string()),
    ("tags", pa.string()),
    ("deletion_vector", pa.string()),
    ("deletion_vector_id", pa.string()),
    ("base_row_id", pa.int64()),
    ("default_row_commit_version", pa.int64()),
]
ADDS = pa.schema([*_BOTH, ("modification_time", pa.int64()), ("clustering_provider", pa.string())])
REMOVES = pa.schema(
    [*_BOTH, ("deletion_timestamp", pa.int64()), ("extended_file_metadata", pa.bool_()), ("line", pa.string())]
)


def values_text(values: dict[str, str | None]) -> str:
    """Partition values as the log stores them. An empty text stands for NULL, says Delta.

    >>> values_text({"day": "2026-01-01", "city": ""})
    '{"day":"2026-01-01","city":null}'
    """
    return json_text({name: value or None for name, value in values.items()})


def of_records(records: Sequence[Add | Remove], versions: Sequence[int], schema: pa.Schema) -> pa.Table:
    """The same table from records, for lines that are rare or odd."""
    columns: dict[str, list[Any]] = {name: [] for name in schema.names}
    for record, version in zip(records, versions, strict=True):
        for name, values in columns.items():
            values.append(version if name == "version" else _value(record, name))
    return pa.table(columns, schema=schema)


def _value(record: Add | Remove, name: str) -> Any:
    if name == "line":
        return to_json(record)
    value = getattr(record, name)
    if value is None:
        return None
    if name == "partition_values":
        return values_text(dict(value))
    if name == "deletion_vector":
        return json_text(vector_body(value))
    return json_text(dict(value)) if name == "tags" else value
