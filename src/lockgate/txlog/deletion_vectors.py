"""Deletion vectors: which rows of a data file are deleted, as Delta stores it in the log or in a file beside the table.

The positions are a 64-bit Roaring bitmap in its portable form: 32-bit bitmaps by their upper half, each a row of
containers of 65,536 values that hold a list, a bitmap, or runs.
"""

from __future__ import annotations

import struct
import uuid
import zlib
from collections.abc import Callable, Generator, Iterator

import pyarrow as pa
import pyarrow.compute as pc

from lockgate.errors import DamagedLog
from lockgate.txlog.actions import DeletionVector

_MAGIC = 1681511377
_FILE_VERSION = 1
_WITH_RUNS, _WITHOUT_RUNS = 12347, 12346
_OFFSETS_FROM = 4  # with runs, small bitmaps have no table of offsets
_ARRAY_AT_MOST = 4096
_BITMAP_BYTES = 8192
_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_Z85_VALUES = {character: value for value, character in enumerate(_Z85)}
_UUID_CHARACTERS = 20


def file_of(vector: DeletionVector) -> str | None:
    """The file that holds the vector: relative to the table, or absolute; None where the log itself holds it.

    >>> file_of(DeletionVector("u", "ab^-aqEH.-t@S}K{vb[*k^", 40, 6, 4))
    'ab/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin'
    """
    match vector.storage_type:
        case "i":
            return None
        case "p":
            return vector.path_or_inline_dv
        case "u":
            prefix, name = vector.path_or_inline_dv[:-_UUID_CHARACTERS], vector.path_or_inline_dv[-_UUID_CHARACTERS:]
            raw = from_z85(name)
            if len(raw) != 16:
                raise DamagedLog(f"the deletion vector {vector.unique_id!r} names no file")
            file = f"deletion_vector_{uuid.UUID(bytes=raw)}.bin"
            return f"{prefix}/{file}" if prefix else file
        case other:
            raise DamagedLog(f"a deletion vector is stored as {other!r}; known are 'u', 'i' and 'p'")


def deleted_rows(vector: DeletionVector, read: Callable[[str], bytes]) -> pa.Array:
    """The positions of the deleted rows, ascending; `read` gives the bytes of a file that `file_of` names.

    >>> inline = DeletionVector("i", "^Bg9^0rr910000000000iXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L", 44, 6)
    >>> deleted_rows(inline, lambda name: b"").to_pylist()
    [3, 4, 7, 11, 18, 29]
    """
    file = file_of(vector)
    if file is None:
        data = from_z85(vector.path_or_inline_dv)[: vector.size_in_bytes]
        if len(data) != vector.size_in_bytes:
            raise DamagedLog(f"the deletion vector {vector.unique_id!r} is shorter than it says")
    else:
        data = _from_file(read(file), vector, file)
    try:
        parts = list(_positions(memoryview(data)))
    except (struct.error, pa.ArrowInvalid, IndexError) as error:
        raise DamagedLog(f"the deletion vector {vector.unique_id!r} cannot be read: {error}") from error
    rows = pa.concat_arrays([pa.array([], pa.int64()), *parts])
    if len(rows) != vector.cardinality:
        raise DamagedLog(
            f"the deletion vector {vector.unique_id!r} deletes {len(rows)} rows and says that it deletes "
            f"{vector.cardinality}"
        )
    return rows


def from_z85(text: str) -> bytes:
    """The bytes that a text in base 85 stands for.

    >>> from_z85("HelloWorld").hex()
    '864fd26fb559f75b'
    """
    if len(text) % 5:
        raise DamagedLog(f"{text[:40]!r} is not base 85: its length is {len(text)}")
    found = bytearray()
    for start in range(0, len(text), 5):
        value = 0
        for character in text[start : start + 5]:
            if character not in _Z85_VALUES:
                raise DamagedLog(f"{text[:40]!r} is not base 85: it holds {character!r}")
            value = value * 85 + _Z85_VALUES[character]
        if value >= 2**32:
            raise DamagedLog(f"{text[:40]!r} is not base 85: a group is too large")
        found += value.to_bytes(4, "big")
    return bytes(found)


