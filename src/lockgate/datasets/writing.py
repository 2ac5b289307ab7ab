"""Writing rows as new files of a dataset: beside the old ones, or in their place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import pyarrow as pa

from lockgate.engines.new_files import write_new_files
from lockgate.merging.protocol import OpenTarget, Target
from lockgate.merging.result import MergeFileMetadata, WriteResult
from lockgate.merging.schema import agree, fit
from lockgate.merging.shape import Shape, new_shape, partition_columns, shape_of
from lockgate.storage.local import LocalStorage


@dataclass(frozen=True)
class WriteRequest:
    """What the caller asked for."""

    mode: Literal["append", "overwrite"]
    identity: str
    partition_by: tuple[str, ...] | None
    schema: Literal["strict", "evolve"]
    compression: str | None
    max_rows_per_file: int
    row_group_size: int
    shown_root: str


def write_rows(
    source: pa.RecordBatchReader, target: Target, storage: LocalStorage, request: WriteRequest
) -> WriteResult:
    with target.opened(request.identity) as opened:
        shape = _shape(opened, source.schema, request)
        schema = shape.schema if shape.is_new else shape.held(agree(source.schema, shape.schema, mode=request.schema))
        new = shape.new_files(schema, opened.staging(), request)
        added = write_new_files(fitted(source, schema), new, storage)
        if shape.files and not any(a.written.rows for a in added):
            added = []  # nothing to append; an empty file would only be in the way
        removed = opened.files() if request.mode == "overwrite" else []
        if added or removed:
            opened.commit({a.name: a.written.path for a in added}, removed)
    return WriteResult(
        mode=request.mode,
        files=[
            MergeFileMetadata(f"{request.shown_root}/{a.name}", a.written.rows, "inserted", a.written.size)
            for a in added
        ],
        total_rows=sum(a.written.rows for a in added),
        removed_files=[f"{request.shown_root}/{name}" for name in removed],
    )


def _shape(opened: OpenTarget, source: pa.Schema, request: WriteRequest) -> Shape:
    """Appended rows must fit what is there; what replaces everything has a shape of its own."""
    if request.mode == "append":
        return shape_of(opened, source, request.partition_by)
    if request.partition_by is not None:
        return new_shape(source, request.partition_by)
    columns, _ = partition_columns(opened.files())  # as the dataset is, unless it is said
    return new_shape(source, columns if set(columns) <= set(source.names) else ())


def fitted(source: pa.RecordBatchReader, schema: pa.Schema) -> pa.RecordBatchReader:
    """The rows with exactly this schema, each value equal to what it was, or refused."""
    batches = (part for batch in source for part in fit(pa.Table.from_batches([batch]), schema).to_batches())
    return pa.RecordBatchReader.from_batches(schema, batches)
