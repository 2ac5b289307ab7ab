"""The statistics of a data file as Delta's JSON has them, taken from the file's footer; and back.

A bound may be wider than the truth, never narrower: texts are cut, instants rounded to milliseconds, and a column
that holds NaN has no bounds at all, since readers do not agree on where NaN stands.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

INDEXED_COLUMNS = 32  # leaves, as Delta's own writers have it unless the table says otherwise
INDEXED_SETTING = "delta.dataSkippingNumIndexedCols"

_LONGEST_TEXT = 32  # characters
_HIGHEST = "\U0010ffff"
_MILLISECOND = timedelta(milliseconds=1)


def indexed_columns(configuration: Mapping[str, str]) -> int:
    """How many leaves of a table have statistics.

    >>> indexed_columns({"delta.dataSkippingNumIndexedCols": "2"})
    2
    """
    try:
        wanted = int(configuration.get(INDEXED_SETTING, INDEXED_COLUMNS))
    except ValueError:
        return INDEXED_COLUMNS
    return wanted if wanted >= 0 else 1 << 30


def statistics_json(
    path: Path, schema: pa.Schema, *, leaves: int = INDEXED_COLUMNS, footer: pq.FileMetaData | None = None
) -> str:
    """The statistics of the Parquet file at `path`, whose table has this schema.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp(), "a.parquet")
    >>> pq.write_table(pa.table({"id": [1, 2, None]}), path)
    >>> statistics_json(path, pa.schema([("id", pa.int64())]))
    '{"numRecords":3,"minValues":{"id":1},"maxValues":{"id":2},"nullCount":{"id":1}}'
    """
    found = pq.read_metadata(path) if footer is None else footer
    lows: dict[str, Any] = {}
    highs: dict[str, Any] = {}
    nulls: dict[str, Any] = {}
    of_path = {found.schema.column(i).path: i for i in range(len(found.schema)) if not _repeats(found, i)}
    for number, (names, kind) in enumerate(_leaves(schema)):
        if number >= leaves:
            break
        leaf = of_path.get(".".join(names))
        if leaf is None:
            continue
        count, low, high = _of_leaf(found, leaf, kind)
        if count is not None:
            _put(nulls, names, count)
        if low is None or (pa.types.is_floating(kind) and _may_have_nan(path, found, names)):
            continue
        _put(lows, names, low)
        _put(highs, names, high)
    return _text({"numRecords": found.num_rows, "minValues": lows, "maxValues": highs, "nullCount": nulls})


def row_count(stats: str | None) -> int | None:
    """The number of rows that the statistics tell; None where they do not.

    >>> row_count('{"numRecords":3}'), row_count(None)
    (3, None)
    """
    count = _parsed(stats).get("numRecords")
    return count if isinstance(count, int) and not isinstance(count, bool) and count >= 0 else None


def bounds(stats: str | None, kinds: Mapping[str, pa.DataType]) -> dict[str, tuple[Any, Any]]:
    """The least and the greatest value of those of the columns for which the statistics tell both.

    >>> bounds('{"minValues":{"id":1},"maxValues":{"id":2}}', {"id": pa.int64(), "x": pa.int64()})
    {'id': (1, 2)}
    """
    parsed = _parsed(stats)
    lows, highs = parsed.get("minValues"), parsed.get("maxValues")
    if not isinstance(lows, dict) or not isinstance(highs, dict):
        return {}
    told = {}
    for name, kind in kinds.items():
        try:
            low, high = _value(lows.get(name), kind), _value(highs.get(name), kind)
        except (ValueError, TypeError, ArithmeticError, OverflowError):
            continue  # odd bounds prove nothing
        if low is not None and high is not None:
            told[name] = (low, _grown(high) if isinstance(high, datetime) else high)
    return told


def null_counts(stats: str | None) -> dict[str, Any]:
    """How many NULLs the columns have, where the statistics tell."""
    found = _parsed(stats).get("nullCount")
    return found if isinstance(found, dict) else {}


def _parsed(stats: str | None) -> dict[str, Any]:
    if not stats:
        return {}
    try:
        found = json.loads(stats, parse_float=Decimal)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _leaves(schema: pa.Schema) -> Iterator[tuple[tuple[str, ...], pa.DataType]]:
    for field in schema:
        yield from _leaves_of((field.name,), field.type)


def _leaves_of(names: tuple[str, ...], kind: pa.DataType) -> Iterator[tuple[tuple[str, ...], pa.DataType]]:
    if not pa.types.is_struct(kind):
        yield names, kind
        return
    for field in kind:
        yield from _leaves_of((*names, field.name), field.type)


def _repeats(footer: pq.FileMetaData, leaf: int) -> bool:
    return int(footer.schema.column(leaf).max_repetition_level) > 0


def _of_leaf(footer: pq.FileMetaData, leaf: int, kind: pa.DataType) -> tuple[int | None, Any, Any]:
    """The number of NULLs and the bounds in JSON's terms; None for what some row group does not tell."""
    groups = [g for g in map(footer.row_group, range(footer.num_row_groups)) if g.num_rows]
    statistics = [group.column(leaf).statistics for group in groups]
    told = [s.null_count if s is not None and s.has_null_count else None for s in statistics]
    nulls = None if None in told else sum(n for n in told if n is not None)
    filled = [s for s, n, g in zip(statistics, told, groups, strict=True) if n is None or n < g.num_rows]
    if not filled or any(s is None or not s.has_min_max for s in filled):
        return nulls, None, None
    try:
        low, high = min(s.min for s in filled), max(s.max for s in filled)
        return nulls, *_spelled(low, high, kind)
    except (ValueError, TypeError, OverflowError, ArithmeticError, UnicodeDecodeError, pa.ArrowException):
        return nulls, None, None  # such as a date that Python does not know


