"""Quoted text of the pipeline language itself (not of SQL): what stands between the quotes."""

from __future__ import annotations

import re
from dataclasses import dataclass

from lockgate.language.expansion import Expanded
from lockgate.language.lexer import Token
from lockgate.language.variables import Span


@dataclass(frozen=True)
class Quoted:
    """The text, and who gave which part of it."""

    spans: tuple[Span, ...]

    @property
    def text(self) -> str:
        return "".join(span.text for span in self.spans)


def unquote(text: Expanded, token: Token) -> Quoted:
    """The content of a quoted token.

    A doubled quote or one behind a backslash is a quote, two backslashes are one, every other backslash stays: paths
    are full of them. The value of a variable is taken as it is.
    """
    quote = re.escape(token.text[0])
    escape = re.compile(rf"{quote}{quote}" if token.kind == "name" else rf"{quote}({quote})|\\([{quote}\\])")
    spans: list[Span] = []
    for piece in text.slice(token.start + 1, token.end - 1).pieces:
        if piece.hidden is not None:
            spans += piece.hidden
        else:
            spans.append(Span(escape.sub(lambda m: m[0][1], piece.text), piece.given_by))
    return Quoted(tuple(spans))
