"""Filters that Spark hands down, as conditions for the server.

Each keeps at least the rows that Spark's own filter keeps, and Spark filters again. So text is compared for equality
whatever its collation, and what the server may see another way is not asked of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date
from decimal import Decimal
from typing import Any
from uuid import UUID

from lockgate.sources.conditions import Condition, Value
from lockgate.sources.postgres_types import ReadColumn

_OPERATORS = {
    "EqualTo": "=",
    "EqualNullSafe": "=",
    "GreaterThan": ">",
    "GreaterThanOrEqual": ">=",
    "LessThan": "<",
    "LessThanOrEqual": "<=",
}
_MOST_VALUES = 1000  # of an IN


def conditions(filters: Iterable[Any], columns: Iterable[ReadColumn]) -> list[Condition]:
    """What the server can be asked of Spark's filters (`pyspark.sql.datasource.Filter`)."""
    known = {column.name: column for column in columns}
    return [condition for each in filters if (condition := _condition(each, known)) is not None]


def _condition(given: Any, columns: Mapping[str, ReadColumn]) -> Condition | None:
    kind = type(given).__name__
    if kind == "Not":
        inner = given.child
        column = _named(inner, columns)
        # What is not kept must be exactly what Spark does not keep: so nothing of texts, and no other kind of filter.
        if column is None or type(inner).__name__ not in (*_OPERATORS, "In", "IsNull", "IsNotNull"):
            return None
        if type(inner).__name__ in ("IsNull", "IsNotNull"):
            return Condition.of("NOT ", *_required(_condition(inner, columns)))
        if column.compares is None or type(inner).__name__ == "EqualNullSafe":
            return None
        condition = _condition(inner, columns)
        return None if condition is None else Condition.of("NOT (", *condition.parts, ")")
    column = _named(given, columns)
    if column is None:
        return None
    if kind == "IsNull":
        return Condition.of(f"{column.quoted} IS NULL")
    if kind == "IsNotNull":
        return Condition.of(f"{column.quoted} IS NOT NULL")
    if kind in _OPERATORS:
        return _compared(column, _OPERATORS[kind], given.value)
    if kind == "In" and len(given.value) <= _MOST_VALUES:
        each = [_compared(column, "=", value) for value in given.value if value is not None]
        found = [condition for condition in each if condition is not None]
        return Condition.any_of(found) if found and len(found) == len(each) else None
    if kind == "StringStartsWith" and column.direct and _can_be_sent(given.value):
        return Condition.of(f"starts_with({column.quoted}::text, ", Value(given.value, "text"), ")")
    return None


def _required(condition: Condition | None) -> tuple[str | Value, ...]:
    assert condition is not None
    return ("(", *condition.parts, ")")


def _named(given: Any, columns: Mapping[str, ReadColumn]) -> ReadColumn | None:
    path: tuple[str, ...] = getattr(given, "attribute", ())
    column = columns.get(path[0]) if len(path) == 1 else None
    return None if column is None or column.kind == "array" else column


def _compared(column: ReadColumn, operator: str, value: Any) -> Condition | None:
    if column.compares is not None:
        text = _text(value)
        return None if text is None else Condition.of(f"{column.quoted} {operator} ", Value(text, column.compares))
    if column.spark != "string" or operator != "=" or not _can_be_sent(value):  # the order of texts is the collation's
        return None
    if column.is_uuid:
        return Condition.of(f"{column.quoted} = ", Value(value, "uuid")) if _uuid(value) else None
    stored = column.quoted if column.direct else column.sql
    return Condition.of(f"{stored} = ", Value(value, "text"))


def _text(value: Any) -> str | None:
    """A value as the server reads it; None where that is not certain."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, int | Decimal):
        return str(value)
    return value.isoformat() if isinstance(value, date) else None  # a datetime is a date, too


def _uuid(value: str) -> bool:
    """Whether the text is a uuid as the server says it, so that no other text means the same."""
    try:
        return str(UUID(value)) == value
    except ValueError:
        return False


def _can_be_sent(value: Any) -> bool:
    return isinstance(value, str) and "\0" not in value
