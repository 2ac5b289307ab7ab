"""Writing staged lines of text (CSV, JSON) into one file: the lines' bytes are copied as Arrow holds them."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from lockgate.destinations.one_file import COMPRESSION_OF_SUFFIX
from lockgate.destinations.protocol import ExportRequest, StagedRows
from lockgate.errors import StageError
from lockgate.storage.local import LocalStorage


def write_lines(
    request: ExportRequest, rows: StagedRows, file: Path, storage: LocalStorage, *, header: str = ""
) -> int:
    """All staged lines, in order, after the header; compressed and encoded as the request says. Returns the rows."""
    encoding = str(request.options.get("encoding", "utf-8"))
    codec = compression(request)
    count = 0
    with storage.create(file) as raw:
        out = pa.CompressedOutputStream(pa.PythonFile(_StaysOpen(raw), "w"), codec) if codec else raw
        encode = _encoder(encoding, request)
        try:
            if header:
                out.write(encode(header.encode()))
            for lines in _batches(rows):
                count += len(lines)
                out.write(encode(_bytes_of(lines)))
        except BaseException:
            if codec:  # else Arrow complains on standard error when the stream is collected
                with suppress(OSError, ValueError):
                    out.close()
            raise
        if codec:
            out.close()
    return count


def compression(request: ExportRequest) -> str | None:
    """The codec by option, else by the file's suffix, else none."""
    named = request.options.get("compression")
    if named is None:
        return COMPRESSION_OF_SUFFIX.get(Path(request.destination).suffix.lower())
    return None if named.lower() == "none" else str(named).lower()


def _batches(rows: StagedRows) -> Iterator[Any]:
    for part in rows.parts:
        with pq.ParquetFile(part) as source:
            for batch in source.iter_batches(columns=["line"]):
                yield batch.column(0).cast(pa.large_string())


def _bytes_of(lines: Any) -> memoryview:
    """The text of all lines of an array, without copying: Arrow keeps it in one buffer."""
    if len(lines) == 0:
        return memoryview(b"")
    _, offsets, data = lines.buffers()
    bounds = memoryview(offsets).cast("q")
    first, last = bounds[lines.offset], bounds[lines.offset + len(lines)]
    return memoryview(data)[first:last] if data is not None else memoryview(b"")


def _encoder(encoding: str, request: ExportRequest) -> Any:
    if codecs.lookup(encoding).name == "utf-8":
        return lambda text: text
    incremental = codecs.getincrementalencoder(encoding)()  # writes a byte-order mark once, not per batch

    def encode(text: Any) -> bytes:
        try:
            return incremental.encode(bytes(text).decode())
        except UnicodeEncodeError as error:
            wrong = error.object[error.start : error.end]
            raise StageError(
                f"{request.destination}: the character {wrong!r} does not exist in {encoding}",
                in_place="nothing was published",
                hint='use "encoding": "utf-8", or replace the character in the query',
            ) from error

    return encode


class _StaysOpen:
    """A file that a compressed stream may end without closing it, so that it can still be synced."""

    closed = False

    def __init__(self, file: BinaryIO) -> None:
        self.write = file.write
        self.flush = file.flush

    def close(self) -> None:
        self.flush()
