"""Where values lie on a line: what a type's values and a file's bounds have in common, so that they compare.

Every comparable type is a kind of line and a power of ten: 1.50 of decimal(5, 2) is 150 on the line of numbers with
the exponent 2, a timestamp in microseconds is its count since the epoch with the exponent 6. Two exponents of one
kind compare after rescaling whole numbers, without loss. What is not understood here has no line and is never pruned.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lockgate.merging.type_families import is_bytes, is_text

_UNIT_EXPONENTS = {"s": 0, "ms": 3, "us": 6, "ns": 9, "milliseconds": 3, "microseconds": 6, "nanoseconds": 9}
_BYTES_LOGICAL = ("NONE", "STRING", "ENUM", "JSON", "BSON", "UUID")


@dataclass(frozen=True, slots=True)
class Line:
    """On which line values lie: only values of one kind compare."""

    kind: str  # number, float, bytes, date, time, wall (a timestamp without zone) or instant (with one)
    exponent: int = 0


@dataclass(frozen=True, slots=True)
class FileColumn:
    """How a file's column writes its bounds, and its values into a Bloom filter."""

    line: Line
    place: Callable[[Any], Any]  # a raw bound -> its place on the line, in the file's exponent
    physical: str
    width: int  # of FIXED_LEN_BYTE_ARRAY
    unsigned: bool = False


def type_line(type: pa.DataType) -> Line | None:
    """The line of an Arrow type's values; None if they are not compared.

    >>> type_line(pa.timestamp("us", tz="UTC"))
    Line(kind='instant', exponent=6)
    """
    if pa.types.is_boolean(type) or pa.types.is_integer(type):
        return Line("number")
    if pa.types.is_decimal(type):
        return Line("number", type.scale)
    if pa.types.is_float32(type) or pa.types.is_float64(type):
        return Line("float")
    if pa.types.is_date(type):
        return Line("date")
    if pa.types.is_time(type):
        return Line("time", _UNIT_EXPONENTS[type.unit])
    if pa.types.is_timestamp(type):
        return Line("instant" if type.tz else "wall", _UNIT_EXPONENTS[type.unit])
    return Line("bytes") if (is_text(type) or is_bytes(type)) else None


def file_column(leaf: pq.ColumnSchema) -> FileColumn | None:
    """How to read the bounds of this column; None if that is unsure."""
    physical, logical, width = leaf.physical_type, leaf.logical_type.type, int(leaf.length or 0)
    if physical in ("INT32", "INT64"):
        return _integer_column(leaf, physical, logical)
    if physical == "BOOLEAN" and logical == "NONE":
        return FileColumn(Line("number"), int, physical, 0)
    if physical in ("FLOAT", "DOUBLE") and logical == "NONE":
        return FileColumn(Line("float"), float, physical, 0)
    if physical in ("BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY"):
        if logical in _BYTES_LOGICAL and leaf.converted_type != "INTERVAL":
            return FileColumn(Line("bytes"), bytes, physical, width)
        if logical == "DECIMAL" and leaf.scale >= 0:
            return FileColumn(Line("number", leaf.scale), _big_endian, physical, width)
    return None


def _integer_column(leaf: pq.ColumnSchema, physical: str, logical: str) -> FileColumn | None:
    details = json.loads(leaf.logical_type.to_json())
    if logical == "NONE":
        return FileColumn(Line("number"), int, physical, 0)
    if logical == "INT":
        if details["isSigned"]:
            return FileColumn(Line("number"), int, physical, 0)
        all_bits = 0xFFFFFFFF if physical == "INT32" else 0xFFFFFFFFFFFFFFFF
        return FileColumn(Line("number"), lambda raw: int(raw) & all_bits, physical, 0, unsigned=True)
    if logical == "DECIMAL" and leaf.scale >= 0:
        return FileColumn(Line("number", leaf.scale), int, physical, 0)
    if logical == "DATE":
        return FileColumn(Line("date"), int, physical, 0)
    if logical in ("TIME", "TIMESTAMP") and details.get("timeUnit") in _UNIT_EXPONENTS:
        kind = "time" if logical == "TIME" else "instant" if details["isAdjustedToUTC"] else "wall"
        return FileColumn(Line(kind, _UNIT_EXPONENTS[details["timeUnit"]]), int, physical, 0)
    return None


