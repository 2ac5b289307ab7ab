"""The condition of an IF. A variable is one operand whatever its value holds, so no value can alter the logic."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from lockgate.language.cursor import Cursor
from lockgate.language.lexer import Token
from lockgate.language.mistakes import Mistake
from lockgate.language.quoting import unquote

_NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,6})?", re.ASCII)
_TRUTH = {"true": True, "1": True, "false": False, "0": False}
_MAX_NESTING = 50

_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "==": operator.eq,
    "!=": operator.ne,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def holds(cursor: Cursor) -> bool:
    """Whether the condition under the cursor is true."""
    result = _any(cursor, 0)
    cursor.expect_end("AND, OR, a comparison or THEN")
    return result


def _any(cursor: Cursor, depth: int) -> bool:
    result = _all(cursor, depth)
    while cursor.accept("OR"):
        right = _all(cursor, depth)  # read also when the left side decides
        result = result or right
    return result


def _all(cursor: Cursor, depth: int) -> bool:
    result = _one(cursor, depth)
    while cursor.accept("AND"):
        right = _one(cursor, depth)
        result = result and right
    return result


def _one(cursor: Cursor, depth: int) -> bool:
    if depth > _MAX_NESTING:
        raise Mistake(cursor.place(), "if", f"a condition is nested more than {_MAX_NESTING} deep")
    if cursor.accept("NOT"):
        return not _one(cursor, depth + 1)
    if cursor.current is not None and cursor.current.symbol == "(":
        cursor.advance()
        result = _any(cursor, depth + 1)
        cursor.expect_symbol(")")
        return result
    return _comparison(cursor)


def _comparison(cursor: Cursor) -> bool:
    first = cursor.current
    left = _operand(cursor)
    token = cursor.current
    compare = _COMPARISONS.get(token.symbol) if token else None
    if compare is None:
        return _truth(cursor, first, left)
    cursor.advance()
    return compare(*_alike(left, _operand(cursor)))


def _operand(cursor: Cursor) -> str:
    token = cursor.current
    if token is None:
        raise cursor.unexpected("a value")
    sign = ""
    following = cursor.peek()
    if token.symbol in ("-", "+") and following is not None and following.kind == "number":
        sign, token = cursor.advance().text, following
    if token.kind == "symbol" or token.word in ("AND", "OR", "NOT"):
        raise cursor.unexpected("a value")
    cursor.advance()
    if token.kind in ("string", "name") and token.text[0] in "'\"`":
        return unquote(cursor.text, token).text
    return sign + cursor.text.slice(token.start, token.end).revealed().text


def _alike(left: str, right: str) -> tuple[object, object]:
    """Both sides as numbers or truth values if both are, else both as text."""
    if _NUMBER.fullmatch(left) and _NUMBER.fullmatch(right):
        return Decimal(left), Decimal(right)
    if {left.lower(), right.lower()} <= {"true", "false"}:
        return left.lower(), right.lower()
    return left, right


def _truth(cursor: Cursor, token: Token | None, text: str) -> bool:
    truth = _TRUTH.get(text.lower())
    if truth is None:
        following = cursor.current
        if following is not None and following.word not in ("AND", "OR") and following.symbol != ")":
            hint = "a text of several words stands in quotes"
            raise cursor.unexpected("a comparison (==, !=, <, <=, >, >=)", hint=hint)
        hint = "compare it with a value: == 'text'"
        shown = cursor.shown(token) if token else ""
        raise Mistake(cursor.place(token), "if", f"{shown} is neither true nor false", hint)
    return truth
