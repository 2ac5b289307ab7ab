"""Rows of files as PostgreSQL's binary COPY wants them, made from Arrow a column at a time and not row by row."""

from __future__ import annotations

import struct
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lockgate.txlog.store import ADD_COLUMNS, LIVE

HEADER = b"PGCOPY\n\xff\r\n\0" + struct.pack("!ii", 0, 0)
TRAILER = struct.pack("!h", -1)
_AT_ONCE = 8192  # rows of a block


def copy_rows(table_id: int, version: int, first: int, files: pa.Table) -> Iterator[pa.Buffer]:
    """Blocks of rows. Each row is the number of its columns, and each column its length and its bytes."""
    known = struct.pack("!h", len(ADD_COLUMNS)) + struct.pack("!iiiqiq", 4, table_id, 8, version, 8, LIVE)
    for start in range(0, files.num_rows, _AT_ONCE):
        block = files.slice(start, _AT_ONCE)
        count = block.num_rows
        parts = [pa.scalar(known, pa.binary()), _integers(np.arange(first + start, first + start + count), ">i4")]
        for name in ADD_COLUMNS[4:]:
            column = block.column(name).combine_chunks()
            if pa.types.is_int64(column.type):
                parts.append(_integers(column.to_numpy(zero_copy_only=False), ">i8"))
            elif pa.types.is_boolean(column.type):
                parts.append(_integers(column.to_numpy(zero_copy_only=False), "i1"))
            else:
                parts += _texts(column)
        rows = pc.binary_join_element_wise(*parts, pa.scalar(b"", pa.binary()))
        yield _data_of(rows)


def _integers(values: np.ndarray, kind: str) -> pa.Array:
    """A column of fixed length, with that length before each value."""
    size = np.dtype(kind).itemsize
    fields = np.zeros(len(values), np.dtype([("length", ">i4"), ("value", kind)]))
    fields["length"] = size
    fields["value"] = values
    return pa.Array.from_buffers(pa.binary(4 + size), len(values), [None, pa.py_buffer(fields)]).cast(pa.binary())


def _texts(column: pa.Array) -> list[pa.Array]:
    """A column of texts, with the length of each in bytes before it; -1 and nothing stand for NULL."""
    lengths = pc.fill_null(pc.binary_length(column), -1).to_numpy(zero_copy_only=False).astype(">i4")
    before = pa.Array.from_buffers(pa.binary(4), len(column), [None, pa.py_buffer(lengths)]).cast(pa.binary())
    return [before, pc.fill_null(column.cast(pa.binary()), b"")]


def _data_of(rows: pa.Array) -> pa.Buffer:
    """All values of a binary array, one after the other."""
    offsets = np.frombuffer(rows.buffers()[1], np.int32, len(rows) + 1, rows.offset * 4)
    return rows.buffers()[2].slice(int(offsets[0]), int(offsets[-1] - offsets[0]))
