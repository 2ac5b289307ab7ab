"""The JSON object behind PARAMS and OPTIONS.

A variable inside a JSON string is put in after parsing, so that quotes and backslashes in its value survive and cannot
end the string. One outside strings is text like any other and may bring a number, a list or a whole object.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any, NoReturn

from lockgate.language.cursor import Cursor
from lockgate.language.diagnostics import Place
from lockgate.language.expansion import Expanded
from lockgate.language.json_keys import JsonMap, JsonString, KeyMistake, map_keys
from lockgate.language.lexer import Token
from lockgate.language.mistakes import Mistake
from lockgate.language.paths import escape
from lockgate.language.variables import Span


@dataclass(frozen=True)
class JsonObject:
    """The object, the place of each of its keys, and what is wrong with the origin of a path in it."""

    values: dict[str, Any] = field(default_factory=dict)
    place: Place = field(default_factory=Place)
    key_places: dict[str, Place] = field(default_factory=dict)
    path_escape: str | None = None


def read_object(cursor: Cursor, clause: str) -> JsonObject:
    """Read `{...}` at the cursor."""
    first = cursor.current
    if first is None or not first.symbol.startswith("{"):
        message = f"{clause} must be followed by a JSON object"
        raise Mistake(cursor.place(), "json", message, f'write {clause} {{"name": "value"}}')
    place = cursor.place(first)
    tokens = _object_tokens(cursor)
    start = first.start
    part = cursor.text.slice(start, tokens[-1].end)
    clean = _without_comments(part.text, tokens, start)
    found = _map(part, clean, tokens, start)
    values = _Filler(part, clean).values()
    places = {key: part.place(begin, end - begin) for key, (begin, end) in found.keys.items()}
    return JsonObject(values, place, places, _path_escape(part, found))


def _object_tokens(cursor: Cursor) -> list[Token]:
    tokens: list[Token] = []
    depth = 0
    while cursor.current is not None:
        token = cursor.advance()
        tokens.append(token)
        depth += token.symbol.count("{") - token.symbol.count("}")
        if depth <= 0:
            break
    return tokens


def _without_comments(text: str, tokens: list[Token], start: int) -> str:
    """The text with blanks for comments, which the pipeline language allows everywhere and JSON does not."""
    parts: list[str] = []
    done = 0
    for token in tokens:
        parts += [re.sub(r"\S", " ", text[done : token.start - start]), token.text]
        done = token.end - start
    return "".join(parts)


def _map(part: Expanded, clean: str, tokens: list[Token], start: int) -> JsonMap:
    def refuse(constant: str) -> NoReturn:
        at = next((t for t in tokens if t.text.lstrip("-") == constant.lstrip("-")), tokens[0])
        place = part.place(at.start - start, len(at.text))
        raise Mistake(place, "json", f"{constant} is not JSON", "use null or a number")

    try:
        json.loads(clean, parse_constant=refuse)
        return map_keys(clean)
    except json.JSONDecodeError as error:
        raise Mistake(part.place(error.pos), "json", f"not valid JSON: {error.msg}") from None
    except KeyMistake as error:
        raise Mistake(part.place(error.offset, error.length), "json", error.message) from None
    except (RecursionError, ValueError) as error:  # ValueError: a number with thousands of digits
        message = "nested too deep" if isinstance(error, RecursionError) else str(error)
        raise Mistake(part.place(0), "json", f"not valid JSON: {message}") from None


class _Filler:
    """Parses again with a marker for each hidden variable, and puts the values in place of the markers."""

    def __init__(self, part: Expanded, clean: str) -> None:
        self._part = part
        self._hidden = [piece for piece in part.pieces if piece.hidden is not None]
        self._clean = clean
        seen = json.dumps(json.loads(clean), ensure_ascii=False)
        number = 0
        while f"\ue000{number}:" in seen:  # the author's own text must not look like a marker
            number += 1
        self._open = f"\ue000{number}:"
        self._marker = re.compile(re.escape(self._open) + r"(\d+)\ue001")

    def values(self) -> dict[str, Any]:
        text: list[str] = []
        position = index = 0
        for piece in self._part.pieces:
            if piece.hidden is None:
                text.append(self._clean[position : position + len(piece.text)])
            else:
                text.append(f"{self._open}{index}\ue001")
                index += 1
            position += len(piece.text)
        result = self._fill(json.loads("".join(text)))
        assert isinstance(result, dict)  # it starts with a brace
        return result

    def _fill(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._marker.sub(self._text_of, value)
        if isinstance(value, list):
            return [self._fill(item) for item in value]
        if not isinstance(value, dict):
            return value
        filled: dict[str, Any] = {}
        for key, item in value.items():
            name = self._fill(key)
            if name in filled:
                raise Mistake(self._part.place(0), "json", f"the key {name!r} comes twice")
            filled[name] = self._fill(item)
        return filled

    def _text_of(self, match: re.Match[str]) -> str:
        return "".join(span.text for span in self._hidden[int(match[1])].hidden or ())


def _path_escape(part: Expanded, found: JsonMap) -> str | None:
    for string in found.strings:
        if string.key.casefold() == "path" and (problem := escape(_spans(part, string))):
            return problem
    return None


def _spans(part: Expanded, string: JsonString) -> list[Span]:
    spans: list[Span] = []
    for piece in part.slice(string.start + 1, string.end - 1).pieces:
        if piece.hidden is not None:
            spans += piece.hidden
        else:
            spans.append(Span(_decoded(piece.text), piece.given_by))
    return spans


def _decoded(text: str) -> str:
    try:
        return str(json.loads(f'"{text}"'))
    except ValueError:  # a cut through an escape: the raw text is the safer thing to look at
        return text
