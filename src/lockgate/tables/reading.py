"""Reading one snapshot of a Delta table as Arrow. Files that a filter rules out are not opened."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from pyarrow import fs

from lockgate.errors import ArgumentError, StorageError
from lockgate.tables.physical import physical_metadata, with_logical_names
from lockgate.targets.delta_actions import described_files
from lockgate.targets.described import DescribedFile
from lockgate.targets.live_rows import cardinality, deleted_positions, live_mask, refuse_more, vectors_of
from lockgate.txlog.reading_features import require_understood
from lockgate.txlog.schema_json import arrow_schema
from lockgate.txlog.statistics import null_counts, row_count

if TYPE_CHECKING:
    from lockgate.txlog.records import Snapshot


def read_arrow(
    snapshot: Snapshot, columns: Sequence[str] | None = None, filter: pc.Expression | None = None
) -> pa.Table:
    """The rows of the snapshot, in the table's own types."""
    schema = arrow_schema(snapshot.metadata.schema_string)
    wanted = schema.names if columns is None else list(columns)
    missing = [name for name in wanted if name not in schema.names]
    if missing:
        raise ArgumentError(
            f"{snapshot.table} has no column {missing[0]!r}; its columns are {', '.join(schema.names)}",
            in_place="nothing was read",
        )
    try:
        rows = _rows(snapshot, schema, wanted, filter)
    except FileNotFoundError as error:
        raise StorageError(
            f"a file of {snapshot.table} at version {snapshot.version} is gone: {error}",
            hint="restore it from a copy; a version whose files were vacuumed cannot be read",
        ) from error
    except (OSError, pa.ArrowException) as error:
        raise StorageError(
            f"{snapshot.table} at version {snapshot.version} cannot be read: {str(error).splitlines()[0]}"
        ) from error
    return rows.cast(pa.schema([schema.field(name) for name in wanted]))


def _rows(snapshot: Snapshot, schema: pa.Schema, wanted: Sequence[str], filter: pc.Expression | None) -> pa.Table:
    mapped = physical_metadata(snapshot.metadata)
    vectors = vectors_of(snapshot.files)
    if mapped is snapshot.metadata and not vectors:
        return dataset_of(snapshot, schema).to_table(columns=wanted, filter=filter)
    # A filter speaks of the table's own names and of rows that live, so it comes after both are told.
    inside = arrow_schema(mapped.schema_string)
    columns = tuple(mapped.partition_columns)
    root = Path(snapshot.location)
    described = described_files(snapshot.files, inside, columns)
    whole = [file for file in described if file.name not in vectors]
    parts = [_dataset(whole, root, inside, columns).to_table()]
    for file in described:
        if file.name in vectors:
            rows = _dataset([file], root, inside, columns).to_table()
            deleted = deleted_positions(vectors[file.name], root)
            refuse_more(deleted, rows.num_rows, file.name)
            parts.append(rows.filter(live_mask(deleted, 0, rows.num_rows)))
    rows = with_logical_names(pa.concat_tables(parts), schema)
    return (rows if filter is None else rows.filter(filter)).select(wanted)


def dataset_of(snapshot: Snapshot, schema: pa.Schema) -> ds.FileSystemDataset:
    """The files with what the log guarantees of each, by which Arrow rules files out. All rows of each are taken, under
    the names that they have there, so a snapshot with deleted rows or mapped columns is refused."""
    require_understood(snapshot.table, snapshot.version, snapshot.metadata, snapshot.files, ())
    columns = tuple(snapshot.metadata.partition_columns)
    described = described_files(snapshot.files, schema, columns)
    return _dataset(described, Path(snapshot.location), schema, columns)


def _dataset(
    files: Sequence[DescribedFile], root: Path, schema: pa.Schema, columns: Sequence[str]
) -> ds.FileSystemDataset:
    local, kind = fs.LocalFileSystem(), ds.ParquetFileFormat()
    nullable = pa.schema([field.with_nullable(True) for field in schema])
    fragments = [
        kind.make_fragment(
            str(root / file.name), filesystem=local, partition_expression=_guarantee(file, schema, columns)
        )
        for file in files
    ]
    return ds.FileSystemDataset(fragments, nullable, kind, filesystem=local)


def files_table(snapshot: Snapshot) -> pa.Table:
    """The files of a snapshot: path, rows, size, partition_values, modification_time, stats."""
    files = snapshot.files
    stats = files.column("stats")
    rows = pa.array(
        [
            row_count(text) if vector is None else (row_count(text) or 0) - cardinality(vector)
            for text, vector in zip(stats.to_pylist(), files.column("deletion_vector").to_pylist(), strict=True)
        ],
        pa.int64(),
    )
    values = [json.loads(text or "{}") for text in files.column("partition_values").to_pylist()]
    return pa.table(
        {
            "path": files.column("path"),
            "rows": rows,
            "size": files.column("size"),
            "partition_values": pa.array([list(v.items()) for v in values], pa.map_(pa.string(), pa.string())),
            "modification_time": files.column("modification_time").cast(pa.timestamp("ms", "UTC")),
            "stats": stats,
        }
    )


def _guarantee(file: DescribedFile, schema: pa.Schema, columns: Sequence[str]) -> pc.Expression:
    """What is true of every row of the file."""
    known = [_equals(column, file.partition[column], schema.field(column).type) for column in columns]
    kinds = {f.name: f.type for f in schema if f.name not in columns and not pa.types.is_floating(f.type)}
    nulls = null_counts(file.statistics)
    for name, (low, high) in file.bounds(kinds).items():
        if isinstance(high, str) and len(high) >= 32:
            continue  # cut, and Arrow would compare it as if it were not
        known.append(_between(name, low, high, schema.field(name).type, nulls))
    return reduce(lambda a, b: a & b, known, pc.scalar(True))


def _equals(column: str, value: Any, kind: pa.DataType) -> pc.Expression:
    field = pc.field(column)
    return field.is_null() if value is None else field == pa.scalar(value, kind)


def _between(name: str, low: Any, high: Any, kind: pa.DataType, nulls: Mapping[str, Any]) -> pc.Expression:
    field = pc.field(name)
    within = (field >= pa.scalar(low, kind)) & (field <= pa.scalar(high, kind))
    return within if nulls.get(name) == 0 else within | field.is_null()
