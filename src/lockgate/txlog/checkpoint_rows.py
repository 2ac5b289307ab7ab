"""The rows of a checkpoint: one an action, in Delta's schema."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lockgate.txlog import statements
from lockgate.txlog.retention import vacuumed_up_to
from lockgate.txlog.store import Store

_TEXT, _LONG, _INT, _FLAG = pa.string(), pa.int64(), pa.int32(), pa.bool_()
_TEXTS = pa.map_(_TEXT, _TEXT)
_LIST = pa.list_(pa.field("element", _TEXT))
_VECTOR = pa.struct(
    [
        ("storageType", _TEXT), ("pathOrInlineDv", _TEXT), ("offset", _INT), ("sizeInBytes", _INT),
        ("cardinality", _LONG),
    ]
)  # fmt: skip
_ROW_TRACKING = [("baseRowId", _LONG), ("defaultRowCommitVersion", _LONG)]
SCHEMA = pa.schema(
    [
        ("txn", pa.struct([("appId", _TEXT), ("version", _LONG), ("lastUpdated", _LONG)])),
        (
            "add",
            pa.struct(
                [
                    ("path", _TEXT), ("partitionValues", _TEXTS), ("size", _LONG), ("modificationTime", _LONG),
                    ("dataChange", _FLAG), ("stats", _TEXT), ("tags", _TEXTS), ("deletionVector", _VECTOR),
                    *_ROW_TRACKING, ("clusteringProvider", _TEXT),
                ]
            ),
        ),
        (
            "remove",
            pa.struct(
                [
                    ("path", _TEXT), ("deletionTimestamp", _LONG), ("dataChange", _FLAG),
                    ("extendedFileMetadata", _FLAG), ("partitionValues", _TEXTS), ("size", _LONG), ("stats", _TEXT),
                    ("tags", _TEXTS), ("deletionVector", _VECTOR), *_ROW_TRACKING,
                ]
            ),
        ),
        (
            "metaData",
            pa.struct(
                [
                    ("id", _TEXT), ("name", _TEXT), ("description", _TEXT),
                    ("format", pa.struct([("provider", _TEXT), ("options", _TEXTS)])),
                    ("schemaString", _TEXT), ("partitionColumns", _LIST), ("configuration", _TEXTS),
                    ("createdTime", _LONG),
                ]
            ),
        ),
        (
            "protocol",
            pa.struct(
                [
                    ("minReaderVersion", _INT), ("minWriterVersion", _INT), ("readerFeatures", _LIST),
                    ("writerFeatures", _LIST),
                ]
            ),
        ),
        ("domainMetadata", pa.struct([("domain", _TEXT), ("configuration", _TEXT), ("removed", _FLAG)])),
    ]
)  # fmt: skip
_MAPS = ("partitionValues", "tags", "configuration", "options")
_WEEK = 7 * 24 * 3600 * 1000
_UNITS = {
    "millisecond": 1, "second": 1000, "minute": 60_000, "hour": 3_600_000, "day": 86_400_000, "week": 604_800_000,
}  # fmt: skip


def checkpoint_bytes(store: Store, table_id: int, version: int) -> tuple[bytes, int]:
    """The Parquet file of a version's state, and how many actions it holds."""
    protocol = store.rows(statements.PROTOCOL_AT, table_id, version)[0][1]
    metadata = store.rows(statements.METADATA_AT, table_id, version)[0][1]
    timestamp = store.rows(statements.VERSION, table_id, version)[0][1]
    few = [json.loads(protocol), json.loads(metadata)]
    few += _newest(store.rows(statements.TXNS_AT, table_id, version), "txn", "appId")
    few += [
        each
        for each in _newest(store.rows(statements.DOMAINS_AT, table_id, version), "domainMetadata", "domain")
        if not each["domainMetadata"].get("removed")
    ]
    kept_since = timestamp - retention(few[1]["metaData"].get("configuration") or {})
    files = store.files_at(table_id, version, extra=True)
    few += _tombstones(store, files, table_id, version, kept_since)
    sink = io.BytesIO()
    pq.write_table(pa.concat_tables([_table(few), _adds(files)]), sink, compression="snappy")
    return sink.getvalue(), len(few) + files.num_rows


