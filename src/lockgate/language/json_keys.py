"""Where the keys and strings of a JSON text stand. `json` itself keeps no places and lets a key come twice."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from json.decoder import scanstring  # type: ignore[attr-defined]  # not in the stubs, but what json itself uses

MAX_NESTING = 100

_COLON = re.compile(r"\s*:")


class KeyMistake(Exception):
    """A key that comes twice, or nesting without end, and its offset."""

    def __init__(self, offset: int, length: int, message: str) -> None:
        super().__init__(message)
        self.offset = offset
        self.length = length
        self.message = message


@dataclass(frozen=True)
class JsonString:
    """A string value by its offsets, quotes included, and the key it stands under."""

    key: str
    start: int
    end: int


@dataclass
class JsonMap:
    """Offsets of the outermost keys, and every string value."""

    keys: dict[str, tuple[int, int]] = field(default_factory=dict)
    strings: list[JsonString] = field(default_factory=list)


@dataclass
class _Level:
    seen: set[str] | None  # None for an array
    key: str


def map_keys(text: str) -> JsonMap:
    """Map a text that `json` accepts.

    >>> map_keys('{"path": "a"}').keys
    {'path': (1, 7)}
    """
    found = JsonMap()
    levels: list[_Level] = []
    position = 0
    while position < len(text):
        char = text[position]
        if char == '"':
            content, end = scanstring(text, position + 1)
            _string(found, levels, text, position, end, content)
            position = end
            continue
        if char in "{[":
            if len(levels) >= MAX_NESTING:
                raise KeyMistake(position, 1, f"JSON is nested more than {MAX_NESTING} deep")
            levels.append(_Level(set() if char == "{" else None, levels[-1].key if levels else ""))
        elif char in "}]" and levels:
            levels.pop()
        position += 1
    return found


def _string(found: JsonMap, levels: list[_Level], text: str, start: int, end: int, content: str) -> None:
    level = levels[-1] if levels else _Level(None, "")
    if level.seen is None or not _COLON.match(text, end):
        found.strings.append(JsonString(level.key, start, end))
        return
    if content in level.seen:
        raise KeyMistake(start, end - start, f"the key {content!r} comes twice")
    level.seen.add(content)
    level.key = content
    if len(levels) == 1:
        found.keys[content] = (start, end)
