"""Deletion vectors as Delta's writers make them, and a table that has them."""

from __future__ import annotations

import struct
import uuid
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"


def z85(data: bytes) -> str:
    data += b"\0" * (-len(data) % 4)
    text = ""
    for start in range(0, len(data), 4):
        value = int.from_bytes(data[start : start + 4], "big")
        group = ""
        for _ in range(5):
            value, digit = divmod(value, 85)
            group = _Z85[digit] + group
        text += group
    return text


def bitmap(rows: Iterable[int], *, runs: bool = False) -> bytes:
    """A 64-bit Roaring bitmap with Delta's magic number. `runs`: containers are lists of runs."""
    buckets: dict[int, dict[int, list[int]]] = {}
    for row in sorted(rows):
        buckets.setdefault(row >> 32, {}).setdefault(row >> 16 & 0xFFFF, []).append(row & 0xFFFF)
    out = struct.pack("<IQ", 1681511377, len(buckets))
    for key, containers in buckets.items():
        out += struct.pack("<I", key) + _bucket(containers, runs)
    return out


def _bucket(containers: dict[int, list[int]], runs: bool) -> bytes:
    count = len(containers)
    header = b"".join(struct.pack("<HH", key, len(values) - 1) for key, values in containers.items())
    bodies = [_runs(values) if runs else _container(values) for values in containers.values()]
    if runs:
        flags = ((1 << count) - 1).to_bytes((count + 7) // 8, "little")
        start = struct.pack("<I", 12347 | (count - 1) << 16) + flags
        with_offsets = count >= 4
    else:
        start, with_offsets = struct.pack("<II", 12346, count), True
    offsets = b""
    at = len(start) + len(header) + 4 * count
    for body in bodies if with_offsets else []:
        offsets += struct.pack("<I", at)
        at += len(body)
    return start + header + offsets + b"".join(bodies)


def _container(values: Sequence[int]) -> bytes:
    if len(values) <= 4096:
        return struct.pack(f"<{len(values)}H", *values)
    bits = bytearray(8192)
    for value in values:
        bits[value // 8] |= 1 << value % 8
    return bytes(bits)


def _runs(values: Sequence[int]) -> bytes:
    found: list[list[int]] = []
    for value in values:
        if found and found[-1][0] + found[-1][1] + 1 == value:
            found[-1][1] += 1
        else:
            found.append([value, 0])
    return struct.pack("<H", len(found)) + b"".join(struct.pack("<HH", low, more) for low, more in found)


def inline(rows: Sequence[int], **options: bool) -> dict[str, Any]:
    data = bitmap(rows, **options)
    return {"storageType": "i", "pathOrInlineDv": z85(data), "sizeInBytes": len(data), "cardinality": len(set(rows))}


def in_file(table: Path, vectors: Sequence[Sequence[int]], prefix: str = "") -> list[dict[str, Any]]:
    """Several vectors in one file beside the data."""
    name = uuid.uuid5(uuid.NAMESPACE_URL, f"{prefix}{vectors}")
    content = b"\x01"
    found = []
    for rows in vectors:
        data = bitmap(rows)
        found.append(
            {
                "storageType": "u",
                "pathOrInlineDv": prefix + z85(name.bytes),
                "offset": len(content),
                "sizeInBytes": len(data),
                "cardinality": len(set(rows)),
            }
        )
        content += struct.pack(">I", len(data)) + data + struct.pack(">I", zlib.crc32(data))
    folder = table / prefix
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"deletion_vector_{name}.bin").write_bytes(content)
    return found
