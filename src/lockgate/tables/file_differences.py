"""Which files one version of a table has and another has not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from lockgate.tables.reading import dataset_of, read_arrow
from lockgate.targets.live_rows import vectors_of
from lockgate.txlog.paths import from_uri

if TYPE_CHECKING:
    from lockgate.txlog.records import Snapshot


def only_in(one: Snapshot, other: Snapshot) -> pa.Table:
    """The files of `one` that `other` does not have. A file is told by its path and its deletion vector."""
    there = _identities(other.files)
    return one.files.filter(pc.invert(pc.is_in(_identities(one.files), value_set=there)))


def with_files(snapshot: Snapshot, files: pa.Table) -> Snapshot:
    """The snapshot as if it had these files and no others."""
    return replace(snapshot, files=files)


def rows_of(snapshot: Snapshot, schema: pa.Schema) -> ds.Dataset:
    """The rows that live. They are in memory only where files have deleted rows."""
    return ds.dataset(read_arrow(snapshot)) if vectors_of(snapshot.files) else dataset_of(snapshot, schema)


def files_of(files: pa.Table) -> Iterator[tuple[str, int]]:
    """The names, relative to the table's folder, and the sizes."""
    for path, size in zip(files.column("path").to_pylist(), files.column("size").to_pylist(), strict=True):
        yield from_uri(path), size


def _identities(files: pa.Table) -> pa.Array:
    vectors = pc.coalesce(files.column("deletion_vector"), pa.scalar(""))
    # No path holds a NUL, and a vector's JSON none either.
    joined = pc.binary_join_element_wise(files.column("path"), vectors, pa.scalar("\0"))
    return pa.concat_arrays(joined.chunks) if joined.num_chunks else pa.array([], pa.string())
