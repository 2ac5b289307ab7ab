"""LOAD table FROM source [MODE m] [KEY (...)] [ORDER BY ...]"""

from __future__ import annotations

from lockgate.language.cursor import Cursor
from lockgate.language.grammar.clauses import read_clauses
from lockgate.language.statements import LoadStep
from lockgate.modes import EXPORT_MODES


def read_load(cursor: Cursor) -> LoadStep:
    """Read what follows LOAD."""
    place = cursor.start_place
    table = cursor.name("the name of the table")
    cursor.expect("FROM")
    source_place = cursor.place()
    source = cursor.name("the name of a source")
    clauses = read_clauses(cursor, ("MODE", "KEY", "ORDER"), EXPORT_MODES)
    return LoadStep(
        place=place,
        table_name=table,
        source_name=source,
        source_place=source_place,
        mode=clauses.mode or "REPLACE",
        mode_place=clauses.mode_place or place,
        upsert_keys=clauses.keys,
        order_by=clauses.order_by,
    )