def _big_endian(raw: Any) -> int:
    return int.from_bytes(raw, "big", signed=True)


def rescaled(low: Any, high: Any, shift: int) -> tuple[Any, Any]:
    """Bounds with `shift` more digits; with fewer, they are widened to whole ones.

    >>> rescaled(-1999, 1001, -3)
    (-2, 2)
    """
    if shift > 0:
        return low * 10**shift, high * 10**shift
    if shift < 0:
        return low // 10**-shift, -(-high // 10**-shift)
    return low, high


def places(values: pa.Array) -> Sequence[Any]:
    """Where these values lie on the line of their type, for bisecting. They are `on_line` and none is NULL.

    Numbers stay in Arrow's memory: a source may have millions of keys.
    """
    type = values.type
    if pa.types.is_decimal(type):
        return _decimal_places(values)
    if pa.types.is_large_binary(type):
        return _BytesPlaces(values)
    if pa.types.is_boolean(type):
        return _memory(values.cast(pa.uint8()), "B")
    if pa.types.is_uint64(type):
        return _memory(values, "Q")
    if pa.types.is_float32(type) or pa.types.is_float64(type):
        return _memory(values.cast(pa.float64()), "d")
    if pa.types.is_date32(type) or pa.types.is_time32(type):
        values = values.cast(pa.int32())
    return _memory(values.cast(pa.int64()), "q")


def _memory(values: pa.Array, code: Literal["B", "q", "Q", "d"]) -> Sequence[Any]:
    buffer: Any = memoryview(values.buffers()[1] or b"").cast("B").cast(code)
    return buffer[values.offset : values.offset + len(values)]  # type: ignore[no-any-return]


def _decimal_places(values: pa.Array) -> list[int]:
    width = values.type.byte_width
    data = memoryview(values.buffers()[1] or b"").cast("B")
    start = values.offset * width
    return [
        int.from_bytes(data[at : at + width], "little", signed=True)
        for at in range(start, start + len(values) * width, width)
    ]


class _BytesPlaces(Sequence[bytes]):
    """The values of a large_binary array, each made only when it is looked at."""

    def __init__(self, values: pa.Array) -> None:
        _, offsets, data = values.buffers()
        self._offsets = memoryview(offsets).cast("B").cast("q")[values.offset : values.offset + len(values) + 1]
        self._data = memoryview(data or b"").cast("B")
        self._length = len(values)

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, index: Any) -> Any:
        if index < 0:
            index += self._length
        return bytes(self._data[self._offsets[index] : self._offsets[index + 1]])


def on_line(column: pa.Array) -> pa.Array:
    """The column, one spelling a value already (`comparable`), in a type that Arrow sorts in the order of its line."""
    type = column.type
    if is_text(type) or is_bytes(type):
        return column.cast(pa.large_binary())  # sorted as unsigned bytes, as Parquet's bounds are
    if pa.types.is_date64(type):
        return column.cast(pa.date32())  # as it is written to Parquet
    if pa.types.is_decimal32(type) or pa.types.is_decimal64(type):
        return column.cast(pa.decimal128(type.precision, type.scale))
    return column


def in_order(column: pa.Array) -> pa.Array:
    """The values of a column that is `on_line` and has no NULL, sorted."""
    return column.take(pc.array_sort_indices(column))


def ranked(column: pa.Array) -> tuple[pa.Array, pa.Array]:
    """The different values of such a column, sorted, and for every row where its value is among them, in 32 bits.

    By sorting: a hash table of millions of keys takes ten times as long.
    """
    ranks = pc.subtract(pc.rank(column, tiebreaker="dense"), 1).cast(pa.int32())
    order = pc.array_sort_indices(ranks)
    of_sorted = ranks.take(order)
    is_first = pc.not_equal(of_sorted.slice(1), of_sorted.slice(0, max(0, len(order) - 1)))
    firsts = pa.concat_arrays([pa.array([True] * min(1, len(order)), pa.bool_()), is_first])
    return column.take(order.filter(firsts)), ranks
