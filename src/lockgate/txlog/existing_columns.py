"""The rows of files in a Parquet checkpoint, brought into the shape that commits have."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lockgate.errors import ValidationError
from lockgate.txlog.actions import json_text
from lockgate.txlog.existing_files import ADDS, REMOVES, values_text
from lockgate.txlog.existing_lines import vector_texts
from lockgate.txlog.existing_stats import stats_texts

_SCHEMAS = {"add": ADDS, "remove": REMOVES}
_PLAIN = {
    "path": "path",
    "data_change": "dataChange",
    "size": "size",
    "base_row_id": "baseRowId",
    "default_row_commit_version": "defaultRowCommitVersion",
    "modification_time": "modificationTime",
    "clustering_provider": "clusteringProvider",
    "deletion_timestamp": "deletionTimestamp",
    "extended_file_metadata": "extendedFileMetadata",
}
_REQUIRED = {"add": ("path", "size", "modification_time"), "remove": ("path",)}


def file_rows(kind: str, column: pa.ChunkedArray, version: int) -> pa.Table:
    """The files that the checkpoint's column `add` or `remove` lists."""
    if not pa.types.is_struct(column.type):
        raise ValidationError(f"the column {kind} is no struct")
    rows = pa.concat_arrays(column.filter(pc.is_valid(column)).chunks or [pa.array([], column.type)])
    names = rows.type.names
    columns: dict[str, pa.Array] = {}
    for name, spelled in _PLAIN.items():
        if name in _SCHEMAS[kind].names:
            type_ = _SCHEMAS[kind].field(name).type
            columns[name] = rows.field(spelled).cast(type_) if spelled in names else pa.nulls(len(rows), type_)
    for name in _REQUIRED[kind]:
        if columns[name].null_count:
            raise ValidationError(f"{columns[name].null_count} rows of {kind} have no {_PLAIN[name]}")
    columns["version"] = pa.repeat(pa.scalar(version, pa.int64()), len(rows))
    columns["data_change"] = pc.coalesce(columns["data_change"], pa.scalar(False))
    columns["partition_values"] = _maps(rows, "partitionValues", values_text, "{}" if kind == "add" else None)
    columns["tags"] = _maps(rows, "tags", json_text, None)
    columns["stats"] = _stats(rows)
    columns["deletion_vector"], columns["deletion_vector_id"] = _vectors(rows)
    if kind == "remove":
        columns["line"] = _lines(columns)
    return pa.table([columns[name] for name in _SCHEMAS[kind].names], schema=_SCHEMAS[kind])


def _lines(columns: dict[str, pa.Array]) -> pa.Array:
    """Tombstones as the lines that commits have for them."""
    vectors = columns["deletion_vector"].to_pylist()
    bodies = zip(
        columns["path"].to_pylist(),
        columns["deletion_timestamp"].to_pylist(),
        columns["data_change"].to_pylist(),
        vectors,
        strict=True,
    )
    texts = []
    for path, time, change, vector in bodies:
        body = {"path": path, "deletionTimestamp": time or 0, "dataChange": change}
        if vector is not None:
            body["deletionVector"] = json.loads(vector)
        texts.append(json_text({"remove": body}))
    return pa.array(texts, pa.string())


def _maps(rows: pa.StructArray, name: str, spelled: Any, missing: str | None) -> pa.Array:
    """A map as JSON text. Few combinations repeat themselves in many rows, so each is spelled once."""
    if name not in rows.type.names:
        return pa.repeat(pa.scalar(missing, pa.string()), len(rows))
    maps = rows.field(name)
    if not pa.types.is_map(maps.type):
        raise ValidationError(f"{name} is no map")
    known: dict[Any, str | None] = {None: missing, (): "{}"}
    texts = []
    for pairs in maps.to_pylist():
        key = None if pairs is None else tuple(pairs)
        if key not in known:
            known[key] = spelled(dict(key or ()))
        texts.append(known[key])
    return pa.array(texts, pa.string())


def _stats(rows: pa.StructArray) -> pa.Array:
    text = rows.field("stats").cast(pa.string()) if "stats" in rows.type.names else pa.nulls(len(rows), pa.string())
    if "stats_parsed" not in rows.type.names or not text.null_count:
        return text
    return pc.coalesce(text, stats_texts(rows.field("stats_parsed")))


def _vectors(rows: pa.StructArray) -> tuple[pa.Array, pa.Array]:
    nothing = pa.nulls(len(rows), pa.string())
    if "deletionVector" not in rows.type.names or rows.field("deletionVector").null_count == len(rows):
        return nothing, nothing
    pairs = [
        vector_texts(body) if body is not None and body.get("storageType") is not None else (None, None)
        for body in rows.field("deletionVector").to_pylist()
    ]
    return pa.array([text for text, _ in pairs], pa.string()), pa.array([id_ for _, id_ in pairs], pa.string())
