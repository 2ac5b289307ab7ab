"""Where a string, a quoted name or a comment was opened and never closed.

sqlglot's tokenizer says that it failed but not where. A forgotten quote also shifts every later one, so that the
last quote of the file is the one left open; the statement that begins inside a string gives the real place away.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

STATEMENT_WORDS = ("SOURCE", "LOAD", "CREATE", "CHECK", "EXPORT", "SET", "INCLUDE", "IF")

_NEXT_STATEMENT = re.compile(
    r";[ \t]*(?:--[^\r\n]*)?[\r\n]\s*(?=(?:" + "|".join((*STATEMENT_WORDS, "ELSE", "END")) + r")\b)", re.IGNORECASE
)
_OPENER = re.compile(r"""--[^\r\n]*|/\*|\{\#|(?<!\w)[rR]['"]|['"`]""")
_COMMENT_MARK = re.compile(r"/\*|\*/")
_NAMES = {"'": "string", '"': "string", "`": "quoted name", "/": "comment", "{": "comment"}


@dataclass(frozen=True)
class Break:
    """What was left open, and where the next statement seems to begin (the end of the text if none does)."""

    start: int
    resume: int
    what: str


def find_break(text: str) -> Break | None:
    """The opener that was never closed, or None if all are.

    >>> find_break("SET a = 'x;\\nSET b = 1;")
    Break(start=8, resume=12, what='string')
    """
    passages = list(_quoted_passages(text))
    if not passages or passages[-1][1] is not None:
        return None
    for start, end in passages:
        if end is not None and _what(text, start) == "comment":
            continue  # statements that are commented out on purpose
        following = _NEXT_STATEMENT.search(text, start, len(text) if end is None else end)
        if following:
            return Break(start, following.end(), _what(text, start))
    start = passages[-1][0]
    return Break(start, len(text), _what(text, start))


def _what(text: str, start: int) -> str:
    return _NAMES.get(text[start], "string")


def _quoted_passages(text: str) -> Iterator[tuple[int, int | None]]:
    position = 0
    while opener := _OPENER.search(text, position):
        start, mark = opener.start(), opener[0]
        end: int | None
        if mark.startswith("--"):
            position = opener.end()
            continue
        if mark == "/*":
            end = _comment_end(text, opener.end())
        elif mark == "{#":
            found = text.find("#}", opener.end())
            end = found + 2 if found >= 0 else None
        else:
            end = _quote_end(text, opener.end(), mark[-1], escapes=len(mark) == 1 and mark != "`")
        yield start, end
        if end is None:
            return
        position = end


def _comment_end(text: str, position: int) -> int | None:
    depth = 1
    while mark := _COMMENT_MARK.search(text, position):
        depth += 1 if mark[0] == "/*" else -1
        position = mark.end()
        if not depth:
            return position
    return None


def _quote_end(text: str, position: int, quote: str, *, escapes: bool) -> int | None:
    pattern = re.compile(rf"\\.|{quote}" if escapes else quote, re.DOTALL)
    while mark := pattern.search(text, position):
        position = mark.end()
        if mark[0] == quote:
            return position
    return None
