"""Casting a column when no value is lost, and saying which value would be."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from lockgate.errors import SchemaMismatchError
from lockgate.merging.conversions import convertible, exact

_SHOWN = 80  # characters of an offending value


def cast_exactly(column: pa.ChunkedArray, to: pa.DataType, name: str, *, first_row: int = 0) -> pa.ChunkedArray:
    """The column as another type, each value equal to what it was, or a SchemaMismatchError. `first_row`: the number
    of its first row, where it is a piece of a longer column.

    >>> cast_exactly(pa.chunked_array([[1.0, 2.0]]), pa.int32(), "id").to_pylist()
    [1, 2]
    >>> cast_exactly(pa.chunked_array([[1.0, 2.5]]), pa.int32(), "id")
    Traceback (most recent call last):
    lockgate.errors.SchemaMismatchError: column "id": double does not fit into int32 without loss: 2.5 in row 1
    """
    if column.type == to:
        return column
    if not convertible(column.type, to):
        raise unrelated(name, column.type, to)
    pieces: list[pa.Array] = []
    row = first_row
    try:
        for chunk in column.chunks:
            pieces.extend(_converted(chunk, to, name, row))
            row += len(chunk)
    except pa.ArrowNotImplementedError as error:  # a rare pair of types for which Arrow has no code
        raise unrelated(name, column.type, to) from error
    return pa.chunked_array(pieces, to)


def unrelated(name: str, source: pa.DataType, target: pa.DataType) -> SchemaMismatchError:
    """The error for two types between which nothing is ever converted."""
    return SchemaMismatchError(
        f'column "{name}": the source has {source}, the target has {target}, and one is never turned into the other',
        hint=f"cast the column in the source, e.g. CAST({name} AS …)",
        in_place="nothing was written",
    )


def shown(scalar: pa.Scalar) -> str:
    """A value as a message shows it, cut to a bearable length."""
    try:
        text = repr(scalar.as_py())
    except (ValueError, OverflowError):  # Python has no such moment: nanoseconds, the year 300000
        text = str(scalar.cast(pa.string()).as_py())
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"


def _converted(chunk: pa.Array, to: pa.DataType, name: str, first_row: int) -> list[pa.Array]:
    try:
        return [exact(chunk, to)]
    except (ValueError, pa.ArrowCapacityError) as error:
        lost = _first_lost(chunk, to)
        if lost is not None:
            raise _would_lose(chunk[lost], to, name, first_row + lost) from error
    # Each value fits, but not all of them into one array (2 GiB of text, a dictionary of int8).
    half = len(chunk) // 2
    left, right = _compact(chunk.slice(0, half)), _compact(chunk.slice(half))
    return _converted(left, to, name, first_row) + _converted(right, to, name, first_row + half)


def _first_lost(chunk: pa.Array, to: pa.DataType) -> int | None:
    """The first row that does not fit, by halving; None if each row fits alone."""
    start, stop = 0, len(chunk)
    while stop - start > 1:
        middle = (start + stop) // 2
        if _fits(chunk.slice(start, middle - start), to):
            start = middle
        else:
            stop = middle
    return None if _fits(chunk.slice(start, 1), to) else start


def _fits(rows: pa.Array, to: pa.DataType) -> bool:
    try:
        exact(_compact(rows), to)
    except (ValueError, pa.ArrowCapacityError):
        return False
    return True


def _compact(rows: pa.Array) -> pa.Array:
    """A slice with memory of its own: Arrow judges the size of text by the whole array that a slice is cut from."""
    return pa.concat_arrays([rows])


def _would_lose(value: Any, to: pa.DataType, name: str, row: int) -> SchemaMismatchError:
    return SchemaMismatchError(
        f'column "{name}": {value.type} does not fit into {to} without loss: {shown(value)} in row {row}',
        hint="rows are counted from 0; correct the value, round it in the source, or widen the column of the target",
        in_place="nothing was written",
    )
