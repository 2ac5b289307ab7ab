"""A condition in Spark's SQL as an Arrow expression: the part of SQL in which both surely mean the same.

That part is comparisons, AND, OR, NOT, IN, BETWEEN, LIKE, IS NULL, + - *, a few functions, columns and literals. All
else is refused by what it is. NaN is the greatest number and equals itself, as in Spark; NULL makes a condition NULL.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from lockgate.errors import ConstraintError

_FUNCTIONS: dict[str, Callable[..., pc.Expression]] = {
    "Length": pc.utf8_length,
    "Lower": pc.utf8_lower,
    "Upper": pc.utf8_upper,
    "Abs": pc.abs_checked,
}


@dataclass(frozen=True)
class Condition:
    expression: pc.Expression
    columns: tuple[str, ...]


def condition(text: str, schema: pa.Schema, called: str) -> Condition:
    """The condition over rows of that schema, or a refusal that names what is not understood.

    >>> condition("a > 1 AND b IS NOT NULL", pa.schema([("a", pa.int64()), ("b", pa.string())]), "it").columns
    ('a', 'b')
    """
    import sqlglot
    from sqlglot.errors import SqlglotError

    try:
        tree = sqlglot.parse_one(text, read="spark")
    except (SqlglotError, RecursionError) as error:
        raise _refused(called, "it is not a condition in SQL") from error
    reading = _Reading(pa.schema([f.with_nullable(True) for f in schema]), called)
    expression = reading.read(tree)
    if not pa.types.is_boolean(reading.kind(expression)):
        raise _refused(called, "it is neither true nor false")
    return Condition(expression, tuple(dict.fromkeys(reading.columns)))


def _refused(called: str, why: str) -> ConstraintError:
    return ConstraintError(
        f"{called} cannot be checked by this version: {why}",
        in_place="nothing was written",
        hint="write it with comparisons, AND, OR, NOT, IN, BETWEEN, LIKE, IS NULL, + - * and literals, or write to "
        "the table with an engine that checks it",
    )


class _Reading:
    def __init__(self, schema: pa.Schema, called: str) -> None:
        self._schema = schema
        self._called = called
        self._nothing = ds.dataset(schema.empty_table())
        self.columns: list[str] = []

    def read(self, node: Any) -> pc.Expression:
        from sqlglot import exp

        match node:
            case exp.Paren():
                return self.read(node.this)
            case exp.And():
                return self.read(node.this) & self.read(node.expression)
            case exp.Or():
                return self.read(node.this) | self.read(node.expression)
            case exp.Not():
                return ~self.read(node.this)
            case exp.EQ() | exp.NEQ() | exp.GT() | exp.GTE() | exp.LT() | exp.LTE():
                return self._compared(type(node).__name__, *self._operands(node.this, node.expression))
            case exp.NullSafeEQ():
                left, right = self._operands(node.this, node.expression)
                both = left.is_null() & right.is_null()
                return both | pc.coalesce(self._compared("EQ", left, right), pc.scalar(False))
            case exp.Is() if isinstance(node.expression, exp.Null):
                return self.read(node.this).is_null()
            case exp.In() if node.expressions and not node.args.get("query"):
                each = [self._compared("EQ", *self._operands(node.this, value)) for value in node.expressions]
                return reduce(lambda a, b: a | b, each)
            case exp.Between():
                low = self._compared("GTE", *self._operands(node.this, node.args["low"]))
                return low & self._compared("LTE", *self._operands(node.this, node.args["high"]))
            case exp.Like() if isinstance(node.expression, exp.Literal) and "\\" not in node.expression.this:
                return pc.match_like(self._text(node.this), node.expression.this)
            case exp.Add() | exp.Sub() | exp.Mul():
                return self._computed(node)
            case exp.Neg():
                return pc.negate_checked(self.read(node.this))
            case exp.Coalesce():
                return pc.coalesce(*(self.read(each) for each in (node.this, *node.expressions)))
            case exp.Length() | exp.Lower() | exp.Upper():
                return _FUNCTIONS[type(node).__name__](self._text(node.this))
            case exp.Abs():
                return pc.abs_checked(self.read(node.this))
            case exp.Boolean():
                return pc.scalar(bool(node.this))
            case exp.Literal():
                return pc.scalar(self._literal(node))
            case exp.Cast() if isinstance(node.this, exp.Literal) and node.to.this == exp.DataType.Type.DATE:
                return pc.scalar(self._date(node.this.this))
            case exp.Column():
                return self._column(node)
        raise self._no(node)

    def kind(self, expression: pc.Expression) -> pa.DataType:
        try:
            return self._nothing.scanner(columns={"x": expression}).projected_schema.field("x").type
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowKeyError) as error:
            raise _refused(self._called, str(error).splitlines()[0]) from error

    def _column(self, node: Any) -> pc.Expression:
        names = [part.name for part in node.parts]
        found = [f for f in self._schema if f.name == names[0]]
        found = found or [f for f in self._schema if f.name.lower() == names[0].lower()]
        if not found:
            raise _refused(self._called, f"the table has no column {names[0]!r}")
        path, kind = [found[0].name], found[0].type
        for name in names[1:]:
            inner = [f for f in kind if f.name.lower() == name.lower()] if pa.types.is_struct(kind) else []
            if len(inner) != 1:
                raise _refused(self._called, f"the table has no column {'.'.join(names)!r}")
            path.append(inner[0].name)
            kind = inner[0].type
        self.columns.append(path[0])
        return pc.field(*path) if len(path) > 1 else pc.field(path[0])

    def _operands(self, left: Any, right: Any) -> tuple[pc.Expression, pc.Expression]:
        """Both sides of a comparison; a text that stands beside a date is one."""
        one, other = self.read(left), self.read(right)
        one_kind, other_kind = self.kind(one), self.kind(other)
        if pa.types.is_date(one_kind) and _is_text(right):
            return one, pc.scalar(self._date(right.this))
        if pa.types.is_date(other_kind) and _is_text(left):
            return pc.scalar(self._date(left.this)), other
        if pa.types.is_timestamp(one_kind) and _is_text(right):
            return one, pc.scalar(self._moment(right.this, one_kind))
        if pa.types.is_timestamp(other_kind) and _is_text(left):
            return pc.scalar(self._moment(left.this, other_kind)), other
        families = _family(one_kind), _family(other_kind)
        if families[0] != families[1]:
            raise _refused(self._called, f"it compares {one_kind} with {other_kind}")
        return one, other

    def _compared(self, how: str, left: pc.Expression, right: pc.Expression) -> pc.Expression:
        if how in ("LT", "LTE"):
            return self._compared("GT" if how == "LT" else "GTE", right, left)
        if how == "NEQ":
            return ~self._compared("EQ", left, right)
        floating = [side for side in (left, right) if pa.types.is_floating(self.kind(side))]
        plain = {"EQ": left == right, "GT": left > right, "GTE": left >= right}[how]
        self.kind(plain)
        if not floating:
            return plain
        nan_left, nan_right = self._nan(left), self._nan(right)
        if how == "EQ":
            return plain | (nan_left & nan_right)
        return plain | (nan_left & ~nan_right) if how == "GT" else plain | nan_left

    def _nan(self, side: pc.Expression) -> pc.Expression:
        if pa.types.is_floating(self.kind(side)):
            return pc.is_nan(side)
        return pc.if_else(pc.is_valid(side), pc.scalar(False), pc.scalar(None).cast(pa.bool_()))

    def _computed(self, node: Any) -> pc.Expression:
        left, right = self.read(node.this), self.read(node.expression)
        kinds = self.kind(left), self.kind(right)
        if not all(pa.types.is_integer(k) or pa.types.is_floating(k) for k in kinds):
            raise _refused(self._called, f"it computes with {kinds[0]} and {kinds[1]}")
        operation = {"Add": pc.add_checked, "Sub": pc.subtract_checked, "Mul": pc.multiply_checked}
        return operation[type(node).__name__](left, right)

    def _text(self, node: Any) -> pc.Expression:
        found = self.read(node)
        if not (pa.types.is_string(self.kind(found)) or pa.types.is_large_string(self.kind(found))):
            raise _refused(self._called, f"it takes {self.kind(found)} for text")
        return found

    def _literal(self, node: Any) -> Any:
        if node.is_string:
            return node.this
        try:
            number = Decimal(node.this)
        except InvalidOperation:
            raise self._no(node) from None
        if number == number.to_integral_value() and "." not in node.this and -(2**63) <= number < 2**63:
            return int(number)
        return float(number) if "e" in node.this.lower() else pa.scalar(number)

    def _date(self, text: str) -> pa.Scalar:
        try:
            return pa.scalar(date.fromisoformat(text), pa.date32())
        except ValueError:
            raise _refused(self._called, f"{text!r} is not a date") from None

    def _moment(self, text: str, kind: pa.DataType) -> pa.Scalar:
        try:
            found = datetime.fromisoformat(text)
        except ValueError:
            raise _refused(self._called, f"{text!r} is not a moment") from None
        if (found.tzinfo is None) != (kind.tz is None):
            raise _refused(self._called, f"{text!r} depends on the time zone of who reads it")
        return pa.scalar(found, kind)

    def _no(self, node: Any) -> ConstraintError:
        return _refused(self._called, f"{node.sql(dialect='spark')!r:.80} is not understood")


def _is_text(node: Any) -> bool:
    from sqlglot import exp

    return isinstance(node, exp.Literal) and bool(node.is_string)


def _family(kind: pa.DataType) -> str:
    families: Sequence[tuple[str, Callable[[pa.DataType], bool]]] = (
        ("number", lambda k: pa.types.is_integer(k) or pa.types.is_floating(k) or pa.types.is_decimal(k)),
        ("text", lambda k: pa.types.is_string(k) or pa.types.is_large_string(k)),
        ("date", pa.types.is_date),
        ("boolean", pa.types.is_boolean),
    )
    return next((name for name, fits in families if fits(kind)), str(kind))
