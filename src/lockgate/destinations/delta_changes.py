"""Making the change of an export ready: which staged files join the table, with their statistics, and which leave.

Imported when a run gets here, not by `lockgate check`: it brings Arrow.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from lockgate.datasets.entry import DEFAULT_ROW_GROUP_SIZE
from lockgate.datasets.writing import WriteRequest, fitted
from lockgate.destinations.delta_records import DeltaChange, DeltaExport
from lockgate.destinations.delta_window import Replaced, replaced
from lockgate.destinations.keyed_merge import merge_staged_rows, outcome_of
from lockgate.destinations.protocol import Outcome
from lockgate.engines.new_files import write_new_files
from lockgate.merging.partitions import parse_hive_partition_path, typed_value
from lockgate.merging.shape import Shape
from lockgate.merging.strategy import MergeStrategy
from lockgate.tables.writing import details_of, written_shape
from lockgate.targets.delta import DeltaTarget
from lockgate.targets.described import ChangeDetails
from lockgate.txlog.actions import Add, to_json
from lockgate.txlog.partition_values import refuse_partition_types
from lockgate.txlog.schema_json import arrow_schema, schema_json


def prepared_change(export: DeltaExport, target: DeltaTarget, folder: Path) -> DeltaChange:
    """The change for the version that the target has; files that have to be written go to `folder`."""
    return _merged(export, target, folder) if export.is_keyed else _written(export, target, folder)


def _merged(export: DeltaExport, target: DeltaTarget, folder: Path) -> DeltaChange:
    assert export.merge is not None
    snapshot = target.snapshot
    if snapshot is None and not MergeStrategy(export.merge.strategy).actions.creates:
        return DeltaChange(None, outcome=Outcome(inserted=0, updated=0, deleted=0))
    with target.opened(_fresh(export), staging=folder) as opened:
        staged, engine = merge_staged_rows(
            export.merge,
            target.root / export.rows,
            opened,
            opened.identity,
            target.storage,
            target.root,
            lambda: sum(snapshot.files.column("size").to_pylist()) if snapshot else 0,
        )
    if staged.moves:
        target.storage.fsync_folder(folder)
    outcome = outcome_of(staged, engine, target.root)
    if not staged.moves and not staged.removes and snapshot is not None:
        return DeltaChange(snapshot.version, outcome=outcome)
    return _change(target, staged.moves, tuple(staged.removes), staged.details, outcome)


def _written(export: DeltaExport, target: DeltaTarget, folder: Path) -> DeltaChange:
    """The staged files as they are, if they are as the table's are; else written again in its types."""
    root, rows, replaces = target.root, target.root / export.rows, export.mode == "REPLACE"
    given = _nullable(arrow_schema(export.schema))
    request = _request(export)
    shape = written_shape(target, given, request)
    refuse_partition_types(shape.schema, shape.partition_columns)
    parts = sorted(rows.rglob("part-*.parquet"))
    counts = {part: int(pq.read_metadata(part).num_rows) for part in parts}
    by_folder = {column: given.field(column).type for column in export.staged_by}
    there = replaced(target, export.window) if export.window is not None else Replaced()
    if _fits(shape, given, export) and there.rows == there.rows_of_files:
        files, partitions = {}, {}
        for number, part in enumerate(part for part in parts if counts[part]):
            inside = part.relative_to(rows).parent.as_posix()
            name = f"part-{request.identity}-{number:05d}.parquet"
            name = name if inside == "." else f"{inside}/{name}"
            files[name], partitions[name] = part, _partition(part.relative_to(rows).as_posix(), by_folder)
    else:
        if not folder.is_dir():
            target.storage.make_scratch_folder(folder)
        new = shape.new_files(shape.schema, folder, request)
        reader = pa.RecordBatchReader.from_batches(given, _batches(parts, rows, given, by_folder))
        every = pa.RecordBatchReader.from_batches(
            shape.schema, chain(there.kept(shape.schema), fitted(reader, shape.schema))
        )
        written = [a for a in write_new_files(every, new, target.storage) if a.written.rows]
        files = {each.name: each.written.path for each in written}
        partitions = shape.partitions_of(list(files), shape.schema)
        target.storage.fsync_folder(folder)
    outcome = Outcome(
        inserted=sum(counts.values()),
        updated=0,
        deleted=_rows_there(target) if replaces else there.rows,
        files={
            "rewritten": 0,
            "added": len(files),
            "preserved": 0 if replaces else len(target.files()) - len(there.names),
        },
        paths=tuple(str(root / name) for name in files),
    )
    details = details_of(shape, partitions, request)
    if export.window is not None:
        details = replace(details, read=there.names, parameters={**details.parameters, "mode": "Incremental"})
    change = _change(target, files, there.names, details, outcome)
    return replace(change, removes_all=replaces)


