"""`:name` in SQL: Spark's own named parameters, found but never replaced."""

from __future__ import annotations

from collections.abc import Sequence

from lockgate.language.lexer import Token


def find_parameters(tokens: Sequence[Token]) -> dict[str, Token]:
    """The parameters of a query, each with the colon token of its first use.

    >>> from lockgate.language.lexer import lex
    >>> list(find_parameters(lex("SELECT a:b, x::int, :day")))
    ['day']
    """
    found: dict[str, Token] = {}
    for index, token in enumerate(tokens[:-1]):
        following = tokens[index + 1]
        if token.symbol != ":" or following.kind != "word" or following.start != token.end:
            continue
        before = tokens[index - 1] if index else None
        # `a:b` reaches into a value, it binds nothing
        attached = before is not None and before.end == token.start
        if attached and before is not None and (before.kind != "symbol" or before.text in (")", "]", ":", "::")):
            continue
        found.setdefault(following.text, token)
    return found
