"""CREATE [OR REPLACE] TABLE table [MODE m [BY col] [LOOKBACK n unit]] [KEY (...)] [ORDER BY ...] AS query"""

from __future__ import annotations

from lockgate.language.cursor import Cursor
from lockgate.language.grammar.clauses import read_clauses
from lockgate.language.queries import read_query
from lockgate.language.statements import CreateTableStep
from lockgate.modes import TABLE_MODES


def read_create_table(cursor: Cursor) -> CreateTableStep:
    """Read what follows CREATE."""
    place = cursor.start_place
    or_replace = cursor.accept("OR", "REPLACE")
    cursor.expect("TABLE")
    table = cursor.name("the name of the table")
    clauses = read_clauses(cursor, ("MODE", "BY", "LOOKBACK", "KEY", "ORDER"), TABLE_MODES, until="AS")
    cursor.expect("AS")
    return CreateTableStep(
        place=place,
        table_name=table,
        query=read_query(cursor, cursor.end, len(cursor.text.text)),
        or_replace=or_replace,
        mode=clauses.mode or "REPLACE",
        mode_place=clauses.mode_place or place,
        upsert_keys=clauses.keys,
        order_by=clauses.order_by,
        incremental_by=clauses.incremental_by,
        lookback=clauses.lookback,
    )
