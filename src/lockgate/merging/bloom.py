"""Parquet's split-block Bloom filters: whether a value is surely not in a column chunk.

Only what the Parquet specification has today is read: split blocks, xxHash64, uncompressed. Anything else in the
header means that nothing is known.
"""

from __future__ import annotations

import math
import struct
from typing import Any

import pyarrow as pa

from lockgate.merging.bounds import FileColumn

_SALTS = (0x47B6137B, 0x44974D91, 0x8824AD5B, 0xA2B7289D, 0x705495C7, 0x2DF1424B, 0x9EFC4947, 0x5C6BFB31)
_BLOCK = struct.Struct("<8I")
_LARGEST_HEADER = 24
_LARGEST_FILTER = 128 * 1024 * 1024  # as other readers have it; larger is damage
# In Thrift's compact protocol: three unions, each with its first member, empty: block, xxHash, uncompressed.
_KNOWN_KINDS = b"\x1c\x1c\x00\x00" * 3 + b"\x00"


class BloomFilter:
    """The bits of one filter."""

    def __init__(self, bits: bytes) -> None:
        self._bits = bits
        self._blocks = len(bits) // _BLOCK.size

    def might_contain(self, value: bytes) -> bool:
        """Whether a value, plain-encoded, may be in the column chunk; False is certain."""
        import xxhash  # here, so that workers of Spark need not have it

        hashed = xxhash.xxh64_intdigest(value)
        block = ((hashed >> 32) * self._blocks) >> 32
        key = hashed & 0xFFFFFFFF
        words = _BLOCK.unpack_from(self._bits, block * _BLOCK.size)
        return all(word >> ((key * salt & 0xFFFFFFFF) >> 27) & 1 for word, salt in zip(words, _SALTS, strict=True))


class BloomReader:
    """Reads the filters of one file, which is opened when the first is asked for."""

    def __init__(self, path: str, filesystem: Any = None) -> None:
        self._path = path
        self._filesystem = filesystem
        self._file: Any = None

    def read(self, chunk: Any) -> BloomFilter | None:
        """The filter of a column chunk (pyarrow's metadata of it); None if it has none that can be used."""
        if chunk.bloom_filter_offset is None:
            return None
        if self._file is None:
            opened = self._filesystem.open_input_file(self._path) if self._filesystem else pa.OSFile(self._path)
            self._file = opened
        return read_bloom_filter(self._file, chunk.bloom_filter_offset, chunk.bloom_filter_length)

    def __enter__(self) -> BloomReader:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()


def read_bloom_filter(file: Any, offset: int, length: int | None) -> BloomFilter | None:
    """The filter at `offset` of an open Arrow file; None if it is not exactly of the kind we know."""
    header = file.read_at(_LARGEST_HEADER, offset)
    size, at = _size_of_bits(header)
    end = at + len(_KNOWN_KINDS)
    if header[at:end] != _KNOWN_KINDS or not 0 < size <= _LARGEST_FILTER or size % _BLOCK.size:
        return None
    if length is not None and length != end + size:
        return None
    bits = file.read_at(size, offset + end)
    return BloomFilter(bits) if len(bits) == size else None


def _size_of_bits(header: bytes) -> tuple[int, int]:
    """The first field, `numBytes`, and where it ends; a size of 0 where it is not there."""
    if header[:1] != b"\x15":  # field 1, a 32-bit number
        return 0, 1
    number = shift = 0
    for at, byte in enumerate(header[1:6], start=2):
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return (number >> 1) ^ -(number & 1), at
    return 0, 1


def plain_bytes(place: Any, exponent: int, column: FileColumn) -> bytes | None:
    """A value, given by its place on the line, as the file's writer hashed it; None if there is any doubt.

    >>> from lockgate.merging.bounds import Line
    >>> plain_bytes(7, 0, FileColumn(Line("number"), int, "INT32", 0))
    b'\\x07\\x00\\x00\\x00'
    """
    if column.line.kind == "bytes":
        return bytes(place)
    if column.line.kind == "float":
        return _plain_float(place, column.physical)
    shift = exponent - column.line.exponent
    number, rest = divmod(place, 10**shift) if shift > 0 else (place * 10**-shift, 0)
    if rest:
        return None
    try:
        match column.physical:
            case "INT32":
                return int(number).to_bytes(4, "little", signed=not column.unsigned)
            case "INT64":
                return int(number).to_bytes(8, "little", signed=not column.unsigned)
            case "FIXED_LEN_BYTE_ARRAY":
                return int(number).to_bytes(column.width, "big", signed=True)
    except OverflowError:
        return None
    return None  # a BYTE_ARRAY decimal has many spellings, a BOOLEAN no filter


def _plain_float(value: float, physical: str) -> bytes | None:
    if value == 0 or math.isnan(value):  # equal values with different bytes
        return None
    if physical == "DOUBLE":
        return struct.pack("<d", value)
    try:
        packed = struct.pack("<f", value)
    except OverflowError:
        return None
    return packed if struct.unpack("<f", packed)[0] == value else None
