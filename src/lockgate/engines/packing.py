"""A table as bytes, on its way to another process."""

from __future__ import annotations

import pyarrow as pa


def packed(table: pa.Table) -> bytes:
    """
    >>> unpacked(packed(pa.table({"a": [1, None]}))).to_pydict()
    {'a': [1, None]}
    """
    out = pa.BufferOutputStream()
    with pa.ipc.new_stream(out, table.schema, options=pa.ipc.IpcWriteOptions(compression="lz4")) as stream:
        stream.write_table(table)
    return bytes(out.getvalue())


def unpacked(content: bytes) -> pa.Table:
    with pa.ipc.open_stream(content) as stream:
        return stream.read_all()
