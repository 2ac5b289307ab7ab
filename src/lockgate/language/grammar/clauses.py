"""The clauses that LOAD, CREATE TABLE and EXPORT share: MODE, KEY, ORDER BY, and what belongs to INCREMENTAL."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from lockgate.language.cursor import Cursor
from lockgate.language.diagnostics import Place, did_you_mean
from lockgate.language.json_clause import JsonObject, read_object
from lockgate.language.mistakes import Mistake
from lockgate.language.statements import Lookback

_UNITS = ("MINUTE", "HOUR", "DAY", "WEEK", "MONTH")
_SPELLED = {"ORDER": "ORDER BY", "PARAMS": "OPTIONS"}


@dataclass
class Clauses:
    """What was said, clause by clause; None or empty where nothing was."""

    mode: str | None = None
    mode_place: Place | None = None
    keys: list[str] = field(default_factory=list)
    order_by: list[str] = field(default_factory=list)
    incremental_by: str | None = None
    lookback: Lookback | None = None
    type_name: str | None = None
    type_place: Place | None = None
    options: JsonObject | None = None
    name: str = ""


def read_clauses(cursor: Cursor, words: Sequence[str], modes: Sequence[str], *, until: str = "") -> Clauses:
    """Read clauses in any order, none twice, up to the word `until` or the end of the statement."""
    clauses = Clauses()
    seen: set[str] = set()
    while cursor.current is not None and (not until or cursor.word != until):
        word = "OPTIONS" if cursor.word == "PARAMS" else cursor.word
        if word not in words:
            known = [_SPELLED.get(w, w) for w in words]
            last = until or "the end of the statement"
            raise cursor.unexpected(f"{', '.join(known)} or {last}", known=words)
        if word in seen:
            raise Mistake(cursor.place(), "syntax", f"{_SPELLED.get(word, word)} is given twice")
        seen.add(word)
        _read_clause(cursor, word, clauses, words, modes, until)
    return clauses


def _read_clause(
    cursor: Cursor, word: str, clauses: Clauses, words: Sequence[str], modes: Sequence[str], until: str
) -> None:
    place = cursor.place()
    token = cursor.advance()
    match word:
        case "MODE":
            clauses.mode_place = cursor.place()
            clauses.mode = _mode(cursor, modes)
        case "KEY":
            clauses.keys = _names(cursor)
        case "ORDER":
            cursor.expect("BY")
            clauses.order_by = _order_by(cursor, {*words, until} - {""})
        case "BY":
            if clauses.mode != "INCREMENTAL":
                raise Mistake(place, "mode", "BY belongs to MODE INCREMENTAL", "write MODE INCREMENTAL BY column")
            clauses.incremental_by = cursor.name("a column")
        case "LOOKBACK":
            clauses.lookback = _lookback(cursor)
        case "TYPE":
            clauses.type_place = cursor.place()
            clauses.type_name = cursor.name("a type").upper()
        case "OPTIONS":
            clauses.options = read_object(cursor, token.text.upper())
        case "AS":
            quoted = cursor.current is not None and cursor.current.kind == "string"
            clauses.name = cursor.string("a name").text if quoted else cursor.name("a name")


def _mode(cursor: Cursor, modes: Sequence[str]) -> str:
    token = cursor.current
    place = cursor.place()
    if token is None or token.kind != "word":
        raise cursor.unexpected(f"a mode ({', '.join(modes)})")
    mode = cursor.advance().word
    if mode not in modes:
        message = f"there is no mode {mode} here; there are {', '.join(modes)}"
        raise Mistake(place, "mode", message, did_you_mean(mode, modes))
    return mode


def _names(cursor: Cursor) -> list[str]:
    cursor.expect_symbol("(")
    names = [cursor.name("a column")]
    while cursor.current is not None and cursor.current.symbol == ",":
        cursor.advance()
        names.append(cursor.name("a column"))
    cursor.expect_symbol(")")
    return names


def _order_by(cursor: Cursor, ends: set[str]) -> list[str]:
    """Expressions as SQL spells them. A clause word ends the list, except where an expression has to begin."""
    items: list[str] = []
    while True:
        first = cursor.current
        if first is None or first.symbol in (",", ")"):
            raise cursor.unexpected("a column to order by")
        cursor.advance()
        depth = 1 if first.symbol == "(" else 0
        while cursor.current is not None:
            token = cursor.current
            if not depth and (token.symbol == "," or token.word in ends):
                break
            if not depth and cursor.begins_line(token):
                probe = cursor.unexpected("")
                if probe.resume is not None:  # the next statement begins here
                    raise probe
            depth += (token.symbol == "(") - (token.symbol == ")")
            if depth < 0:
                raise Mistake(cursor.place(), "unbalanced", ") closes nothing")
            cursor.advance()
        if depth:
            raise Mistake(cursor.place(first), "unbalanced", "a ( of this expression is never closed")
        items.append(cursor.text.slice(first.start, cursor.end).revealed().text)
        if cursor.current is None or cursor.current.symbol != ",":
            return items
        cursor.advance()


def _lookback(cursor: Cursor) -> Lookback:
    number = cursor.current
    if number is None or number.kind != "number" or not number.text.isascii() or not number.text.isdigit():
        raise cursor.unexpected("a whole number, as in LOOKBACK 2 DAYS")
    if len(number.text) > 6:
        raise Mistake(cursor.place(), "syntax", "LOOKBACK reaches too far back")
    cursor.advance()
    place, word = cursor.place(), cursor.word
    unit = word.removesuffix("S")
    if unit not in _UNITS:
        units = ", ".join(f"{u}S" for u in _UNITS)
        found = f"found {word}" if word else "found none"
        hint = did_you_mean(unit, _UNITS) if unit else None
        raise Mistake(place, "syntax", f"expected a unit ({units}), {found}", hint)
    cursor.advance()
    return Lookback(amount=int(number.text), unit=unit)
