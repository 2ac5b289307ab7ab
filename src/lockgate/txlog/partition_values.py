"""Partition values as texts, as the Delta protocol spells them, and back."""

from __future__ import annotations

import math
import re
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

from lockgate.errors import SchemaMismatchError

_INTEGER = re.compile(r"[+-]?[0-9]+")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_TIMESTAMP = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2})(?:[ T]([0-9]{2}:[0-9]{2}:[0-9]{2})(?:\.([0-9]{1,9}))?(Z)?)?")


def partition_text(value: Any, kind: pa.DataType, column: str) -> str | None:
    """The text of a value of that type; None is NULL.

    >>> partition_text(datetime(2026, 1, 1, 10, tzinfo=UTC), pa.timestamp("us", "UTC"), "at")
    '2026-01-01T10:00:00.000000Z'
    """
    if value is None:
        return None
    if isinstance(value, str) and (value == "" or "\0" in value):
        said = "an empty text" if value == "" else "a text with NUL"
        raise SchemaMismatchError(
            f'the partition column "{column}" holds {said}, which a Delta table cannot tell from NULL',
            in_place="nothing was written",
            hint="use NULL itself, or another value",
        )
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float():
            return _float_text(value)
        case Decimal():
            return format(value, "f")
        case datetime():
            return _timestamp_text(value, kind)
        case date():
            return value.isoformat()
    raise not_for_partitions(column, kind)


def partition_value(text: str | None, kind: pa.DataType, column: str) -> Any:
    """The value that a text stands for; an empty text is NULL, as every reader of Delta takes it.

    >>> partition_value("2026-01-01", pa.date32(), "day")
    datetime.date(2026, 1, 1)
    """
    if text is None or text == "":
        return None
    try:
        return _parsed(text, kind)
    except (ValueError, ArithmeticError, KeyError, pa.ArrowException) as error:
        raise SchemaMismatchError(
            f'the log gives the partition column "{column}" the value {text!r}, which is no {kind}',
            in_place="nothing was written",
        ) from error


def refuse_partition_types(schema: pa.Schema, columns: tuple[str, ...]) -> None:
    """Columns whose values have no text cannot be partition columns."""
    for column in columns:
        kind = schema.field(column).type
        if pa.types.is_nested(kind) or pa.types.is_binary(kind):
            raise not_for_partitions(column, kind)


def not_for_partitions(column: str, kind: pa.DataType) -> SchemaMismatchError:
    return SchemaMismatchError(
        f'column "{column}" cannot be a partition column: its type is {kind}',
        in_place="nothing was written",
        hint="partition by a number, a date, a time, a boolean or a text",
    )


def _float_text(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return repr(value + 0.0)  # one spelling of zero


def _timestamp_text(value: datetime, kind: pa.DataType) -> str:
    """With a zone: ISO 8601 in UTC, which no reader takes for a time of its own zone."""
    if pa.types.is_timestamp(kind) and kind.tz is None:
        return f"{value.replace(tzinfo=None).isoformat(sep=' ', timespec='microseconds')}"
    utc = value if value.tzinfo is None else value.astimezone(UTC)
    return f"{utc.replace(tzinfo=None).isoformat(timespec='microseconds')}Z"


def _parsed(text: str, kind: pa.DataType) -> Any:
    if pa.types.is_string(kind):
        return text
    if pa.types.is_boolean(kind):
        return {"true": True, "false": False}[text.lower()]
    if pa.types.is_integer(kind) and _INTEGER.fullmatch(text):
        return pa.scalar(int(text), kind).as_py()
    if pa.types.is_floating(kind):
        return pa.scalar(float(text), kind).as_py()
    if pa.types.is_decimal(kind):
        return pa.scalar(Decimal(text), kind).as_py()
    if pa.types.is_date(kind) and _DATE.fullmatch(text):
        return date.fromisoformat(text)
    found = _TIMESTAMP.fullmatch(text) if pa.types.is_timestamp(kind) else None
    if found is None or (found[4] and kind.tz is None):
        raise ValueError(text)
    day, clock, fraction, _ = found.groups()
    if fraction and len(fraction) > 6 and fraction[6:].strip("0"):
        raise ValueError(text)
    at = datetime.fromisoformat(f"{day}T{clock or '00:00:00'}").replace(
        microsecond=int((fraction or "0").ljust(6, "0")[:6])
    )
    return at if kind.tz is None else at.replace(tzinfo=UTC)
