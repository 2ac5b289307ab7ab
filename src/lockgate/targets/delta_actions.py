"""What a change of a Delta table's files becomes in its log."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from lockgate.errors import SchemaMismatchError
from lockgate.targets.delta_rules import require_rules, rules_of
from lockgate.targets.described import DescribedFile
from lockgate.targets.live_rows import cardinality
from lockgate.txlog.action_json import vector_from
from lockgate.txlog.actions import Action, Add, Metadata, Protocol, Remove
from lockgate.txlog.partition_values import partition_text, partition_value, refuse_partition_types
from lockgate.txlog.paths import as_uri, from_uri
from lockgate.txlog.schema_json import arrow_schema, columns_json, needs_timestamp_ntz, schema_json
from lockgate.txlog.statistics import indexed_columns, row_count, statistics_json
from lockgate.txlog.table_features import all_fields

_NTZ = "timestampNtz"
# What writers of version 2, which has no list of features, understand.
_OF_VERSION_2 = ("appendOnly", "invariants")


def first_actions(
    schema: pa.Schema,
    partition_columns: Sequence[str],
    *,
    properties: Mapping[str, str] | None = None,
    description: str | None = None,
    created_time: int | None = None,
) -> list[Action]:
    """The protocol and the metadata of a table that is made with this schema.

    >>> first_actions(pa.schema([("id", pa.int64())]), ())[0].min_writer_version
    2
    """
    columns = tuple(partition_columns)
    missing = [c for c in columns if c not in schema.names]
    if missing:
        raise SchemaMismatchError(
            f"the table has no column {missing[0]!r} to be partitioned by; its columns are {', '.join(schema.names)}",
            in_place="nothing was written",
        )
    if len(columns) == len(schema.names):
        raise SchemaMismatchError(
            "every column is a partition column; the files would hold nothing", in_place="nothing was written"
        )
    text = schema_json(schema)
    held = arrow_schema(text)
    refuse_partition_types(held, columns)
    metadata = Metadata(
        id=str(uuid.uuid4()),
        schema_string=text,
        partition_columns=columns,
        configuration=dict(properties or {}),
        description=description,
        created_time=created_time,
    )
    return [protocol_for(held), metadata]


def protocol_for(schema: pa.Schema, before: Protocol | None = None) -> Protocol:
    """What readers and writers of a table with this schema must understand, beside what they must already."""
    protocol = before or Protocol(1, 2)
    if not needs_timestamp_ntz(schema):
        return protocol
    readers = list(protocol.reader_features or ())
    writers = list(protocol.writer_features if protocol.writer_features is not None else _OF_VERSION_2)
    return Protocol(
        3,
        7,
        reader_features=[*readers, *([] if _NTZ in readers else [_NTZ])],
        writer_features=[*writers, *([] if _NTZ in writers else [_NTZ])],
    )


def schema_actions(
    schema: pa.Schema, metadata: Metadata, protocol: Protocol, partition_columns: Sequence[str] | None = None
) -> list[Action]:
    """What the log must learn for the table to get this schema; nothing where it has it. With `partition_columns` no
    file of the old schema stays, so that types and partitions may be other ones."""
    before = arrow_schema(metadata.schema_string)
    columns = tuple(metadata.partition_columns if partition_columns is None else partition_columns)
    if schema.remove_metadata().equals(before) and columns == tuple(metadata.partition_columns):
        return []
    if partition_columns is None:
        _refuse_other_types(schema, before)
    refuse_partition_types(schema, columns)
    text = schema_json(schema, like=metadata.schema_string)
    found: list[Action] = [replace(metadata, schema_string=text, partition_columns=columns)]
    needed = protocol_for(schema, protocol)
    return [needed, *found] if needed != protocol else found


def _refuse_other_types(schema: pa.Schema, before: pa.Schema) -> None:
    """Readers take a file's types to be the table's, and the files of a table are not all written again for one."""
    for field in before:
        now = schema.field(field.name)
        if now.type != field.type:
            raise SchemaMismatchError(
                f'column "{field.name}" of the table is {field.type}; its files would all have to be written again '
                f"to make it {now.type}",
                in_place="nothing was written",
                hint="cast the column in the source, or overwrite the table with the wider type",
            )


def refuse_rules(metadata: Metadata) -> None:
    """Refuse early to write to a table that demands of its rows what cannot be checked."""
    rules_of(metadata)
    top = columns_json(metadata.schema_string).values()
    if sum(map(_has_rule, all_fields(metadata))) > sum(map(_has_rule, top)):
        raise SchemaMismatchError(
            "the table has rules for fields inside of a column, which this version cannot check",
            in_place="nothing was written",
            hint="write to the table with an engine that checks them",
        )


def _has_rule(field: Mapping[str, Any]) -> bool:
    return bool({"delta.invariants", "delta.generationExpression"} & set(field.get("metadata") or {}))


def described_files(files: pa.Table, schema: pa.Schema, columns: Sequence[str]) -> list[DescribedFile]:
    """The files of a snapshot, with typed partition values."""
    known: dict[str, dict[str, Any]] = {}
    found = []
    paths = files.column("path").to_pylist()
    texts = files.column("partition_values").to_pylist()
    stats = files.column("stats").to_pylist()
    vectors = files.column("deletion_vector").to_pylist()
    for path, text, told, vector in zip(paths, texts, stats, vectors, strict=True):
        text = text or "{}"
        if text not in known:
            values = json.loads(text)
            known[text] = {c: partition_value(values.get(c), schema.field(c).type, c) for c in columns}
        rows = row_count(told)
        if vector is not None and rows is not None:  # statistics are of the file; its bounds hold for the rest too
            rows -= cardinality(vector)
        found.append(DescribedFile(from_uri(path), known[text], rows, told))
    return found


def adds_of(
    files: Mapping[str, Path],
    partitions: Mapping[str, Mapping[str, Any]],
    metadata: Metadata,
    schema: pa.Schema,
    *,
    new_rows: bool = True,
) -> list[Add]:
    """Files under the names that they will have, with their statistics. They need not be in their places yet. Their
    rows are what the table demands, or refused; those that were in the table before are not looked at again."""
    if new_rows:
        require_rules(files, partitions, metadata)
    columns = tuple(metadata.partition_columns)
    inside = pa.schema([field for field in schema if field.name not in columns])
    leaves = indexed_columns(metadata.configuration)
    found = []
    for name, path in files.items():
        status = path.stat()
        values = partitions.get(name, {})
        found.append(
            Add(
                path=as_uri(name),
                partition_values={c: partition_text(values.get(c), schema.field(c).type, c) for c in columns},
                size=status.st_size,
                modification_time=status.st_mtime_ns // 1_000_000,
                stats=statistics_json(path, inside, leaves=leaves),
            )
        )
    return found


def uris_of(names: Sequence[str], files: pa.Table) -> list[str]:
    """The paths of files as the log spells them, which another writer may have spelled in another way."""
    if not names:
        return []
    spelled = {from_uri(path): path for path in files.column("path").to_pylist()}
    return [spelled[name] for name in names]


def removes_of(names: Sequence[str], files: pa.Table) -> list[Remove]:
    """These files of a snapshot as they leave it."""
    if not names:
        return []
    numbers = {from_uri(path): i for i, path in enumerate(files.column("path").to_pylist())}
    found = []
    for name in names:
        row = files.slice(numbers[name], 1).to_pylist()[0]
        vector = row["deletion_vector"]
        found.append(
            Remove(
                path=row["path"],
                deletion_vector=None if vector is None else vector_from(json.loads(vector)),
                extended_file_metadata=True,
                partition_values=json.loads(row["partition_values"] or "{}"),
                size=row["size"],
            )
        )
    return found
