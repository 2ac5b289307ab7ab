"""Opening Parquet files for a merge, and saying which one it was when that fails."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa
import pyarrow.parquet as pq

from lockgate.engines.layout import FileLayout
from lockgate.errors import DatasetMergeError
from lockgate.merging.protocol import DataFile
from lockgate.merging.taking import in_slices


def open_file(path: str, layout: FileLayout) -> pq.ParquetFile:
    # Without mapping it into memory: a file that is cut short under a map kills the process.
    return pq.ParquetFile(
        path,
        memory_map=False,
        pre_buffer=False,
        page_checksum_verification=True,  # or damage would be copied under a new checksum, and never be found
        coerce_int96_timestamp_unit="us" if layout.int96 else None,
    )


@contextmanager
def reading(file: DataFile) -> Iterator[None]:
    """A failure inside is about this file; the file is named and nothing else is blamed."""
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        raise unreadable(file.path, error) from error


def unreadable(path: str, error: Exception) -> DatasetMergeError:
    first = str(error).strip().split("\n", 1)[0]
    return DatasetMergeError(
        f"cannot read {path!r} as Parquet: {first}",
        files=(path,),
        hint="restore the file from a copy, or move it out of the dataset, then merge again",
    )


def adapted(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """`table` with the columns of `schema`: missing ones NULL, types widened."""
    if table.schema.equals(schema):
        return table
    parts = [_adapted(part, schema) for part in in_slices(table)]
    return pa.concat_tables(parts) if parts else _adapted(table, schema)


def _adapted(table: pa.Table, schema: pa.Schema) -> pa.Table:
    there = dict(zip(table.column_names, table.columns, strict=True))
    columns = [
        there[field.name].cast(field.type)
        if field.name in there
        else pa.chunked_array([pa.nulls(table.num_rows, field.type)])
        for field in schema
    ]
    return pa.table(columns, schema=schema)
