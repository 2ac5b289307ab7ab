"""The bounds of a column over a whole file, from those of its row groups."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from lockgate.merging.bounds import FileColumn, file_column

_NANOSECONDS = 9
_DAY = 86_400_000_000  # in microseconds


def column_statistics(footer: pq.FileMetaData, leaf: int) -> dict[str, Any]:
    """`min`, `max` and `null_count` of one leaf; None for what a row group does not say, or not understandably.

    Nanoseconds are widened to microseconds, so that nothing lies outside the bounds.
    """
    try:
        return _read(footer, leaf)
    except Exception:  # odd or encrypted statistics prove nothing
        return {"min": None, "max": None, "null_count": None}


def _read(footer: pq.FileMetaData, leaf: int) -> dict[str, Any]:
    groups = [group for group in map(footer.row_group, range(footer.num_row_groups)) if group.num_rows]
    statistics = [group.column(leaf).statistics for group in groups]
    nulls = [found.null_count if found is not None and found.has_null_count else None for found in statistics]
    bounded = [found for found in statistics if found is not None and found.has_min_max]
    empty = sum(found == group.num_rows for found, group in zip(nulls, groups, strict=True))
    file = file_column(footer.schema.column(leaf))
    low = high = None
    if file and bounded and len(bounded) + empty >= len(groups):  # else one holds values and does not say which
        low, high = _bounds(bounded, file)
    return {"min": low, "max": high, "null_count": None if None in nulls else sum(n for n in nulls if n is not None)}


def _bounds(bounded: list[Any], file: FileColumn) -> tuple[Any, Any]:
    if not all(file.place(found.min_raw) <= file.place(found.max_raw) for found in bounded):
        return None, None  # NaN, or upside down
    lowest = min(bounded, key=lambda found: file.place(found.min_raw))
    highest = max(bounded, key=lambda found: file.place(found.max_raw))
    if file.line.exponent == _NANOSECONDS and file.line.kind in ("time", "wall", "instant"):
        zone = "UTC" if file.line.kind == "instant" else None
        type = pa.time64("us") if file.line.kind == "time" else pa.timestamp("us", zone)
        low, high = file.place(lowest.min_raw) // 1_000, -(-file.place(highest.max_raw) // 1_000)
        if file.line.kind == "time" and high >= _DAY:  # which would be read as midnight, the smallest of all
            return None, None
        return pa.scalar(low, type).as_py(), pa.scalar(high, type).as_py()
    return lowest.min, highest.max