def retention(configuration: dict[str, str]) -> int:
    """For how many milliseconds removed files are remembered: Delta's `interval 1 week`.

    >>> retention({"delta.deletedFileRetentionDuration": "interval 2 days"})
    172800000
    """
    words = configuration.get("delta.deletedFileRetentionDuration", "").lower().split()
    if len(words) == 3 and words[0] == "interval" and words[1].isdigit():
        unit = _UNITS.get(words[2].removesuffix("s"))
        if unit:
            return int(words[1]) * unit
    return _WEEK


def _newest(rows: list[tuple[Any, ...]], key: str, name: str) -> list[dict[str, Any]]:
    found = {}
    for _, line in rows:
        action = json.loads(line)
        found[action[key][name]] = action
    return list(found.values())


def _tombstones(store: Store, files: pa.Table, table_id: int, version: int, since: int) -> list[dict[str, Any]]:
    """Files that are gone, and not so long ago that a reader of an older version could not still need to know."""
    found = {}
    vacuumed = vacuumed_up_to(store.rows, table_id, version)
    for removed, path, line in store.rows(statements.TOMBSTONES, table_id, version, since):
        if removed <= vacuumed:
            continue  # gone from disk as well
        action = json.loads(line)
        action["remove"]["dataChange"] = False
        found[path, _vector_id(action["remove"].get("deletionVector"))] = action
    if found:  # a file may have come back under its old name
        paths = pa.array([path for path, _ in found], _TEXT)
        back = files.filter(pc.is_in(files.column("path"), paths)).select(["path", "deletion_vector"])
        for row in back.to_pylist():
            found.pop((row["path"], _vector_id(json.loads(row["deletion_vector"] or "null"))), None)
    return list(found.values())


def _vector_id(vector: dict[str, Any] | None) -> tuple[Any, ...] | None:
    if not vector:
        return None
    return vector.get("storageType"), vector.get("pathOrInlineDv"), vector.get("offset")


def _table(actions: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist([{key: _ready(body) for key, body in each.items()} for each in actions], SCHEMA)


def _ready(body: dict[str, Any]) -> dict[str, Any]:
    """Arrow takes maps as lists of pairs."""
    ready: dict[str, Any] = {}
    for name, value in body.items():
        if name in _MAPS and value is not None:
            ready[name] = list(value.items())
        else:
            ready[name] = _ready(value) if name == "format" else value
    return ready


def _adds(files: pa.Table) -> pa.Table:
    """Live files as rows of actions."""
    count = files.num_rows
    kind = SCHEMA.field("add").type
    extra = [json.loads(text) if text else {} for text in files.column("extra").to_pylist()]
    children = []
    for field in kind:
        match field.name:
            case "path" | "size" | "stats":
                child = files.column(field.name).combine_chunks()
            case "modificationTime":
                child = files.column("modification_time").combine_chunks()
            case "partitionValues":
                child = _parsed(files.column("partition_values"), field.type, lambda v: list(v.items()))
            case "tags":
                child = _parsed(files.column("tags"), field.type, lambda v: list(v.items()))
            case "deletionVector":
                child = _parsed(files.column("deletion_vector"), field.type, lambda v: v)
            case "dataChange":
                child = pa.repeat(pa.scalar(False), count)
            case _:
                child = pa.array([each.get(field.name) for each in extra], field.type)
        children.append(child)
    adds = pa.StructArray.from_arrays(children, fields=list(kind))
    nothing = {name: pa.nulls(count, SCHEMA.field(name).type) for name in SCHEMA.names}
    return pa.table({**nothing, "add": adds}, schema=SCHEMA)


def _parsed(texts: pa.ChunkedArray, kind: pa.DataType, form: Callable[[Any], Any]) -> pa.Array:
    """JSON texts as values; each different text is read once."""
    encoded = texts.combine_chunks().dictionary_encode()
    values = [form(json.loads(text)) for text in encoded.dictionary.to_pylist()]
    return pa.array(values, kind).take(encoded.indices)
