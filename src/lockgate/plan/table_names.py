"""The tables a query reads, by name and place."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from sqlglot import exp

from lockgate.language.lexer import CannotLex, lex
from lockgate.language.sql_trees import parse_query


@dataclass(frozen=True)
class TableName:
    """A table in a query's text. `certain` is False when it may also be something else of that name."""

    name: str
    offset: int
    length: int
    certain: bool = True


def tables_in(query: str, known: Collection[str] = ()) -> list[TableName]:
    """The single-part tables of a query in the order of its text, each as often as it is read.

    Common table expressions and table functions are not tables; dotted names belong to Spark. If the query cannot be
    parsed, every word that equals one of the `known` names (folded) counts.

    >>> [t.name for t in tables_in("WITH a AS (SELECT * FROM b) SELECT * FROM a JOIN c")]
    ['b', 'c']
    """
    tree = parse_query(query)
    if tree.root is None:
        return _by_words(query, known)
    found: list[TableName] = []
    # An explicit stack: generated SQL may be nested deeper than Python's own.
    pending: list[tuple[exp.Expr, frozenset[str]]] = [(tree.root, frozenset())]
    while pending:
        node, hidden = pending.pop()
        if isinstance(node, exp.Hint):
            continue  # a hint names aliases, it reads nothing
        if isinstance(node, exp.Table):
            found += _table(node, hidden)
        elif isinstance(node, exp.Anonymous) and node.name.upper() == "TABLE":
            found += _table_argument(node, hidden)
        clause = node.args.get("with_")
        if isinstance(clause, exp.With):
            hidden = _enter(clause, hidden, pending)
        pending += [(child, hidden) for child in node.iter_expressions() if child is not clause]
    return sorted(found, key=lambda table: table.offset)


def _enter(clause: exp.With, hidden: frozenset[str], pending: list[tuple[exp.Expr, frozenset[str]]]) -> frozenset[str]:
    """Each common table expression sees those before it, and itself only if it is recursive."""
    for expression in clause.expressions:
        name = expression.alias.casefold()
        own = hidden | {name} if clause.args.get("recursive") else hidden
        pending.append((expression.this, own))
        hidden = hidden | {name}
    return hidden


def _table(node: exp.Table, hidden: frozenset[str]) -> list[TableName]:
    name = node.this
    if not isinstance(name, exp.Identifier) or node.args.get("db") or node.name.casefold() in hidden:
        return []
    return [_at(name)]


def _table_argument(node: exp.Anonymous, hidden: frozenset[str]) -> list[TableName]:
    """`TABLE(t)` as the argument of a table function."""
    columns = [child for child in node.expressions if isinstance(child, exp.Column) and not child.table]
    return [_at(c.this) for c in columns if isinstance(c.this, exp.Identifier) and c.name.casefold() not in hidden]


def _at(name: exp.Identifier) -> TableName:
    start, end = name.meta.get("start"), name.meta.get("end")
    if not isinstance(start, int) or not isinstance(end, int):  # sqlglot made the name up, for a pipe operator
        return TableName(name.name, 0, 1)
    return TableName(name.name, start, end - start + 1)


def _by_words(query: str, known: Collection[str]) -> list[TableName]:
    try:
        tokens = lex(query)
    except CannotLex:
        return []
    found = []
    for index, token in enumerate(tokens):
        name = token.text[1:-1].replace("``", "`") if token.kind == "name" else token.text
        if token.kind not in ("word", "name") or name.casefold() not in known:
            continue
        around = tokens[max(0, index - 1) : index] + tokens[index + 1 : index + 2]
        if not any(neighbour.symbol == "." for neighbour in around):
            found.append(TableName(name, token.start, token.end - token.start, certain=False))
    return found
