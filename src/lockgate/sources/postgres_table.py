"""Looking at a table or a query: its columns, and the pieces in which it can be read at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lockgate.identifiers import double_quoted
from lockgate.sources.postgres_problems import problem
from lockgate.sources.postgres_session import SnapshotSession
from lockgate.sources.postgres_types import ReadColumn, TypeRow, read_column

_TYPES = """
SELECT t.oid::bigint, t.typtype::text, t.typbasetype::bigint, t.typtypmod,
       CASE WHEN t.typcategory = 'A' AND t.typlen = -1 THEN t.typelem::bigint ELSE 0 END
FROM pg_catalog.pg_type t WHERE t.oid = ANY(%s::bigint[]::oid[])
"""


@dataclass(frozen=True)
class Relation:
    """What is read: the SQL behind FROM, and its columns."""

    sql: str
    columns: tuple[ReadColumn, ...]  # all of them
    wanted: tuple[ReadColumn, ...]
    is_table: bool

    def column(self, name: str) -> ReadColumn | None:
        return next((c for c in self.columns if c.name == name), None)


def look_at(session: SnapshotSession, source: str, params: Mapping[str, Any]) -> Relation:
    """The relation that the parameters of a source name; raises a SourceError that says what is wrong with it."""
    table = params.get("table")
    if table is not None:
        sql = table_sql(table)
        shown = f"the table {table}"
    else:
        sql = f"(\n{str(params['query']).rstrip().rstrip(';')}\n) AS {double_quoted(source)}"
        shown = "the query"
    rows = session.ask(source, f"{shown} cannot be read", f"SELECT * FROM {sql} LIMIT 0".encode())
    described = [
        (column.name, column.type_code, rows.pgresult.fmod(number)) for number, column in enumerate(rows.description)
    ]
    as_text = params.get("as_text", [])
    _require_distinct(source, shown, [name for name, _, _ in described])
    _require_known(source, shown, [*as_text, *params.get("columns", [])], [name for name, _, _ in described])
    types = _types(session, source, [oid for _, oid, _ in described])
    columns = tuple(read_column(name, oid, fmod, types, as_text=name in as_text) for name, oid, fmod in described)
    by_name = {column.name: column for column in columns}
    wanted = tuple(by_name[name] for name in params["columns"]) if "columns" in params else columns
    if not wanted:
        raise problem(source, f"{shown} has no columns")
    return Relation(sql, columns, wanted, table is not None)


def table_sql(table: str) -> str:
    """A table's name as SQL: the schema ends at the first dot, and names are taken exactly.

    >>> table_sql("public.Orders"), table_sql("orders")
    ('"public"."Orders"', '"orders"')
    """
    schema, dot, name = table.partition(".")
    return f"{double_quoted(schema)}.{double_quoted(name)}" if dot else double_quoted(table)


def _types(session: SnapshotSession, source: str, oids: Sequence[int]) -> dict[int, TypeRow]:
    """The types of columns, and those that they are made of."""
    found: dict[int, TypeRow] = {}
    wanted = set(oids)
    while wanted:
        rows = session.ask(source, "the types of the columns cannot be read", _TYPES, [sorted(wanted)])
        for oid, kind, base, modifier, element in rows.fetchall():
            found[oid] = TypeRow(kind, base, modifier, element)
        wanted = {oid for row in found.values() for oid in (row.base, row.element) if oid and oid not in found}
    return found


def _require_distinct(source: str, shown: str, names: Sequence[str]) -> None:
    folded = [name.casefold() for name in names]
    twice = [name for name in names if folded.count(name.casefold()) > 1]
    if twice:
        raise problem(
            source,
            f"{shown} has columns that Spark cannot tell apart: {', '.join(twice)}",
            hint='read a "query" that gives them other names',
        )


def _require_known(source: str, shown: str, asked: Sequence[str], names: Sequence[str]) -> None:
    for name in asked:
        if name not in names:
            raise problem(
                source,
                f"{shown} has no column {name}; its columns are {', '.join(names)}",
                hint="upper and lower case are told apart",
            )