def _from_file(content: bytes, vector: DeletionVector, file: str) -> bytes:
    """One vector of a file: its size, its bytes, and their checksum."""
    at = vector.offset or 0
    if not content or content[0] != _FILE_VERSION:
        raise DamagedLog(f"the file of deletion vectors {file} has the unknown version {content[:1].hex() or 'none'}")
    at = max(at, 1)  # behind the version, where no offset is given
    size = int.from_bytes(content[at : at + 4], "big")
    data = content[at + 4 : at + 4 + size]
    checksum = content[at + 4 + size : at + 8 + size]
    if size != vector.size_in_bytes or len(data) != size or len(checksum) != 4:
        raise DamagedLog(f"the deletion vector at byte {at} of {file} is cut, or not where the log says it is")
    if zlib.crc32(data) != int.from_bytes(checksum, "big"):
        raise DamagedLog(f"the deletion vector at byte {at} of {file} is damaged: its checksum is another")
    return data


def _positions(data: memoryview) -> Iterator[pa.Array]:
    (magic,) = struct.unpack_from("<I", data)
    if magic != _MAGIC:
        raise IndexError(f"its magic number is {magic}")
    (bitmaps,) = struct.unpack_from("<Q", data, 4)
    at = 12
    before = -1
    for _ in range(bitmaps):
        (key,) = struct.unpack_from("<I", data, at)
        if key <= before or key >= 2**31:
            raise IndexError("its parts are out of order")
        before = key
        at = yield from _bitmap(data, at + 4, key << 32)


def _bitmap(data: memoryview, start: int, base: int) -> Generator[pa.Array, None, int]:
    """One 32-bit bitmap; returns where the next begins."""
    (cookie,) = struct.unpack_from("<I", data, start)
    runs = b""
    if cookie & 0xFFFF == _WITH_RUNS:
        count = (cookie >> 16) + 1
        at = start + 4 + (count + 7) // 8
        runs = bytes(data[start + 4 : at])
    elif cookie == _WITHOUT_RUNS:
        (count,) = struct.unpack_from("<I", data, start + 4)
        at = start + 8
    else:
        raise IndexError(f"its cookie is {cookie}")
    if count > 65_536:
        raise IndexError(f"it has {count} containers")
    header = struct.unpack_from(f"<{2 * count}H", data, at)
    at += 4 * count
    if not runs or count >= _OFFSETS_FROM:
        at += 4 * count  # containers follow each other; the table of offsets is for those who jump
    for i in range(count):
        key, values = header[2 * i], header[2 * i + 1] + 1
        first = base + (key << 16)
        if runs and runs[i // 8] >> (i % 8) & 1:
            (n,) = struct.unpack_from("<H", data, at)
            pairs = struct.unpack_from(f"<{2 * n}H", data, at + 2)
            at += 2 + 4 * n
            for low, more in zip(pairs[::2], pairs[1::2], strict=True):
                yield pa.array(range(first + low, first + low + more + 1), pa.int64())
        elif values <= _ARRAY_AT_MOST:
            yield _offset(pa.array(struct.unpack_from(f"<{values}H", data, at), pa.int64()), first)
            at += 2 * values
        else:
            if at + _BITMAP_BYTES > len(data):
                raise IndexError("a bitmap is cut")
            bits = pa.Array.from_buffers(pa.bool_(), 65_536, [None, pa.py_buffer(bytes(data[at : at + _BITMAP_BYTES]))])
            yield _offset(pc.indices_nonzero(bits).cast(pa.int64()), first)
            at += _BITMAP_BYTES
    return int(at)


def _offset(values: pa.Array, first: int) -> pa.Array:
    return pc.add(values, pa.scalar(first, pa.int64()))
