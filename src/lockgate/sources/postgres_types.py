"""PostgreSQL's types as Spark's: how a column is asked for, and what it becomes.

What Spark has no type for comes as text, said by the server itself: a uuid, JSON, an enum, an interval.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from lockgate.identifiers import double_quoted

Kind = Literal["plain", "decimal", "date", "timestamp", "array"]

_MAX_PRECISION = 38


@dataclass(frozen=True)
class Scalar:
    spark: str  # as in the JSON of a Spark schema
    cast: str  # the server's type that is asked for
    kind: Kind = "plain"
    compares: str | None = None  # the server's type in which values are compared exactly as Spark does; None: as text


_TEXT = Scalar("string", "text")
_SCALARS: Mapping[int, Scalar] = {
    16: Scalar("boolean", "boolean", compares="boolean"),
    17: Scalar("binary", "bytea"),
    20: Scalar("long", "bigint", compares="bigint"),
    21: Scalar("short", "smallint", compares="smallint"),
    23: Scalar("integer", "integer", compares="integer"),
    26: Scalar("long", "bigint"),  # an oid
    700: Scalar("float", "real", compares="real"),
    701: Scalar("double", "double precision", compares="double precision"),
    790: Scalar("decimal(20,2)", "numeric::text", "decimal"),  # money
    1082: Scalar("date", "date", "date", compares="date"),
    1114: Scalar("timestamp_ntz", "timestamp", "timestamp", compares="timestamp without time zone"),
    1184: Scalar("timestamp", "timestamptz", "timestamp", compares="timestamp with time zone"),
}
_NUMERIC = 1700
_COMPARED_AS_TEXT = {19, 25, 1043}  # name, text, varchar: an index on the column itself helps
_UUID = 2950


@dataclass(frozen=True)
class TypeRow:
    """What the catalog says of a type."""

    kind: str  # pg_type.typtype: b, c, d, e, p, r, m
    base: int
    base_modifier: int
    element: int  # 0: not an array


@dataclass(frozen=True)
class ReadColumn:
    """A column as it is asked for and as it arrives."""

    name: str
    sql: str
    spark: Any  # as in the JSON of a Spark schema
    kind: Kind
    element: Kind = "plain"  # of an array
    compares: str | None = None
    is_uuid: bool = False
    direct: bool = False  # a text that is compared as it is stored

    @property
    def quoted(self) -> str:
        return double_quoted(self.name)


def read_column(name: str, oid: int, modifier: int, types: Mapping[int, TypeRow], *, as_text: bool) -> ReadColumn:
    """How to ask for a column of this type."""
    column = double_quoted(name)
    if as_text:
        return ReadColumn(name, f"{column}::text", "string", "plain")
    oid, modifier = _without_domain(oid, modifier, types)
    row = types.get(oid)
    if row is not None and row.element:
        element = _scalar(*_without_domain(row.element, modifier, types))
        last = element.cast.rpartition("::")[2]
        via = "::numeric[]" if "::" in element.cast else ""
        spark = {"type": "array", "elementType": element.spark, "containsNull": True}
        return ReadColumn(name, f"{column}{via}::{last}[]", spark, "array", element.kind)
    if row is not None and row.kind == "c":
        return ReadColumn(name, f"to_json({column})::text", "string", "plain")
    scalar = _scalar(oid, modifier)
    return ReadColumn(
        name,
        f"{column}::{scalar.cast}",
        scalar.spark,
        scalar.kind,
        compares=scalar.compares,
        is_uuid=oid == _UUID,
        direct=oid in _COMPARED_AS_TEXT,
    )


def _without_domain(oid: int, modifier: int, types: Mapping[int, TypeRow]) -> tuple[int, int]:
    while (row := types.get(oid)) is not None and row.kind == "d":
        oid, modifier = row.base, row.base_modifier if row.base_modifier != -1 else modifier
    return oid, modifier


def _scalar(oid: int, modifier: int) -> Scalar:
    if oid == _NUMERIC:
        return Scalar(_decimal(modifier), "text", "decimal", compares="numeric")
    return _SCALARS.get(oid, _TEXT)


def _decimal(modifier: int) -> str:
    """The decimal type of a numeric; one without a limit gets the most that Spark has.

    >>> _decimal(655366), _decimal(-1)
    ('decimal(10,2)', 'decimal(38,18)')
    """
    if modifier < 4:
        return "decimal(38,18)"
    precision, scale = (modifier - 4) >> 16, (modifier - 4) & 0x7FF
    scale = scale - 0x800 if scale & 0x400 else scale  # eleven bits, with a sign
    if scale < 0:  # rounded to the left of the point
        precision, scale = precision - scale, 0
    precision = max(precision, scale)
    if precision > _MAX_PRECISION:
        return f"decimal({_MAX_PRECISION},{min(scale, _MAX_PRECISION)})"
    return f"decimal({precision},{scale})"
