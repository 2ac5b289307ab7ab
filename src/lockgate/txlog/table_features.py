"""What Delta's protocol asks of a reader and a writer of a table: each feature is kept, or refused by its name.

A feature that a table lists and does not use (Delta calls it supported, but not active) asks nothing of anybody, and a
table with an old protocol version lists all that such a version can have. So a feature that is not kept here is
refused where it is in use, and where being listed alone binds a writer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from lockgate.errors import DamagedLog, SchemaMismatchError, UnsupportedFeature
from lockgate.txlog.actions import Metadata, Protocol
from lockgate.txlog.column_mapping import mapping_mode, schema_fields
from lockgate.txlog.features import READER_FEATURES, WRITER_FEATURES
from lockgate.txlog.partition_values import refuse_partition_types
from lockgate.txlog.schema_json import arrow_schema

Use = Callable[[Mapping[str, str], list[dict[str, Any]]], bool]

_READER_VERSIONS: dict[int, tuple[str, ...]] = {1: (), 2: ("columnMapping",)}
_WRITER_VERSIONS: dict[int, tuple[str, ...]] = {
    1: (),
    2: ("appendOnly", "invariants"),
    3: ("checkConstraints",),
    4: ("changeDataFeed", "generatedColumns"),
    5: ("columnMapping",),
    6: ("identityColumns",),
}

# Kept right whenever they are listed.
KEPT = READER_FEATURES | WRITER_FEATURES


def _property(name: str) -> Use:
    return lambda configuration, _fields: configuration.get(name, "false").lower() == "true"


def _column_key(*names: str) -> Use:
    return lambda _configuration, fields: any(name in field.get("metadata", {}) for field in fields for name in names)


def _column_type(name: str) -> Use:
    return lambda _configuration, fields: any(field["type"] == name for field in fields)


def _mapped_by_id(configuration: Mapping[str, str], _fields: list[dict[str, Any]]) -> bool:
    """Columns that are mapped by name can be read; by id they must be looked up in each file anew."""
    return mapping_mode(configuration) == "id"


# Refused where they are in use; listed and unused, they ask for nothing.
REFUSED_IN_USE: dict[str, Use] = {
    "changeDataFeed": _property("delta.enableChangeDataFeed"),
    "generatedColumns": _column_key("delta.generationExpression"),
    "allowColumnDefaults": _column_key("CURRENT_DEFAULT"),
    "identityColumns": _column_key("delta.identity.start", "delta.identity.step"),
    "columnMapping": _mapped_by_id,
    "typeWidening": _column_key("delta.typeChanges"),
    "icebergCompatV1": _property("delta.enableIcebergCompatV1"),
    "icebergCompatV2": _property("delta.enableIcebergCompatV2"),
    "variantType": _column_type("variant"),
}
# Features that had other names while they were tried out.
_PREVIEWS = {"typeWidening-preview": "typeWidening", "variantType-preview": "variantType"}


def features_of(protocol: Protocol) -> list[str]:
    """The features of a table by name; those that an old protocol version stands for are spelled out.

    >>> features_of(Protocol(1, 3))
    ['appendOnly', 'invariants', 'checkConstraints']
    """
    found: dict[str, None] = {}
    for version, listed, legacy, newest in (
        (protocol.min_reader_version, protocol.reader_features, _READER_VERSIONS, 3),
        (protocol.min_writer_version, protocol.writer_features, _WRITER_VERSIONS, 7),
    ):
        if version == newest:
            found.update(dict.fromkeys(listed or ()))
        else:
            found.update(dict.fromkeys(name for at, names in legacy.items() if at <= version for name in names))
    return list(found)


def require_supported(protocol: Protocol, metadata: Metadata, where: str) -> None:
    """Refuse a table that needs what is not kept here, with the feature's name."""
    _check_versions(protocol, where)
    fields = list(all_fields(metadata))
    for feature in features_of(protocol):
        name = _PREVIEWS.get(feature, feature)
        if name in KEPT:
            continue
        used = REFUSED_IN_USE.get(name)
        if used is None or used(metadata.configuration, fields):
            raise refused(feature, where)
    if metadata.format.provider.lower() != "parquet":
        raise UnsupportedFeature(
            f"{where} keeps its rows as {metadata.format.provider}; only Parquet is known",
            feature=metadata.format.provider,
        )
    _check_schema(metadata, fields, where)


def is_used(feature: str, metadata: Metadata) -> bool:
    """Whether a table does more with a feature than list it. One that nobody knows counts as used."""
    used = REFUSED_IN_USE.get(_PREVIEWS.get(feature, feature))
    return used is None or used(metadata.configuration, list(all_fields(metadata)))


def refused(feature: str, where: str) -> UnsupportedFeature:
    return UnsupportedFeature(
        f"{where} uses the Delta feature {feature}, which Lockgate does not support",
        feature=feature,
        hint=f"drop the feature with the system that wrote the table (ALTER TABLE … DROP FEATURE {feature}), "
        "or leave the table where it is",
    )


def all_fields(metadata: Metadata) -> Iterator[dict[str, Any]]:
    """Every column and nested field of the schema. Elements of arrays and maps are there by their type alone."""
    stack: list[Any] = list(schema_fields(metadata))
    while stack:
        field = stack.pop()
        if not isinstance(field.get("metadata"), dict):
            field = {**field, "metadata": {}}
        yield field
        stack += _inside(field["type"])


def _inside(type_: Any) -> list[dict[str, Any]]:
    if not isinstance(type_, dict):
        return []
    match type_.get("type"):
        case "struct":
            return list(type_.get("fields", ()))
        case "array":
            return [{"name": "element", "type": type_.get("elementType")}]
        case "map":
            return [{"name": "key", "type": type_.get("keyType")}, {"name": "value", "type": type_.get("valueType")}]
        case _:
            return []


def _check_versions(protocol: Protocol, where: str) -> None:
    reader, writer = protocol.min_reader_version, protocol.min_writer_version
    if not 1 <= reader <= 3 or not 1 <= writer <= 7:
        raise UnsupportedFeature(
            f"{where} needs Delta's protocol version {reader} for readers and {writer} for writers; "
            "known are 1 to 3 and 1 to 7",
            feature=f"protocol({reader},{writer})",
        )
    if reader == 3 and (writer != 7 or protocol.reader_features is None or protocol.writer_features is None):
        raise DamagedLog(f"{where} has reader version 3, which needs writer version 7 and both lists of features")
    if writer == 7 and protocol.writer_features is None:
        raise DamagedLog(f"{where} has writer version 7 and no list of writer features")


def _check_schema(metadata: Metadata, fields: list[dict[str, Any]], where: str) -> None:
    try:
        schema = arrow_schema(metadata.schema_string)
    except SchemaMismatchError as error:
        types = sorted({str(field["type"]) for field in fields if isinstance(field["type"], str)})
        raise UnsupportedFeature(
            f"{where} has a column that cannot be read: {error.message}", feature=", ".join(types)
        ) from error
    columns = [field["name"] for field in schema_fields(metadata)]
    for column in metadata.partition_columns:
        if column not in columns:
            raise DamagedLog(f"{where} is partitioned by {column!r}, which is no column of its schema")
    try:
        refuse_partition_types(schema, tuple(metadata.partition_columns))
    except SchemaMismatchError as error:
        raise UnsupportedFeature(f"{where}: {error.message}", feature="partition column of binary") from error
    folded = [column.casefold() for column in columns]
    if len(set(folded)) < len(folded):
        raise DamagedLog(f"{where} has two columns whose names differ in case alone")
