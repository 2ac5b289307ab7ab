"""A table's columns and properties changed without a write of rows where Delta allows it, else refused by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import pyarrow as pa

from lockgate.errors import ArgumentError, SchemaMismatchError
from lockgate.merging.widening import widened
from lockgate.tables.writable import Writable
from lockgate.targets.delta_actions import schema_actions
from lockgate.targets.delta_rules import CONSTRAINT, rules_of
from lockgate.txlog.actions import Action, Metadata
from lockgate.txlog.commits import Operation
from lockgate.txlog.reading_features import BOTH, DELETION_VECTORS
from lockgate.txlog.records import Snapshot
from lockgate.txlog.schema_json import arrow_schema

_NOTHING = "nothing was written"
_TRIES = 10
# Properties that are more than a property: each turns on a feature that files or writers must then keep to.
_FEATURES = {
    "delta.columnMapping.mode": "columnMapping",
    "delta.columnMapping.maxColumnId": "columnMapping",
    "delta.enableDeletionVectors": "deletionVectors",
    "delta.enableChangeDataFeed": "changeDataFeed",
    "delta.enableRowTracking": "rowTracking",
    "delta.enableTypeWidening": "typeWidening",
    "delta.enableInCommitTimestamps": "inCommitTimestamp",
    "delta.enableIcebergCompatV1": "icebergCompatV1",
    "delta.enableIcebergCompatV2": "icebergCompatV2",
    "delta.checkpointPolicy": "v2Checkpoint",
    "delta.minReaderVersion": "the protocol",
    "delta.minWriterVersion": "the protocol",
}


def add_column(table: Writable, name: str, kind: pa.DataType) -> int:
    """The version that has the column: NULL in every row."""
    if not isinstance(kind, pa.DataType):
        raise ArgumentError(f"the type of {name!r} must be one of Arrow's, not {kind!r}", in_place=_NOTHING)

    def actions(now: Snapshot) -> list[Action]:
        schema = arrow_schema(now.metadata.schema_string)
        same = [n for n in schema.names if n.lower() == name.lower()]
        if same:
            raise SchemaMismatchError(f"{table.name} has a column {same[0]!r} already", in_place=_NOTHING)
        return schema_actions(schema.append(pa.field(name, kind)), now.metadata, now.protocol)

    return _changed(table, actions, "ADD COLUMNS", {"column": name, "type": str(kind)})


def widen_column(table: Writable, name: str, kind: pa.DataType) -> int:
    """A wider type for a column: where the table has no files yet. Else they would be of another type than the table,
    which needs the feature typeWidening."""

    def actions(now: Snapshot) -> list[Action]:
        schema = arrow_schema(now.metadata.schema_string)
        before = _column(table, schema, name)
        if before.type == kind:
            return []
        if widened(before.type, kind) != kind:
            raise SchemaMismatchError(
                f"the column {name!r} of {table.name} is {before.type}, and {kind} does not hold all its values",
                in_place=_NOTHING,
            )
        if now.files.num_rows:
            raise SchemaMismatchError(
                f"{table.name} has {now.files.num_rows:,} files in which {name!r} is {before.type}; to make it {kind} "
                "without writing them again needs the feature typeWidening, which this version does not write",
                in_place=_NOTHING,
                hint='write the rows again: overwrite(rows, schema="evolve") with the wider type',
            )
        number = schema.get_field_index(name)
        columns = tuple(now.metadata.partition_columns)
        return schema_actions(schema.set(number, before.with_type(kind)), now.metadata, now.protocol, columns)

    return _changed(table, actions, "CHANGE COLUMN", {"column": name, "type": str(kind)}, read=True)


def rename_column(table: Writable, old: str, new: str) -> int:
    """Only with column mapping; else files have their columns by name."""
    raise _needs_mapping(table, old, f"to be called {new!r}", "overwrite the table with the other name")


def drop_column(table: Writable, name: str) -> int:
    """Only with column mapping; else the column would come back with the next one of its name."""
    raise _needs_mapping(table, name, "to be dropped", "overwrite the table without it")


def _needs_mapping(table: Writable, name: str, wanted: str, instead: str) -> SchemaMismatchError:
    now = table.log.snapshot(table.name, understood=BOTH)
    _column(table, arrow_schema(now.metadata.schema_string), name)
    mode = now.metadata.configuration.get("delta.columnMapping.mode", "none")
    why = "which is off" if mode == "none" else "in a way that this version does not write"
    return SchemaMismatchError(
        f"for the column {name!r} of {table.name} {wanted}, the table needs the feature columnMapping, {why}",
        in_place=_NOTHING,
        hint=f'{instead}: overwrite(rows, schema="evolve")',
    )


def set_properties(table: Writable, properties: Mapping[str, str | None]) -> int:
    """Properties with their new values; None removes one."""
    for key, value in properties.items():
        if not isinstance(key, str) or not key or not (value is None or isinstance(value, str)):
            raise ArgumentError(f"a property is text, not {key!r}: {value!r}", in_place=_NOTHING)
        if key.startswith(CONSTRAINT):
            raise ArgumentError(
                f"{key} is a constraint", in_place=_NOTHING, hint="use add_constraint and drop_constraint"
            )
        if key in _FEATURES:
            raise ArgumentError(
                f"the property {key} is about {_FEATURES[key]}, which is not turned on or off by a property in this "
                "version",
                in_place=_NOTHING,
            )

    def actions(now: Snapshot) -> list[Action]:
        settings = {**now.metadata.configuration, **properties}
        kept = {key: value for key, value in settings.items() if value is not None}
        return [] if kept == dict(now.metadata.configuration) else [replace(now.metadata, configuration=kept)]

    said = {"properties": ", ".join(f"{k}={v}" for k, v in properties.items())}
    return _changed(table, actions, "SET TBLPROPERTIES", said)


def _changed(
    table: Writable,
    actions: Callable[[Snapshot], list[Action]],
    operation: str,
    said: Mapping[str, str],
    *,
    read: bool = False,
) -> int:
    def change(_target: object) -> int:
        now = table.log.snapshot(table.name, understood=(DELETION_VECTORS,))
        found = actions(now)
        if not found:
            return now.version
        for each in found:
            if isinstance(each, Metadata):
                rules_of(each)  # constraints must still be ones that can be checked
        return table.log.commit(
            table.name, None, found, operation=Operation(operation, dict(said)), read_version=now.version,
            read_table=read,
        )  # fmt: skip

    version = table.changed(change, tries=_TRIES)
    table.publish()
    return version


def _column(table: Writable, schema: pa.Schema, name: str) -> pa.Field:
    if name not in schema.names:
        raise SchemaMismatchError(
            f"{table.name} has no column {name!r}", in_place=_NOTHING, hint=f"its columns: {', '.join(schema.names)}"
        )
    return schema.field(name)
