"""Text after its variables were replaced, with the way back from every character to the file.

A variable outside quotes becomes text at once. One inside quotes stays a mask until the statement is parsed and is
revealed afterwards, so that no value can end the quotes of a path, a name or a JSON string and change the statement.
SQL gets the value as text, quotes or not; a value that must stay a value is a `:parameter`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from lockgate.language.diagnostics import Place
from lockgate.language.source_text import SourceText
from lockgate.language.variables import Span


@dataclass(frozen=True)
class Piece:
    """A run of characters with one origin: the file itself (`length` 0), or a reference of that length in it."""

    text: str
    offset: int
    length: int = 0
    given_by: str | None = None
    hidden: tuple[Span, ...] | None = None  # the value behind a mask


class Expanded:
    """A text made of pieces."""

    def __init__(self, source: SourceText, pieces: Iterable[Piece]) -> None:
        self.source = source
        self.pieces = tuple(pieces)
        self.text = "".join(piece.text for piece in self.pieces)
        self._starts = [0, *accumulate(len(piece.text) for piece in self.pieces)][:-1]

    def origin(self, offset: int) -> tuple[int, int]:
        """The file offset that an offset of the text came from, and the length of its reference (0 if none)."""
        if not self.pieces:
            return 0, 0
        index = max(0, bisect_right(self._starts, max(0, offset)) - 1)
        piece = self.pieces[index]
        if not piece.length:
            return piece.offset + offset - self._starts[index], 0
        if offset >= self._starts[index] + len(piece.text):  # just past the end of the text
            return piece.offset + piece.length, 0
        return piece.offset, piece.length

    def place(self, offset: int, length: int = 1) -> Place:
        start, reference = self.origin(offset)
        return self.source.place(start, reference or length)

    def slice(self, start: int, end: int) -> Expanded:
        """The pieces between two offsets. Empty values at the edges are kept: they may matter for a path."""
        pieces = []
        for begin, piece in zip(self._starts, self.pieces, strict=True):
            low, high = max(start - begin, 0), min(end - begin, len(piece.text))
            if low < high and not piece.length:
                pieces.append(replace(piece, text=piece.text[low:high], offset=piece.offset + low))
            elif low < high or (not piece.text and start <= begin <= end):
                pieces.append(replace(piece, text=piece.text[low:high]))
        return Expanded(self.source, pieces)

    def stripped(self) -> Expanded:
        """Without white space around it."""
        lead = len(self.text) - len(self.text.lstrip())
        return self.slice(lead, len(self.text.rstrip()))

    def revealed(self) -> Expanded:
        """With every mask replaced by the value behind it."""
        pieces: list[Piece] = []
        for piece in self.pieces:
            if piece.hidden is None:
                pieces.append(piece)
            else:
                pieces += value_pieces(piece.hidden, piece.offset, piece.length)
        return Expanded(self.source, pieces)

    def spans(self) -> tuple[Span, ...]:
        """The revealed text by who gave it."""
        return tuple(Span(piece.text, piece.given_by) for piece in self.revealed().pieces)


def value_pieces(spans: Sequence[Span], offset: int, length: int) -> list[Piece]:
    """The pieces of a value that stands for a reference of that offset and length."""
    return [Piece(span.text, offset, length, span.given_by) for span in spans]
