"""Many lines of existing commits at once: Arrow parses those that say which files join or leave a table.

A million such lines are common, so nothing is done line by line where Arrow understands them. Where it does not,
each is read on its own, which says exactly what is wrong with which.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.json as pj

from lockgate.errors import DamagedLog, ValidationError
from lockgate.txlog.actions import DeletionVector, from_json, json_text
from lockgate.txlog.existing_files import ADDS, REMOVES, of_records, values_text

_TAGS = re.compile(rb'"tags":(\{"[^{}]*\})')
_VECTOR = pa.struct(
    [
        ("storageType", pa.string()),
        ("pathOrInlineDv", pa.string()),
        ("offset", pa.int64()),
        ("sizeInBytes", pa.int64()),
        ("cardinality", pa.int64()),
        ("maxRowIndex", pa.int64()),
    ]
)
_SPELLED = {
    "path": "path",
    "data_change": "dataChange",
    "partition_values": "partitionValues",
    "size": "size",
    "stats": "stats",
    "tags": "tags",
    "deletion_vector": "deletionVector",
    "base_row_id": "baseRowId",
    "default_row_commit_version": "defaultRowCommitVersion",
    "modification_time": "modificationTime",
    "clustering_provider": "clusteringProvider",
    "deletion_timestamp": "deletionTimestamp",
    "extended_file_metadata": "extendedFileMetadata",
}
_REQUIRED = {
    "add": ("path", "partition_values", "size", "modification_time", "data_change"),
    "remove": ("path", "data_change"),
}
SCHEMAS = {"add": ADDS, "remove": REMOVES}


def parsed_lines(
    kind: str, lines: Sequence[bytes], versions: Sequence[int], partition_columns: Sequence[str], where: str
) -> pa.Table:
    """The table of these lines, all of which are actions of one kind."""
    if not lines:
        return SCHEMAS[kind].empty_table()
    found = _at_once(kind, lines, versions, partition_columns)
    return found if found is not None else _one_by_one(kind, lines, versions, where)


def _at_once(
    kind: str, lines: Sequence[bytes], versions: Sequence[int], partition_columns: Sequence[str]
) -> pa.Table | None:
    """All lines by Arrow; None where any of them is not just as expected."""
    text = b"\n".join(lines)
    fields = [_field(name, text, partition_columns, SCHEMAS[kind]) for name in SCHEMAS[kind].names if name in _SPELLED]
    options = pj.ParseOptions(explicit_schema=pa.schema([(kind, pa.struct(fields))]), unexpected_field_behavior="error")
    try:
        table = pj.read_json(
            pa.BufferReader(text),
            parse_options=options,
            read_options=pj.ReadOptions(use_threads=False, block_size=len(text) + 1),
        )
        table.validate(full=True)
    except pa.ArrowInvalid:
        return None
    if table.num_rows != len(lines):
        return None
    actions = table.column(kind).combine_chunks()
    if isinstance(actions, pa.ChunkedArray):
        actions = pa.concat_arrays(actions.chunks)
    columns = {name: actions.field(_SPELLED[name]) for name in SCHEMAS[kind].names if name in _SPELLED}
    if actions.null_count or any(columns[name].null_count for name in _REQUIRED[kind]):
        return None
    columns["version"] = pa.array(versions, pa.int64())
    if kind == "remove":
        columns["line"] = pa.array([line.rstrip().decode() for line in lines], pa.string())
    columns["partition_values"] = _values(columns["partition_values"])
    columns["tags"] = _tags(columns["tags"])
    vectors = _vectors(columns["deletion_vector"])
    if vectors is None:
        return None
    columns["deletion_vector"], columns["deletion_vector_id"] = vectors
    return pa.table([columns[name] for name in SCHEMAS[kind].names], schema=SCHEMAS[kind])


def _field(name: str, text: bytes, partition_columns: Sequence[str], schema: pa.Schema) -> tuple[str, pa.DataType]:
    spelled = _SPELLED[name]
    match name:
        case "partition_values":
            return spelled, pa.struct([(column, pa.string()) for column in partition_columns])
        case "tags":
            return spelled, pa.struct([(key, pa.string()) for key in _tag_names(text)])
        case "deletion_vector":
            return spelled, _VECTOR
        case _:
            return spelled, schema.field(name).type


def _tag_names(text: bytes) -> list[str]:
    names: dict[str, None] = {}
    for found in set(_TAGS.findall(text)):
        try:
            names.update(dict.fromkeys(json.loads(found)))
            "".join(names).encode()
        except ValueError:  # also a half of a surrogate pair, which is no text
            return []  # Arrow will stumble over them, and each line is read on its own
    return list(names)


def _values(values: pa.StructArray) -> pa.Array:
    """Partition values as JSON text. They repeat themselves, so each combination is spelled once."""
    names = values.type.names
    if not names:
        return _where_valid(values, "{}")
    spelled: dict[tuple[str | None, ...], str] = {}
    texts = []
    for row in zip(*(values.field(name).to_pylist() for name in names), strict=True):
        text = spelled.get(row)
        if text is None:
            text = spelled[row] = values_text(dict(zip(names, row, strict=True)))
        texts.append(text)
    return _masked(pa.array(texts, pa.string()), values)


def _tags(tags: pa.StructArray) -> pa.Array:
    names = tags.type.names
    if not names:
        return _where_valid(tags, "{}")
    rows = zip(*(tags.field(name).to_pylist() for name in names), strict=True)
    texts = [json_text({n: v for n, v in zip(names, row, strict=True) if v is not None}) for row in rows]
    return _masked(pa.array(texts, pa.string()), tags)


def _vectors(vectors: pa.StructArray) -> tuple[pa.Array, pa.Array] | None:
    """Deletion vectors as JSON text, and their ids; None where one is not whole."""
    if vectors.null_count == len(vectors):
        nothing = pa.nulls(len(vectors), pa.string())
        return nothing, nothing
    texts: list[str | None] = []
    ids: list[str | None] = []
    for body in vectors.to_pylist():
        if body is None:
            texts.append(None)
            ids.append(None)
            continue
        if any(body[name] is None for name in ("storageType", "pathOrInlineDv", "sizeInBytes", "cardinality")):
            return None
        text, id_ = vector_texts(body)
        texts.append(text)
        ids.append(id_)
    return pa.array(texts, pa.string()), pa.array(ids, pa.string())


def vector_texts(body: dict[str, Any]) -> tuple[str, str]:
    """A deletion vector as the log stores it, and its id."""
    known = {name: value for name, value in body.items() if value is not None and name != "maxRowIndex"}
    vector = DeletionVector(
        known["storageType"],
        known["pathOrInlineDv"],
        known["sizeInBytes"],
        known["cardinality"],
        known.get("offset"),
    )
    return json_text(known), vector.unique_id


def _where_valid(array: pa.Array, text: str) -> pa.Array:
    return _masked(pa.repeat(pa.scalar(text, pa.string()), len(array)), array)


def _masked(texts: pa.Array, valid: pa.Array) -> pa.Array:
    if not valid.null_count:
        return texts
    import pyarrow.compute as pc

    return pc.if_else(valid.is_valid(), texts, pa.scalar(None, pa.string()))


def _one_by_one(kind: str, lines: Sequence[bytes], versions: Sequence[int], where: str) -> pa.Table:
    records = []
    for line, version in zip(lines, versions, strict=True):
        records.append(read_line(line, where, version)[1])
    return of_records(records, versions, SCHEMAS[kind])


def read_line(line: bytes, where: str, version: int, *, name: str | None = None) -> tuple[str, Any]:
    """One line of a commit as its key and record; what stands there, for an action that the log has no record for."""
    name = f"{where}/{name or f'{version:020}.json'}"
    try:
        value = json.loads(line, object_pairs_hook=_without_repeats, parse_constant=_no_number)
        if b"\\u" in line:
            json_text(value).encode()  # half of a surrogate pair is no text
    except (ValueError, RecursionError) as error:
        raise DamagedLog(
            f"{name} has a line that is not JSON ({_short(error)}): {_shown(line)}",
            hint="restore the file from a copy of the table; a commit file is never edited or cut",
        ) from error
    return _action(value, line, name)


def _action(value: Any, line: bytes, name: str) -> tuple[str, Any]:
    if not isinstance(value, dict):
        raise DamagedLog(f"{name} has a line that is no action: {_shown(line)}")
    said = {key: body for key, body in value.items() if body is not None}
    known = [key for key in said if key in _ACTIONS]
    if len(known) > 1:
        raise DamagedLog(f"{name} has a line with several actions ({', '.join(known)}): {_shown(line)}")
    if not known:
        # Clients must pass over what they do not know, says the protocol; sidecars are for checkpoints alone.
        return next(iter(said.items()), ("", None))
    try:
        return known[0], from_json({known[0]: said[known[0]]})
    except ValidationError as error:
        raise DamagedLog(f"{name}: {error.message}") from error


_ACTIONS = {"add", "remove", "metaData", "protocol", "txn", "commitInfo", "domainMetadata"}


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key stands twice in one object")
    return found


def _no_number(text: str) -> Any:
    raise ValueError(f"{text} is no JSON number")


def _short(error: BaseException) -> str:
    return "nested too deeply" if isinstance(error, RecursionError) else str(error)[:120]


def _shown(line: bytes) -> str:
    text = line.decode(errors="replace")
    return repr(text if len(text) <= 80 else text[:80] + "…")