def _spelled(low: Any, high: Any, kind: pa.DataType) -> tuple[Any, Any]:
    if pa.types.is_string(kind) and isinstance(low, str) and isinstance(high, str):
        return _cut_short(low, high)
    if pa.types.is_decimal(kind) and isinstance(low, Decimal):
        return low, high
    if pa.types.is_integer(kind) and isinstance(low, int):
        return low, high
    if pa.types.is_floating(kind) and isinstance(low, float) and math.isfinite(low) and math.isfinite(high):
        return low, high
    if pa.types.is_timestamp(kind) and isinstance(low, datetime) and (low.tzinfo is None) == (kind.tz is None):
        suffix = "" if kind.tz is None else "Z"
        return _milliseconds(low, up=False) + suffix, _milliseconds(high, up=True) + suffix
    if pa.types.is_date(kind) and isinstance(low, date) and not isinstance(low, datetime):
        return low.isoformat(), high.isoformat()
    return None, None


def _cut_short(low: str, high: str) -> tuple[str | None, str | None]:
    """The least text may become shorter; the greatest gets, where it is cut, a character after all others."""
    if len(high) <= _LONGEST_TEXT:
        return low[:_LONGEST_TEXT], high
    at = _LONGEST_TEXT
    while at < len(high) and high[at] == _HIGHEST:  # which no character comes after
        at += 1
    return low[:_LONGEST_TEXT], high if at >= len(high) else high[:at] + _HIGHEST


def _milliseconds(value: datetime, *, up: bool) -> str:
    wall = value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value
    whole = wall.replace(microsecond=wall.microsecond // 1000 * 1000)
    if up and whole != wall:
        whole += _MILLISECOND
    return whole.isoformat(timespec="milliseconds")


def _may_have_nan(path: Path, footer: pq.FileMetaData, names: tuple[str, ...]) -> bool:
    """A footer's bounds leave NaN out, so the values are looked at; inside of structs they are not, and may be."""
    if len(names) > 1:
        return True
    with pq.ParquetFile(path, metadata=footer) as file:
        return any(
            bool(pc.any(pc.is_nan(file.read_row_group(group, columns=list(names)).column(0))).as_py())
            for group in range(file.num_row_groups)
        )


def _put(tree: dict[str, Any], names: tuple[str, ...], value: Any) -> None:
    for name in names[:-1]:
        tree = tree.setdefault(name, {})
    tree[names[-1]] = value


def _text(value: Any) -> str:
    """JSON in which a decimal is a number with all its digits, which Python's own encoder cannot write."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{json.dumps(k, ensure_ascii=False)}:{_text(v)}" for k, v in value.items()) + "}"
    if isinstance(value, Decimal):
        return format(value, "f")
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def _value(value: Any, kind: pa.DataType) -> Any:
    """A bound as a value of the type; None where there is none."""
    if value is None or isinstance(value, dict | list):
        return None
    if pa.types.is_timestamp(kind):
        at = datetime.fromisoformat(value)
        if kind.tz is None:
            return at.replace(tzinfo=None)
        return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    if pa.types.is_date(kind):
        return date.fromisoformat(value[:10])
    if pa.types.is_decimal(kind):
        return pa.scalar(Decimal(str(value)), kind).as_py()
    if pa.types.is_floating(kind):
        return float(value)
    if pa.types.is_integer(kind):
        return int(value) if not isinstance(value, str) else None
    if pa.types.is_string(kind):
        return value if isinstance(value, str) else None
    return None


def _grown(high: datetime) -> datetime:
    """Some writers cut instants to milliseconds, the greatest as well."""
    try:
        return high + _MILLISECOND
    except OverflowError:
        return high.replace(microsecond=999_999)