def _request(export: DeltaExport) -> WriteRequest:
    """REPLACE takes the columns, types and partitions of its rows, whatever was there."""
    replaces = export.mode == "REPLACE"
    return WriteRequest(
        mode="overwrite" if replaces else "append",
        identity=_fresh(export),
        partition_by=export.partition_by,
        schema="evolve" if replaces or export.schema_mode == "evolve" else "strict",
        compression=export.compression,
        max_rows_per_file=export.max_rows_per_file,
        row_group_size=DEFAULT_ROW_GROUP_SIZE,
        shown_root=export.folder,
    )


def _fresh(export: DeltaExport) -> str:
    """A part of file names that is never used twice: a try that died may have left files of other rows."""
    return f"{export.id}-{uuid.uuid4().hex[:8]}"


def _fits(shape: Shape, given: pa.Schema, export: DeltaExport) -> bool:
    """Whether Spark's files are as the table's: columns, types, folders; and none has a column that may not be NULL."""
    return (
        shape.partition_columns == export.staged_by
        and set(shape.schema.names) == set(given.names)
        and all(field.nullable and field.type == given.field(field.name).type for field in shape.schema)
    )


def _partition(name: str, by_folder: Mapping[str, pa.DataType]) -> dict[str, Any]:
    texts = parse_hive_partition_path(name)
    return {column: typed_value(texts[column], kind, column) for column, kind in by_folder.items()}


def _batches(
    parts: Sequence[Path], rows: Path, given: pa.Schema, by_folder: Mapping[str, pa.DataType]
) -> Iterator[pa.RecordBatch]:
    """The staged rows, with the values that only their folders have."""
    for part in parts:
        name = part.relative_to(rows)
        values = _partition(name.as_posix(), by_folder) if len(name.parts) > 1 else {}
        with pq.ParquetFile(part) as file:
            for batch in file.iter_batches():
                columns = [
                    pa.repeat(pa.scalar(values[field.name], field.type), batch.num_rows)
                    if field.name in values
                    else batch.column(field.name).cast(field.type)
                    for field in given
                ]
                yield pa.RecordBatch.from_arrays(columns, schema=given)


def _nullable(schema: pa.Schema) -> pa.Schema:
    """What Spark writes may be NULL, whatever its plan says."""
    return pa.schema([pa.field(field.name, _nullable_type(field.type)) for field in schema])


def _nullable_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(f.name, _nullable_type(f.type)) for f in kind])
    if pa.types.is_map(kind):
        key = pa.field("key", _nullable_type(kind.key_type), nullable=False)
        return pa.map_(key, pa.field("value", _nullable_type(kind.item_type)))
    if pa.types.is_list(kind):
        return pa.list_(pa.field("element", _nullable_type(kind.value_type)))
    return kind


def _rows_there(target: DeltaTarget) -> int | None:
    """How many rows a REPLACE replaces; None where the log does not tell."""
    counts = [file.rows for file in target.described().files]
    return None if any(count is None for count in counts) else sum(count for count in counts if count is not None)


def _change(
    target: DeltaTarget,
    files: Mapping[str, Path],
    removes: tuple[str, ...],
    details: ChangeDetails,
    outcome: Outcome,
) -> DeltaChange:
    snapshot = target.snapshot
    adds = target.commit_of(files, (), details).actions
    return DeltaChange(
        read_version=snapshot.version if snapshot is not None else None,
        moves={name: path.relative_to(target.root).as_posix() for name, path in files.items()},
        adds=tuple(to_json(add) for add in adds if isinstance(add, Add)),
        removes=removes,
        read=details.read,
        read_all=details.read_all,
        schema=schema_json(details.schema) if details.schema is not None else None,
        partition_columns=details.partition_columns,
        replaces_schema=details.replaces_schema,
        operation=details.operation,
        parameters=details.parameters,
        outcome=outcome,
    )
