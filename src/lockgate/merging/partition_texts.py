"""The text of a partition value and back, as Spark and Hive write and read it."""

from __future__ import annotations

import math
import re
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from functools import lru_cache
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa

from lockgate.errors import SchemaMismatchError
from lockgate.merging.type_families import is_bytes, is_text

_UNITS = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}  # in a second
_NANOS = 1_000_000_000
_INTEGER = re.compile(r"[+-]?[0-9]+")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_SPECIAL_FLOATS = {"nan": math.nan, "infinity": math.inf, "+infinity": math.inf, "-infinity": -math.inf}
_SPECIAL_FLOATS |= {"inf": math.inf, "+inf": math.inf, "-inf": -math.inf}
_DATE = re.compile(r"([0-9]{4})-([0-9]{1,2})-([0-9]{1,2})")
_TIME = re.compile(r"([0-9]{1,2}):([0-9]{2})(?::([0-9]{2})(?:\.([0-9]{1,9}))?)?")
_ZONE = re.compile(r"(Z|UTC|[+-][0-9]{2}:?[0-9]{2})")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def parsed(text: str, type: pa.DataType) -> Any:
    """`text` as a Python value of the type; any of Python's or Arrow's errors where it is none."""
    if isinstance(type, pa.BaseExtensionType):
        return parsed(text, type.storage_type)
    if pa.types.is_dictionary(type):
        return parsed(text, type.value_type)
    if is_text(type):
        return text
    if is_bytes(type):
        return pa.scalar(text.encode(), type).as_py()
    if pa.types.is_boolean(type):
        return text.lower() == "true" if text.lower() in ("true", "false") else _refused(text)
    if pa.types.is_timestamp(type):
        return _from_count(_timestamp_count(text, type), type)
    if pa.types.is_time(type):
        return _from_count(_in_unit(_time_nanos(text), type.unit), type)
    return pa.scalar(_plain_value(text, type), type).as_py()


def value_text(value: Any) -> str | None:
    """The text that a reader parses back to the same value.

    >>> value_text(Decimal("1E+3")), value_text(datetime(2026, 1, 1, 10))
    ('1000', '2026-01-01 10:00:00')
    """
    match value:
        case None | str():
            return value
        case bool():
            return "true" if value else "false"
        case float():
            return _float_text(value)
        case Decimal():
            return format(value, "f")
        case datetime():
            return _datetime_text(value)
        case time():
            return f"{value:%H:%M:%S}{_fraction(value.microsecond * 1_000)}"
        case date():
            return value.isoformat()
        case bytes():
            return _bytes_text(value)
        case _:
            return str(value)


def column_texts(array: pa.Array) -> list[str | None]:
    """The text of every value of a column.

    >>> column_texts(pa.array([7, None]))
    ['7', None]
    """
    if isinstance(array, pa.ChunkedArray):
        return [text for chunk in array.chunks for text in column_texts(chunk)]
    if isinstance(array.type, pa.BaseExtensionType):
        return column_texts(array.storage)
    if not pa.types.is_dictionary(array.type):
        array = array.dictionary_encode()  # a partition column repeats itself: each value is spelled once
    texts = _distinct_texts(array.dictionary)
    return [None if index is None else texts[index] for index in array.indices.to_pylist()]


