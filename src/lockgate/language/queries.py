"""The SQL inside a statement: a slice of the file that reaches Spark as it is, looked at but never rewritten."""

from __future__ import annotations

from collections.abc import Sequence

from lockgate.language.cursor import Cursor
from lockgate.language.diagnostics import Place
from lockgate.language.expansion import Expanded
from lockgate.language.lexer import CannotLex, Token, lex
from lockgate.language.mistakes import Mistake
from lockgate.language.parameters import find_parameters
from lockgate.language.sql_trees import parse_query
from lockgate.language.statements import Sql

QUERY_WORDS = ("SELECT", "WITH", "FROM", "VALUES", "TABLE", "MAP", "REDUCE")

_CLOSERS = {"(": ")", "[": "]"}


def read_query(cursor: Cursor, start: int, end: int) -> Sql:
    """The query between two offsets of a statement."""
    text = cursor.text.slice(start, end).stripped().revealed()
    tokens = lex_value_text(text)
    if not tokens:
        raise Mistake(cursor.text.place(end), "query", "there is no query here", "begin it with SELECT or WITH")
    first = tokens[0]
    if first.word not in QUERY_WORDS and first.symbol != "(":
        hint = "begin it with SELECT or WITH"
        raise Mistake(_place(text, first), "query", f"a query cannot begin with {_shown(text, first)}", hint)
    _check_brackets(text, tokens)
    _check_swallowed(text, tokens)
    return Sql(text.text, text.place, tuple(find_parameters(tokens)))


def lex_value_text(text: Expanded) -> list[Token]:
    """Tokens of a text whose variables are in place; the values may have broken it."""
    try:
        tokens = lex(text.text)
    except CannotLex as failure:
        message = f"with the values of its variables, this {failure.broken.what} is never closed"
        hint = "bind the value as :name, which cannot change the statement"
        raise Mistake(text.place(failure.broken.start), "unterminated", message, hint) from None
    for token in tokens:
        if token.symbol == ";":
            message = "a variable's value cannot end a statement"
            hint = "bind the value as :name, which cannot change the statement"
            raise Mistake(_place(text, token), "value-ends-statement", message, hint)
    return tokens


def _check_brackets(text: Expanded, tokens: Sequence[Token]) -> None:
    opened: list[Token] = []
    for token in tokens:
        if token.symbol in _CLOSERS:
            opened.append(token)
        elif token.symbol in _CLOSERS.values():
            if not opened:
                raise Mistake(_place(text, token), "unbalanced", f"{token.text} closes nothing")
            if _CLOSERS[opened[-1].text] != token.text:
                message = f"{token.text} found where {_CLOSERS[opened[-1].text]} was expected"
                raise Mistake(_place(text, token), "unbalanced", message)
            opened.pop()
    if opened:
        raise Mistake(_place(text, opened[-1]), "unbalanced", f"this {opened[-1].text} is never closed")


def _check_swallowed(text: Expanded, tokens: Sequence[Token]) -> None:
    """A forgotten `;` makes the next statement part of the query; say so if the query makes no sense with it."""
    cursor = Cursor(text, tokens)
    for index, token in enumerate(tokens):
        if cursor.begins_line(token) and _begins_statement(tokens[index : index + 4]):
            if parse_query(text.text).root is None:
                raise cursor.missing_semicolon(token)
            return


def _begins_statement(tokens: Sequence[Token]) -> bool:
    words = [token.word for token in tokens] + [""] * 4
    second, third = (tokens[i] if len(tokens) > i else None for i in (1, 2))
    string_second = second is not None and second.kind == "string"
    string_fourth = len(tokens) > 3 and tokens[3].kind == "string"
    match words[0]:
        case "SOURCE":
            return words[2] == "TYPE" or (words[2] == "FROM" and string_fourth)
        case "LOAD":
            return words[2] == "FROM"
        case "CREATE":
            return words[1] == "TABLE" or words[1:4] == ["OR", "REPLACE", "TABLE"]
        case "CHECK":
            return words[2] == "AS"
        case "INCLUDE":
            return string_second
        case "SET":
            return third is not None and third.symbol == "="
        case "EXPORT":
            return second is not None
    return False


def _place(text: Expanded, token: Token) -> Place:
    return text.place(token.start, token.end - token.start)


def _shown(text: Expanded, token: Token) -> str:
    return Cursor(text, [token]).shown(token)
