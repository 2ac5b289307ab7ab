"""Tokens of Spark SQL with exact offsets, from sqlglot's tokenizer.

Only offsets and a coarse kind are kept: the text of a token is always the slice of the input, because sqlglot's own
token text is unescaped, and the grammar's keywords are plain words to it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import ClassVar, Literal

from sqlglot.dialects.spark import Spark
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import TokenType

from lockgate.language.unterminated import Break, find_break

Kind = Literal["word", "name", "string", "number", "symbol"]

_PREFIXED_STRINGS = {TokenType.RAW_STRING, TokenType.NATIONAL_STRING, TokenType.HEX_STRING}
_WORDS = re.compile(r"\S+")


class _Tokenizer(Spark.Tokenizer):
    # EXPLAIN, SHOW and their like would swallow everything up to the next `;`, quotes or not.
    COMMANDS: ClassVar[set[TokenType]] = set()


@dataclass(frozen=True)
class Token:
    """`end` is exclusive. A `name` is quoted with backticks; a word is anything else that reads like one."""

    kind: Kind
    start: int
    end: int
    text: str

    @property
    def word(self) -> str:
        """The word in upper case, or nothing if it is not a word: keywords come in any case."""
        return self.text.upper() if self.kind == "word" else ""

    @property
    def symbol(self) -> str:
        return self.text if self.kind == "symbol" else ""


class CannotLex(Exception):
    """The text holds something that was opened and never closed."""

    def __init__(self, broken: Break) -> None:
        super().__init__(f"this {broken.what} is never closed")
        self.broken = broken


def lex(text: str) -> list[Token]:
    """The tokens of a text; comments are the gaps between them.

    >>> [t.text for t in lex("a <> 'it''s' -- ;")]
    ['a', '<>', "'it''s'"]
    """
    try:
        found = _Tokenizer(dialect=Spark).tokenize(text)
    except SqlglotError:
        raise CannotLex(find_break(text) or Break(0, len(text), "text")) from None
    tokens: list[Token] = []
    last_start = -1
    for item in found:
        if item.start == last_start:  # `1L` is three tokens of one place to sqlglot
            continue
        last_start = item.start
        for token in _split(item.token_type, item.start, text[item.start : item.end + 1]):
            if token.kind == "string" and tokens and _continues(tokens[-1], token):
                before = tokens.pop()
                token = Token("string", before.start, token.end, before.text + token.text)
            tokens.append(token)
    return tokens


def lex_file(text: str) -> tuple[list[Token], list[Break]]:
    """The tokens of a whole file, going on behind whatever was left open.

    Each break also stands among the tokens as a `;`, which ends the statement that it ruined.
    """
    tokens: list[Token] = []
    breaks: list[Break] = []
    base = 0
    while True:
        try:
            return tokens + _shifted(lex(text[base:]), base), breaks
        except CannotLex as failure:
            start, resume = base + failure.broken.start, base + failure.broken.resume
            breaks.append(Break(start, resume, failure.broken.what))
            with suppress(CannotLex):  # if nothing of this stretch can be read: the break itself is reported
                tokens += _shifted(lex(text[base:start]), base)
            tokens.append(Token("symbol", start, resume, ";"))
            if resume >= len(text):
                return tokens, breaks
            base = resume


def _shifted(tokens: list[Token], base: int) -> list[Token]:
    return [Token(t.kind, t.start + base, t.end + base, t.text) for t in tokens] if base else tokens


def _continues(before: Token, token: Token) -> bool:
    """Whether two strings are one with a doubled quote in it."""
    return before.kind == "string" and before.end == token.start and before.text[-1] == token.text[0]


def _split(kind: TokenType, start: int, text: str) -> Iterator[Token]:
    if not text:
        return
    first = text[0]
    if first in "'\"":
        yield Token("string", start, start + len(text), text)
    elif first == "`":
        yield Token("name", start, start + len(text), text)
    elif kind in _PREFIXED_STRINGS and text[-1] in "'\"":
        yield Token("string", start, start + len(text), text)
    elif kind in (TokenType.NUMBER, TokenType.HEX_STRING):
        yield Token("number", start, start + len(text), text)
    elif first.isalnum() or first == "_" or ord(first) > 127:
        for word in _WORDS.finditer(text):  # `ORDER BY` is one token to sqlglot
            yield Token("word", start + word.start(), start + word.end(), word[0])
    else:
        yield Token("symbol", start, start + len(text), text)
