"""Delta tables written by hand, line by line: what no library at hand writes, and what nobody should."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

Action = Mapping[str, Any]

SCHEMA = [
    {"name": "id", "type": "long", "nullable": True, "metadata": {}},
    {"name": "day", "type": "string", "nullable": True, "metadata": {}},
]


def protocol(reader: int = 1, writer: int = 2, features: Sequence[str] = (), readers: Sequence[str] = ()) -> Action:
    body: dict[str, Any] = {"minReaderVersion": reader, "minWriterVersion": writer}
    if reader == 3:
        body["readerFeatures"] = list(readers)
    if writer == 7:
        body["writerFeatures"] = list(features)
    return {"protocol": body}


def metadata(schema: Sequence[Action] = SCHEMA, partition_by: Sequence[str] = (), **properties: str) -> Action:
    return {
        "metaData": {
            "id": "11111111-2222-3333-4444-555555555555",
            "format": {"provider": "parquet", "options": {}},
            "schemaString": json.dumps({"type": "struct", "fields": list(schema)}),
            "partitionColumns": list(partition_by),
            "configuration": {name.replace("__", "."): value for name, value in properties.items()},
            "createdTime": 1,
        }
    }


def add(path: str, values: Mapping[str, str | None] | None = None, **more: Any) -> Action:
    body = {"path": path, "partitionValues": values or {}, "size": 10, "modificationTime": 5, "dataChange": True}
    return {"add": {**body, **more}}


def remove(path: str, **more: Any) -> Action:
    return {"remove": {"path": path, "deletionTimestamp": 7, "dataChange": True, **more}}


def info(**body: Any) -> Action:
    return {"commitInfo": {"operation": "WRITE", **body}}


def text_of(actions: Sequence[Action | str]) -> str:
    lines = [each if isinstance(each, str) else json.dumps(each, separators=(",", ":")) for each in actions]
    return "\n".join(lines) + "\n"


def write_commit(table: Path, version: int, actions: Sequence[Action | str]) -> Path:
    """One commit file; a text stands for itself."""
    folder = table / "_delta_log"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{version:020}.json"
    path.write_text(text_of(actions), encoding="utf-8")
    return path


def write_log(table: Path, *commits: Sequence[Action | str], first: int = 0) -> Path:
    for version, actions in enumerate(commits, first):
        write_commit(table, version, actions)
    return table


_MAP = pa.map_(pa.string(), pa.string())
_VECTOR = pa.struct(
    [
        ("storageType", pa.string()),
        ("pathOrInlineDv", pa.string()),
        ("offset", pa.int32()),
        ("sizeInBytes", pa.int32()),
        ("cardinality", pa.int64()),
    ]
)
_FIELDS: dict[str, list[tuple[str, pa.DataType]]] = {
    "protocol": [
        ("minReaderVersion", pa.int32()),
        ("minWriterVersion", pa.int32()),
        ("readerFeatures", pa.list_(pa.string())),
        ("writerFeatures", pa.list_(pa.string())),
    ],
    "metaData": [
        ("id", pa.string()),
        ("name", pa.string()),
        ("format", pa.struct([("provider", pa.string()), ("options", _MAP)])),
        ("schemaString", pa.string()),
        ("partitionColumns", pa.list_(pa.string())),
        ("createdTime", pa.int64()),
        ("configuration", _MAP),
    ],
    "txn": [("appId", pa.string()), ("version", pa.int64()), ("lastUpdated", pa.int64())],
    "domainMetadata": [("domain", pa.string()), ("configuration", pa.string()), ("removed", pa.bool_())],
    "add": [
        ("path", pa.string()),
        ("partitionValues", _MAP),
        ("size", pa.int64()),
        ("modificationTime", pa.int64()),
        ("dataChange", pa.bool_()),
        ("stats", pa.string()),
        ("tags", _MAP),
        ("deletionVector", _VECTOR),
    ],
    "remove": [
        ("path", pa.string()),
        ("deletionTimestamp", pa.int64()),
        ("dataChange", pa.bool_()),
        ("deletionVector", _VECTOR),
    ],
    "checkpointMetadata": [("version", pa.int64()), ("tags", _MAP)],
    "sidecar": [("path", pa.string()), ("sizeInBytes", pa.int64()), ("modificationTime", pa.int64())],
}


def checkpoint_table(actions: Sequence[Action], more: Mapping[str, Sequence[tuple[str, pa.DataType]]] = {}) -> pa.Table:
    """Actions as the rows of a Parquet checkpoint; `more` are further fields of a kind, such as stats_parsed."""
    kinds = [kind for kind in _FIELDS if any(kind in action for action in actions)]
    schema = pa.schema([(kind, pa.struct([*_FIELDS[kind], *more.get(kind, ())])) for kind in kinds])
    return pa.Table.from_pylist([_maps_as_pairs(dict(action)) for action in actions], schema=schema)


def _maps_as_pairs(action: dict[str, Any]) -> dict[str, Any]:
    """Arrow takes maps as lists of pairs."""
    for kind, body in action.items():
        fields = dict(_FIELDS[kind])
        action[kind] = {
            name: list(value.items()) if value is not None and fields.get(name) == _MAP else value
            for name, value in body.items()
        }
        if kind == "metaData":
            action[kind]["format"] = {"provider": body["format"]["provider"], "options": []}
    return action


def write_checkpoint(
    table: Path,
    version: int,
    actions: Sequence[Action],
    *,
    parts: int = 1,
    more: Mapping[str, Sequence[tuple[str, pa.DataType]]] = {},
) -> list[Path]:
    """A classic checkpoint, or one of several parts."""
    folder = table / "_delta_log"
    folder.mkdir(parents=True, exist_ok=True)
    if parts == 1:
        path = folder / f"{version:020}.checkpoint.parquet"
        pq.write_table(checkpoint_table(actions, more), path)
        return [path]
    paths = []
    for part in range(parts):
        path = folder / f"{version:020}.checkpoint.{part + 1:010}.{parts:010}.parquet"
        pq.write_table(checkpoint_table(actions[part::parts], more), path)
        paths.append(path)
    return paths


def write_v2_checkpoint(
    table: Path, version: int, actions: Sequence[Action], *, form: str, sidecars: int, classic_name: bool = False
) -> Path:
    """A manifest in JSON or Parquet; the files in `sidecars` files of their own, or in the manifest itself."""
    folder = table / "_delta_log"
    files = [action for action in actions if "add" in action or "remove" in action]
    others = [action for action in actions if action not in files]
    manifest = [{"checkpointMetadata": {"version": version}}, *others]
    for number in range(sidecars):
        name = f"3a0d65cd-4056-49b8-937b-95f9e3ee90e{number}.parquet"
        (folder / "_sidecars").mkdir(exist_ok=True)
        pq.write_table(checkpoint_table(files[number::sidecars]), folder / "_sidecars" / name)
        size = (folder / "_sidecars" / name).stat().st_size
        manifest.append({"sidecar": {"path": name, "sizeInBytes": size, "modificationTime": 1}})
    if not sidecars:
        manifest += files
    middle = "" if classic_name else ".80a083e8-7026-4e79-81be-64bd76c43a11"
    path = folder / f"{version:020}.checkpoint{middle}.{form}"
    if form == "json":
        path.write_text(text_of(manifest), encoding="utf-8")
    else:
        pq.write_table(checkpoint_table(manifest), path)
    return path
