"""Places in a pipeline's text, and what is said about them."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Place:
    """A spot in a file: 1-based line and column, and the line itself for the caret."""

    file: str = "<pipeline>"
    line: int = 1
    column: int = 1
    source_line: str = ""
    length: int = 1

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"

    def caret(self) -> str:
        """The source line with a caret below it; a tab stays a tab so that the caret lines up."""
        lead = "".join("\t" if c == "\t" else " " for c in self.source_line[: self.column - 1])
        room = max(1, len(self.source_line) - self.column + 1)
        return f"  {self.source_line}\n  {lead}{'^' * max(1, min(self.length, room))}"


@dataclass(frozen=True)
class Diagnostic:
    """One problem: where, a short code for machines, what is wrong, and what would be right."""

    place: Place
    code: str
    message: str
    hint: str | None = None

    def render(self) -> str:
        text = f"{self.place}: error[{self.code}]: {self.message}"
        if self.place.source_line:
            text += f"\n{self.place.caret()}"
        if self.hint:
            text += f"\n  hint: {self.hint}"
        return text

    def to_json(self) -> dict[str, object]:
        return {
            "file": self.place.file,
            "line": self.place.line,
            "column": self.place.column,
            "code": self.code,
            "message": self.message,
            "hint": self.hint,
        }


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word that `word` was probably meant to be, or None.

    >>> nearest("EXPROT", ["EXPORT", "LOAD"])
    'EXPORT'
    """
    folded = {k.casefold(): k for k in known}
    close = difflib.get_close_matches(word.casefold(), folded, n=1, cutoff=0.6)
    return folded[close[0]] if close else None


def did_you_mean(word: str, known: Iterable[str]) -> str | None:
    """`nearest` as a sentence, ready to be a hint."""
    match = nearest(word, known)
    return f"did you mean {match}?" if match else None