def _distinct_texts(values: pa.Array) -> list[str | None]:
    if pa.types.is_timestamp(values.type):
        per_second, zone = _UNITS[values.type.unit], values.type.tz
        counts = values.cast(pa.int64()).to_pylist()  # numbers, as a Python datetime has no nanoseconds
        return [None if n is None else _instant_text(n * (_NANOS // per_second), zone) for n in counts]
    if pa.types.is_time64(values.type) and values.type.unit == "ns":
        return [None if n is None else _clock_text(n) for n in values.cast(pa.int64()).to_pylist()]
    return [value_text(value) for value in values.to_pylist()]


def _plain_value(text: str, type: pa.DataType) -> Any:
    if pa.types.is_integer(type) and _INTEGER.fullmatch(text):
        return int(text)
    if pa.types.is_floating(type):
        return _SPECIAL_FLOATS[text.lower()] if text.lower() in _SPECIAL_FLOATS else float(_matching(_NUMBER, text)[0])
    if pa.types.is_decimal(type):
        return Decimal(_matching(_NUMBER, text)[0])
    if pa.types.is_date(type):
        year, month, day = _matching(_DATE, text).groups()
        return date(int(year), int(month), int(day))
    return _refused(text)


def _timestamp_count(text: str, type: pa.DataType) -> int:
    """The instant since the epoch in the type's unit. A text without a zone is a time on the clocks of the type's."""
    day_text, separator, clock = text.replace("T", " ", 1).partition(" ")
    day = datetime(*map(int, _matching(_DATE, day_text).groups()))  # type: ignore[arg-type]
    if separator and not clock:
        _refused(text)
    zone_match = re.search(_ZONE.pattern + r"$", clock)
    nanos = _time_nanos(clock[: zone_match.start()].rstrip() if zone_match else clock) if clock else 0
    whole = day + timedelta(seconds=nanos // _NANOS)
    if zone_match and type.tz is None:
        _refused(text)  # which wall clock it would be is anybody's guess
    zone = _offset(zone_match[0]) if zone_match else _zone(type.tz)
    since = whole.replace(tzinfo=zone) - _EPOCH
    return _in_unit((since.days * 86_400 + since.seconds) * _NANOS + nanos % _NANOS, type.unit)


def _time_nanos(text: str) -> int:
    hour, minute, second, fraction = _matching(_TIME, text).groups()
    if int(hour) > 23 or int(minute) > 59 or int(second or 0) > 59:
        _refused(text)
    whole = int(hour) * 3_600 + int(minute) * 60 + int(second or 0)
    return whole * _NANOS + int((fraction or "0").ljust(9, "0"))


def _in_unit(nanos: int, unit: str) -> int:
    count, rest = divmod(nanos, _NANOS // _UNITS[unit])
    return count if not rest else int(_refused(f"{nanos} ns"))


def _from_count(count: int, type: pa.DataType) -> Any:
    exact = pa.scalar(count, type)  # refuses what is out of range
    if type.unit != "ns":
        return exact.as_py()
    if count % 1_000:
        return count
    coarser = pa.timestamp("us", type.tz) if pa.types.is_timestamp(type) else pa.time64("us")
    return pa.scalar(count // 1_000, coarser).as_py()


@lru_cache(maxsize=64)
def _zone(name: str | None) -> Any:
    if name is None or name.upper() == "UTC":
        return UTC
    return _offset(name) if name[0] in "+-" else ZoneInfo(name)


def _offset(text: str) -> Any:
    return datetime.strptime(text, "%z").tzinfo if text[0] in "+-" else UTC


def _instant_text(nanos: int, zone: str | None) -> str:
    """UTC, and said so unless the column is UTC's (or nobody's) own: Spark infers no timestamp where a zone stands."""
    seconds, rest = divmod(nanos, _NANOS)
    whole = _EPOCH + timedelta(seconds=seconds)
    suffix = "" if _zone(zone) is UTC else "Z"
    return f"{whole.replace(tzinfo=None).isoformat(sep=' ')}{_fraction(rest)}{suffix}"


def _datetime_text(value: datetime) -> str:
    suffix = "" if value.tzinfo is None or str(value.tzinfo) in ("UTC", "Etc/UTC") else "Z"
    wall = value if value.tzinfo is None else value.astimezone(UTC).replace(tzinfo=None)
    return f"{wall.replace(microsecond=0).isoformat(sep=' ')}{_fraction(wall.microsecond * 1_000)}{suffix}"


def _clock_text(nanos: int) -> str:
    seconds, rest = divmod(nanos, _NANOS)
    return f"{seconds // 3_600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}{_fraction(rest)}"


def _fraction(nanos: int) -> str:
    return f".{nanos:09d}".rstrip("0") if nanos else ""


def _float_text(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return repr(value + 0.0)  # one spelling of zero


def _bytes_text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError as error:
        raise SchemaMismatchError(
            f"the binary value {value!r} of a partition column is no text, and a folder's name must be",
            in_place="nothing was written",
            hint="partition by another column, or by a text of this one",
        ) from error


def _matching(pattern: re.Pattern[str], text: str) -> re.Match[str]:
    match = pattern.fullmatch(text)
    return match if match else _refused(text)


def _refused(text: str) -> Any:
    raise ValueError(text)
