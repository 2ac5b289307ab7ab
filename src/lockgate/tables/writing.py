"""Adding rows to a Delta table, and replacing all of them.

The rows are read and staged once, since a stream cannot be read again. A commit that clashes is made anew for the
newest version, with the same files.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import pyarrow as pa

from lockgate.datasets.entry import write_request
from lockgate.datasets.writing import WriteRequest, fitted
from lockgate.engines.new_files import write_new_files
from lockgate.errors import SchemaMismatchError
from lockgate.merging.protocol import Added, NewFiles
from lockgate.merging.result import MergeFileMetadata, WriteResult
from lockgate.merging.schema import agree
from lockgate.merging.shape import Shape, new_shape
from lockgate.merging.source import open_source
from lockgate.tables.writable import Writable
from lockgate.targets.delta import DeltaTarget
from lockgate.targets.described import ChangeDetails
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
        files = shape.new_files(shape.schema, opened.staging(), request)
        added = [a for a in write_new_files(fitted(rows, shape.schema), files, table.storage) if a.written.rows]
        removed = opened.files() if mode == "overwrite" else []
        if not added and not removed and not schema_changes(target, shape):
            version = target.snapshot.version if target.snapshot is not None else None
            return _result(request, [], [], version)
        placed = opened.place_new(added, shape, request)
        version, removed = table.committed(placed, shape, request)
    return _result(request, added, removed, version)
