"""SET name = value, and INCLUDE "path". They leave no step behind: the reader acts on them at once."""

from __future__ import annotations

import re
from typing import Any

from lockgate.language.cursor import Cursor
from lockgate.language.expansion import Expanded
from lockgate.language.mistakes import Mistake
from lockgate.language.quoting import Quoted
from lockgate.language.variables import Span, Value

_INTEGER = re.compile(r"-?(?:0|[1-9]\d{0,17})", re.ASCII)
_DECIMAL = re.compile(r"-?(?:0|[1-9]\d*)\.\d+(?:[eE][+-]?\d{1,3})?", re.ASCII)


def read_set(cursor: Cursor) -> tuple[str, Value]:
    """The name and the value, which is typed when it is a bare number or truth value."""
    name = cursor.name("the name of a variable")
    cursor.expect_symbol("=")
    first = cursor.current
    if first is None:
        raise cursor.unexpected("a value")
    if first.kind == "string" and first.text[0] in "'\"":
        quoted = cursor.string("a value")
        cursor.expect_end()
        return name, Value(quoted.text, quoted.spans)
    while cursor.current is not None:
        if cursor.begins_line(cursor.current):
            mistake = cursor.unexpected("the end of the statement")
            if mistake.resume is not None:
                raise mistake
        cursor.advance()
    return name, _bare(cursor.text.slice(first.start, cursor.end))


def _bare(text: Expanded) -> Value:
    spans = text.spans()
    return Value(typed("".join(span.text for span in spans)), spans or (Span(""),))


def typed(text: str) -> Any:
    """A bare value as a number or truth value if it reads like one, else as text.

    >>> [typed("7"), typed("true"), typed("007"), typed("2026-01-01")]
    [7, True, '007', '2026-01-01']
    """
    if _INTEGER.fullmatch(text):
        return int(text)
    if _DECIMAL.fullmatch(text):
        return float(text)
    return {"true": True, "false": False}.get(text.lower(), text)


def read_include(cursor: Cursor) -> Quoted:
    """The path of the file to include."""
    place = cursor.place()
    path = cursor.string("the path of a file")
    cursor.expect_end()
    if not path.text.strip():
        raise Mistake(place, "include", "the path of INCLUDE is empty")
    return path
