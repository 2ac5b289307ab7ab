"""Adding rows to a Delta table, and replacing all of them.

The rows are read and staged once, since a stream cannot be read again. A commit that clashes is made anew for the
newest version, with the same files.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import pyarrow as pa

from lockgate.datasets.entry import write_request
from lockgate.datasets.writing import WriteRequest, fitted
from lockgate.engines.new_files import write_new_files
from lockgate.errors import SchemaMismatchError
from lockgate.merging.protocol import Added
from lockgate.merging.result import MergeFileMetadata, WriteResult
from lockgate.merging.schema import agree
from lockgate.merging.shape import Shape, new_shape
from lockgate.merging.source import open_source
from lockgate.tables.writable import Writable
from lockgate.targets.delta import DeltaTarget, commit_all
from lockgate.targets.described import ChangeDetails
from lockgate.txlog.partition_values import refuse_partition_types
from lockgate.txlog.schema_json import arrow_schema, held_schema

_NOTHING = "nothing was written"


def write_table(
    table: Writable,
    source: Any,
    *,
    mode: Literal["append", "overwrite"],
    schema: Literal["strict", "evolve"] = "strict",
    partition_by: str | Sequence[str] | None = None,
    **options: Any,
) -> WriteResult:
    """All rows in one version, or none."""
    request = write_request(
        mode=mode, schema=schema, partition_by=partition_by, shown_root=str(table.folder), **options
    )
    rows = open_source(source)
    target = table.target()
    with target.opened(request.identity) as opened:
        shape = written_shape(target, rows.schema, request)
        new = shape.new_files(shape.schema, opened.staging(), request)
        written = write_new_files(fitted(rows, shape.schema), new, table.storage)
        added = [each for each in written if each.written.rows]  # an empty file would only be in the way
        details = details_of(shape, shape.partitions_of([each.name for each in added], shape.schema), request)
        with target.placing({each.name: each.written.path for each in added}) as placed:
            files = {each.name: table.folder / each.name for each in added}

            def change(newest: DeltaTarget) -> tuple[int | None, list[str]]:
                if newest.snapshot is not None and target.snapshot is not None:
                    refuse_changed(newest, target)
                removed = newest.files() if mode == "overwrite" else []
                commit = newest.commit_of(files, removed, details)
                if not commit.actions:
                    return newest.snapshot.version if newest.snapshot is not None else None, removed
                versions = commit_all(table.log, [commit], [placed], txn_id=request.identity)
                return versions[newest.name], removed

            version, removed = table.changed(change)
    table.publish()
    return _result(request, added, removed, version)


def written_shape(target: DeltaTarget, source: pa.Schema, request: WriteRequest) -> Shape:
    """The table's schema after the write, and how new files of it are laid out."""
    snapshot = target.snapshot
    if snapshot is None:
        return new_shape(held_schema(source), request.partition_by or ())
    columns = tuple(snapshot.metadata.partition_columns)
    there = arrow_schema(snapshot.metadata.schema_string)
    if request.mode == "overwrite" and request.schema == "evolve":
        held = held_schema(source)
        columns = columns if request.partition_by is None else request.partition_by
        shape = new_shape(held, columns)
        refuse_partition_types(held, columns)
        return shape
    if request.partition_by is not None and request.partition_by != columns:
        raise SchemaMismatchError(
            f"the table is partitioned by {', '.join(columns) or 'nothing'}, "
            f"not by {', '.join(request.partition_by) or 'nothing'}",
            in_place=_NOTHING,
            hint='leave partition_by out, or overwrite the table with schema="evolve"',
        )
    return Shape(held_schema(agree(source, there, mode=request.schema)), columns, schema_in_files=False)


def details_of(shape: Shape, partitions: Mapping[str, Mapping[str, Any]], request: WriteRequest) -> ChangeDetails:
    """What the log is told of the write; `partitions` has the values of each new file."""
    replaces = request.mode == "overwrite"
    return ChangeDetails(
        partitions=partitions,
        schema=shape.schema,
        partition_columns=shape.partition_columns,
        replaces_schema=replaces and request.schema == "evolve",
        read_all=replaces,
        operation="WRITE",
        parameters={"mode": "Overwrite" if replaces else "Append", "partitionBy": list(shape.partition_columns)},
    )


def refuse_changed(newest: DeltaTarget, planned: DeltaTarget) -> None:
    """The files are written for one schema; if the table has another by now, they are not its files any more."""
    assert newest.snapshot is not None
    assert planned.snapshot is not None
    now, then = newest.snapshot.metadata, planned.snapshot.metadata
    if (now.schema_string, tuple(now.partition_columns)) != (then.schema_string, tuple(then.partition_columns)):
        raise SchemaMismatchError(
            f"another writer has changed the columns of {newest.name} meanwhile",
            in_place=_NOTHING,
            hint="look at its schema, then write again",
        )


def _result(request: WriteRequest, added: Sequence[Added], removed: Sequence[str], version: int | None) -> WriteResult:
    return WriteResult(
        mode=request.mode,
        files=[
            MergeFileMetadata(f"{request.shown_root}/{a.name}", a.written.rows, "inserted", a.written.size)
            for a in added
        ],
        total_rows=sum(a.written.rows for a in added),
        removed_files=[f"{request.shown_root}/{name}" for name in removed],
        version=version,
    )
