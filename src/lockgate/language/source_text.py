"""A file's text, and the way from an offset in it to a line and a column."""

from __future__ import annotations

import re
from bisect import bisect_right

from lockgate.language.diagnostics import Place

_LINE_END = re.compile(r"\r\n|\n|\r")


class SourceText:
    """One pipeline file. Offsets count characters; a byte order mark is not part of the text."""

    def __init__(self, file: str, text: str) -> None:
        self.file = file
        self.text = text.removeprefix("\ufeff")
        ends = list(_LINE_END.finditer(self.text))
        self._starts = [0, *(m.end() for m in ends)]
        self._ends = [*(m.start() for m in ends), len(self.text)]

    def place(self, offset: int, length: int = 1) -> Place:
        """The place of an offset.

        >>> str(SourceText("p.sql", "LOAD a\\nFROM b").place(7))
        'p.sql:2:1'
        """
        offset = min(max(offset, 0), len(self.text))
        line = bisect_right(self._starts, offset) - 1
        start, end = self._starts[line], self._ends[line]
        return Place(self.file, line + 1, offset - start + 1, self.text[start:end], max(1, length))
