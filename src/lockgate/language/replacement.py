"""Replacing the variables of one stretch of a file by their values."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from lockgate.language.diagnostics import Diagnostic, did_you_mean
from lockgate.language.expansion import Expanded, Piece, value_pieces
from lockgate.language.lexer import Token
from lockgate.language.references import Reference
from lockgate.language.source_text import SourceText
from lockgate.language.variables import Scope, Value

Position = Literal["bare", "quoted", "comment"]


@dataclass(frozen=True)
class ReferenceMap:
    """The references of a file, where each stands, and on which line each name is SET (for hints)."""

    source: SourceText
    references: tuple[Reference, ...]
    positions: tuple[Position, ...]
    set_lines: Mapping[str, Sequence[int]] = field(default_factory=dict)

    @staticmethod
    def of(source: SourceText, references: Sequence[Reference], tokens: Sequence[Token]) -> ReferenceMap:
        """Tell quoted references from bare ones, and those in comments (which no token covers) from both."""
        starts = [token.start for token in tokens]
        positions: list[Position] = []
        for reference in references:
            index = bisect_right(starts, reference.start) - 1
            token = tokens[index] if index >= 0 else None
            if token is None or token.end <= reference.start:
                positions.append("comment")
            else:
                positions.append("quoted" if token.kind in ("string", "name") else "bare")
        return ReferenceMap(source, tuple(references), tuple(positions), _set_lines(source, tokens))

    def within(self, start: int, end: int) -> list[tuple[Reference, Position]]:
        first = bisect_left(self.references, start, key=lambda r: r.start)
        found = []
        for index in range(first, len(self.references)):
            if self.references[index].start >= end:
                break
            found.append((self.references[index], self.positions[index]))
        return found


def expand(
    file: ReferenceMap, start: int, end: int, scope: Scope, *, hide_all: bool = False
) -> tuple[Expanded, list[Diagnostic]]:
    """The text between two offsets with its variables replaced, and an error for each that has no value.

    With `hide_all` bare references stay masks too, as the conditions of IF want it.
    """
    pieces: list[Piece] = []
    problems: list[Diagnostic] = []
    done = start
    for reference, position in file.within(start, end):
        if position == "comment":
            continue
        pieces.append(Piece(file.source.text[done : reference.start], done))
        done = reference.end
        value = _value(reference, scope)
        if value is None:
            problems.append(_undefined(file, reference, scope))
        elif hide_all or position == "quoted":
            pieces.append(Piece("_" * reference.length, reference.start, reference.length, hidden=value.spans))
        else:
            pieces += value_pieces(value.spans, reference.start, reference.length)
    pieces.append(Piece(file.source.text[done:end], done))
    return Expanded(file.source, pieces), problems


def _value(reference: Reference, scope: Scope) -> Value | None:
    if not reference.name:
        return None
    value = scope.lookup(reference.name)
    if value is None and reference.default is not None:
        return Value.written(reference.default, reference.default)
    return value


def _undefined(file: ReferenceMap, reference: Reference, scope: Scope) -> Diagnostic:
    place = file.source.place(reference.start, reference.length)
    if not reference.name:
        shown = file.source.text[reference.start : reference.end]
        hint = "write ${name} or ${name|default}; a name is letters, digits and _"
        return Diagnostic(place, "variable-syntax", f"{shown} does not name a variable", hint)
    later = [line for line in file.set_lines.get(reference.name, ()) if line >= place.line]
    if later:
        hint = f"it is SET on line {later[0]}, but SET holds only from where it stands"
    else:
        near = did_you_mean(reference.name, _with_sets(scope, file.set_lines))
        hint = near or f"give it with --var {reference.name}=..., or a default: ${{{reference.name}|...}}"
    return Diagnostic(place, "undefined-variable", f"variable {reference.name} has no value", hint)


def _with_sets(scope: Scope, set_lines: Mapping[str, Sequence[int]]) -> Collection[str]:
    return scope.names() | set(set_lines)


def _set_lines(source: SourceText, tokens: Sequence[Token]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for word, name, sign in zip(tokens, tokens[1:], tokens[2:], strict=False):
        if word.word == "SET" and name.kind == "word" and sign.symbol == "=":
            found.setdefault(name.text, []).append(source.place(word.start).line)
    return found
