"""How the fields of each action are spelled in Delta's JSON, in one table, and how dicts become records by it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from lockgate.errors import ValidationError
from lockgate.txlog.actions import (
    Action,
    Add,
    CommitInfo,
    DeletionVector,
    DomainMetadata,
    Format,
    Metadata,
    Protocol,
    Remove,
    Txn,
)


class Kind(NamedTuple):
    """What a JSON value must be."""

    called: str
    holds: Callable[[Any], bool]


class Field(NamedTuple):
    name: str
    spelled: str
    kind: Kind
    required: bool = False


def _texts(value: Any, *, null: bool) -> bool:
    return isinstance(value, Mapping) and all(
        isinstance(k, str) and (isinstance(v, str) or (null and v is None)) for k, v in value.items()
    )


TEXT = Kind("text", lambda v: isinstance(v, str))
NUMBER = Kind("a whole number", lambda v: type(v) is int and -(2**63) <= v < 2**63)
FLAG = Kind("true or false", lambda v: isinstance(v, bool))
TEXT_MAP = Kind("an object of texts", lambda v: _texts(v, null=False))
VALUES = Kind("an object of texts and nulls", lambda v: _texts(v, null=True))
TEXTS = Kind("a list of texts", lambda v: isinstance(v, (list, tuple)) and all(isinstance(e, str) for e in v))
VECTOR = Kind("a deletion vector", lambda v: isinstance(v, (Mapping, DeletionVector)))
FORMAT = Kind("a format", lambda v: isinstance(v, (Mapping, Format)))

_VECTOR_FIELDS = (
    Field("storage_type", "storageType", TEXT, True),
    Field("path_or_inline_dv", "pathOrInlineDv", TEXT, True),
    Field("offset", "offset", NUMBER),
    Field("size_in_bytes", "sizeInBytes", NUMBER, True),
    Field("cardinality", "cardinality", NUMBER, True),
)
_FORMAT_FIELDS = (Field("provider", "provider", TEXT, True), Field("options", "options", TEXT_MAP))
_ROW_TRACKING = (
    Field("base_row_id", "baseRowId", NUMBER),
    Field("default_row_commit_version", "defaultRowCommitVersion", NUMBER),
)

FIELDS: dict[type, tuple[Field, ...]] = {
    Add: (
        Field("path", "path", TEXT, True),
        Field("partition_values", "partitionValues", VALUES, True),
        Field("size", "size", NUMBER, True),
        Field("modification_time", "modificationTime", NUMBER, True),
        Field("data_change", "dataChange", FLAG, True),
        Field("stats", "stats", TEXT),
        Field("tags", "tags", TEXT_MAP),
        Field("deletion_vector", "deletionVector", VECTOR),
        *_ROW_TRACKING,
        Field("clustering_provider", "clusteringProvider", TEXT),
    ),
    Remove: (
        Field("path", "path", TEXT, True),
        Field("deletion_timestamp", "deletionTimestamp", NUMBER),
        Field("data_change", "dataChange", FLAG, True),
        Field("extended_file_metadata", "extendedFileMetadata", FLAG),
        Field("partition_values", "partitionValues", VALUES),
        Field("size", "size", NUMBER),
        Field("stats", "stats", TEXT),
        Field("tags", "tags", TEXT_MAP),
        Field("deletion_vector", "deletionVector", VECTOR),
        *_ROW_TRACKING,
    ),
    Metadata: (
        Field("id", "id", TEXT, True),
        Field("name", "name", TEXT),
        Field("description", "description", TEXT),
        Field("format", "format", FORMAT, True),
        Field("schema_string", "schemaString", TEXT, True),
        Field("partition_columns", "partitionColumns", TEXTS, True),
        Field("configuration", "configuration", TEXT_MAP, True),
        Field("created_time", "createdTime", NUMBER),
    ),
    Protocol: (
        Field("min_reader_version", "minReaderVersion", NUMBER, True),
        Field("min_writer_version", "minWriterVersion", NUMBER, True),
        Field("reader_features", "readerFeatures", TEXTS),
        Field("writer_features", "writerFeatures", TEXTS),
    ),
    Txn: (
        Field("app_id", "appId", TEXT, True),
        Field("version", "version", NUMBER, True),
        Field("last_updated", "lastUpdated", NUMBER),
    ),
    DomainMetadata: (
        Field("domain", "domain", TEXT, True),
        Field("configuration", "configuration", TEXT, True),
        Field("removed", "removed", FLAG, True),
    ),
}
_BY_KEY: dict[str, type] = {kind.key: kind for kind in FIELDS}  # type: ignore[attr-defined]
_KNOWN_KEYS = (*_BY_KEY, "commitInfo")


def write_action(action: Action) -> dict[str, Any]:
    if isinstance(action, CommitInfo):
        return dict(action.info)
    return _written(action, FIELDS[type(action)])


def _written(record: Any, fields: tuple[Field, ...]) -> dict[str, Any]:
    body: dict[str, Any] = {}
    for field in fields:
        value = getattr(record, field.name)
        if value is None:
            continue
        if isinstance(value, DeletionVector):
            value = _written(value, _VECTOR_FIELDS)
        elif isinstance(value, Format):
            value = _written(value, _FORMAT_FIELDS)
        elif isinstance(value, Mapping):
            value = dict(value)
        elif field.kind is TEXTS:
            value = list(value)
        body[field.spelled] = value
    return body


def vector_body(vector: DeletionVector) -> dict[str, Any]:
    return _written(vector, _VECTOR_FIELDS)


def vector_from(body: Mapping[str, Any]) -> DeletionVector:
    return DeletionVector(**_read("deletionVector", body, _VECTOR_FIELDS, strict=False))


def read_action(line: Mapping[str, Any], *, strict: bool) -> Action:
    if len(line) != 1:
        raise _refused(f"an action has exactly one key, not {sorted(map(str, line))}")
    key, body = next(iter(line.items()))
    if key not in _KNOWN_KEYS:
        raise _refused(f"there is no action {key!r}; the actions are {', '.join(_KNOWN_KEYS)}")
    if not isinstance(body, Mapping):
        raise _refused(f"the action {key} holds {body!r:.80}, not an object")
    if key == "commitInfo":
        return CommitInfo(dict(body))
    kind = _BY_KEY[key]
    if strict:
        unknown = set(body) - {f.spelled for f in FIELDS[kind]}
        if unknown:
            raise _refused(f"the action {key} has fields that are not known: {', '.join(sorted(map(str, unknown)))}")
    action: Action = kind(**_read(key, body, FIELDS[kind], strict=strict))
    return action


def _read(key: str, body: Mapping[str, Any], fields: tuple[Field, ...], *, strict: bool) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for field in fields:
        value = body.get(field.spelled)
        if value is None:
            if field.required:
                raise _refused(f"an action {key} has no {field.spelled}: {dict(body)!r:.120}")
            continue
        if not field.kind.holds(value):
            raise _refused(f"{field.spelled} of an action {key} is {value!r:.80}, not {field.kind.called}")
        if field.kind is VECTOR and isinstance(value, Mapping):
            value = DeletionVector(**_read("deletionVector", value, _VECTOR_FIELDS, strict=strict))
        elif field.kind is FORMAT and isinstance(value, Mapping):
            value = Format(**_read("format", value, _FORMAT_FIELDS, strict=strict))
        elif field.kind is TEXTS:
            value = tuple(value)
        values[field.name] = value
    return values


def _refused(message: str) -> ValidationError:
    return ValidationError(message, in_place="nothing was committed")
