"""Values that the server reads from text: json, inet, ranges, what extensions bring. It alone knows which ones fit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from lockgate.destinations.postgres_columns import Column
from lockgate.destinations.postgres_errors import told
from lockgate.destinations.postgres_session import ServerError, Session, version_of
from lockgate.destinations.postgres_staging import StagingTable
from lockgate.destinations.postgres_table import here
from lockgate.errors import SchemaMismatchError

_TELLS_INPUT = 160000  # the first server that says whether a text can be read as a type
# Types that take any text, and those whose values are looked at without the server.
_SEEN_TO = {"text", "varchar", "bpchar", "citext", "name", "uuid", "numeric"}


def parsed(columns: Sequence[Column]) -> list[Column]:
    """Those of which the server alone knows whether their values fit."""
    return [c for c in columns if _is_parsed(c)]


def refuse_unreadable(opened: Session, parts: Sequence[Path], columns: Sequence[Column]) -> None:
    """Have the server read the values, in a transaction that is rolled back: an export that another one stands behind
    is not to fail when that one is published."""
    if not here(opened)["temp"]:  # without the right the server refuses while publishing
        return
    with _rolled_back(opened):
        opened.rows("SELECT pg_catalog.set_config('TimeZone', 'UTC', true) AS v")
        table = StagingTable("lockgate_read")
        table.make(opened, columns, numbered=False)
        table.fill(opened, parts, columns, numbered=False)
        opened.run("SAVEPOINT reading")
        try:
            read = ", ".join(f"count({c.value('s')}) AS {c.staged_name}" for c in columns)
            opened.rows(f"SELECT {read} FROM {table.sql} AS s")
        except ServerError as error:
            if error.lost or not (error.sqlstate or "").startswith("2"):
                raise
            opened.run("ROLLBACK TO SAVEPOINT reading")
            found = unreadable(opened, table.sql, columns)
            raise SchemaMismatchError(
                f"{found}: {told(error)}" if found else told(error),
                in_place="nothing was written",
                hint="correct the value in the query, or change the column of the table",
            ) from error


def unreadable(opened: Session, staged: str, columns: Sequence[Column]) -> str | None:
    """Which value the server cannot read as its column's type; None: another one, or an older server."""
    if version_of(opened) < _TELLS_INPUT:
        return None
    for column in columns:
        cast = column.fit.cast
        if cast is None or column.fit.staged != "text":
            continue
        found = opened.rows(
            f"SELECT left(s.{column.staged_name}, 80) AS value FROM {staged} AS s "
            f"WHERE NOT pg_catalog.pg_input_is_valid(s.{column.staged_name}, $1::text) LIMIT 1",
            cast,
        )
        if found:
            return f'column "{column.name}", which is {cast}: {found[0]["value"]!r} does not fit'
    return None


def _is_parsed(column: Column) -> bool:
    target = column.target
    if target is None or not column.fit.cast or not column.fit.staged.startswith("text"):
        return False
    kind = target.element_kind if target.element else target.type_kind
    return kind != "e" and (target.element or target.type) not in _SEEN_TO


@contextmanager
def _rolled_back(opened: Session) -> Iterator[None]:
    opened.run("BEGIN")
    try:
        yield
    finally:
        with suppress(ServerError):  # the connection is lost, and what it did with it
            opened.run("ROLLBACK")
