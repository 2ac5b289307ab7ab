"""`${name}` and `${name|default}` in raw text: finding them, and masking them so that a tokenizer can pass."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

_REFERENCE = re.compile(r"\$\{([^}\r\n]*)\}")
_NAME = re.compile(r"[^\W\d]\w*(?:[.-]\w+)*")


@dataclass(frozen=True)
class Reference:
    """One `${...}`, by its offsets in the text. `name` is empty when what it holds is no name."""

    start: int
    end: int
    name: str
    default: str | None = None

    @property
    def length(self) -> int:
        return self.end - self.start


def find_references(text: str) -> tuple[Reference, ...]:
    """Every reference of a text, in order.

    >>> find_references("FROM ${t|daily}")
    (Reference(start=5, end=15, name='t', default='daily'),)
    """
    found = []
    for match in _REFERENCE.finditer(text):
        name, bar, default = match[1].partition("|")
        valid = _NAME.fullmatch(name.strip()) and "${" not in default
        found.append(Reference(match.start(), match.end(), name.strip() if valid else "", default if bar else None))
    return tuple(found)


def mask(text: str, references: Iterable[Reference]) -> str:
    """The text with every reference replaced by a word of the same length, so that offsets stay true.

    >>> mask("a = '${x}'", find_references("a = '${x}'"))
    "a = '____'"
    """
    parts, done = [], 0
    for reference in references:
        parts += [text[done : reference.start], "_" * reference.length]
        done = reference.end
    return "".join([*parts, text[done:]])
