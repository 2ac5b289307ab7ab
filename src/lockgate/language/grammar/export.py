"""EXPORT query|table TO "destination" TYPE T [OPTIONS {...}] [MODE m] [KEY (...)] [ORDER BY ...] [AS name]"""

from __future__ import annotations

from lockgate.identifiers import quoted
from lockgate.language.cursor import Cursor
from lockgate.language.grammar.clauses import read_clauses
from lockgate.language.json_clause import JsonObject
from lockgate.language.mistakes import Mistake
from lockgate.language.paths import escape
from lockgate.language.queries import QUERY_WORDS, read_query
from lockgate.language.statements import ExportStep, Sql
from lockgate.modes import EXPORT_MODES

_CLAUSES = ("TYPE", "OPTIONS", "MODE", "KEY", "ORDER", "AS")
_DEPTH = {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}


def read_export(cursor: Cursor) -> ExportStep:
    """Read what follows EXPORT."""
    place = cursor.start_place
    begin, first = cursor.end, cursor.index
    target = _find_to(cursor)
    table_name, query = _what(cursor, begin, first, target)
    cursor.index = target + 1
    destination_place = cursor.place()
    destination = cursor.string("the destination")
    if not destination.text.strip():
        raise Mistake(destination_place, "syntax", "the destination is empty")
    clauses = read_clauses(cursor, _CLAUSES, EXPORT_MODES)
    if clauses.type_name is None:
        raise cursor.unexpected("TYPE", hint='as in TO "out/file.csv" TYPE CSV')
    options = clauses.options or JsonObject(place=place)
    return ExportStep(
        place=place,
        sql_query=query.text,
        query=query,
        table_name=table_name,
        destination_uri=destination.text,
        destination_place=destination_place,
        path_escape=escape(destination.spans),
        connector_type=clauses.type_name,
        type_place=clauses.type_place or place,
        options=options.values,
        options_place=options.place,
        option_places=options.key_places,
        mode=clauses.mode or "APPEND",
        mode_place=clauses.mode_place or place,
        upsert_keys=clauses.keys,
        order_by=clauses.order_by,
        name=clauses.name,
    )


def _find_to(cursor: Cursor) -> int:
    """The index of the TO that names the destination: SQL may hold words like it, but not followed by text and TYPE."""
    shallow: list[int] = []
    deep: list[int] = []  # a query with an unclosed parenthesis hides its TO; the query's own error is the better one
    depth = 0
    words: list[int] = []
    for index in range(cursor.index, len(cursor.tokens)):
        token = cursor.tokens[index]
        depth += _DEPTH.get(token.symbol, 0)
        if token.word != "TO":
            continue
        words.append(index)
        if index + 1 < len(cursor.tokens) and cursor.tokens[index + 1].kind == "string":
            (deep if depth else shallow).append(index)
    for candidates in (shallow, deep):
        typed = [i for i in candidates if i + 2 < len(cursor.tokens) and cursor.tokens[i + 2].word == "TYPE"]
        if typed or candidates:
            return (typed or candidates)[0]
    if words:
        cursor.index = words[-1] + 1
        raise cursor.unexpected("the destination in quotes after TO")
    _complain_of_next_statement(cursor)
    cursor.index = len(cursor.tokens)
    raise cursor.unexpected('TO "destination"')


def _complain_of_next_statement(cursor: Cursor) -> None:
    for index in range(cursor.index + 1, len(cursor.tokens)):
        cursor.index = index
        mistake = cursor.unexpected('TO "destination"')
        if mistake.resume is not None:
            raise mistake


def _what(cursor: Cursor, begin: int, first: int, target: int) -> tuple[str | None, Sql]:
    """The table's name if a name alone stands before TO, and the query in any case."""
    tokens = cursor.tokens[first:target]
    alone = len(tokens) == 1 and tokens[0].kind in ("word", "name") and tokens[0].word not in QUERY_WORDS
    if not tokens:
        raise cursor.unexpected("a query or a table")
    if not alone:
        return None, read_query(cursor, begin, cursor.tokens[target].start)
    cursor.index = first
    name = cursor.name("a query or a table")
    text = cursor.text.slice(tokens[0].start, tokens[0].end).revealed()
    return name, Sql(f"SELECT * FROM {quoted(name)}", lambda _offset: text.place(0, len(text.text)))
