"""Dividing a relation so that several tasks read it at once: by ranges of a column, else by places in the table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal, InvalidOperation
from itertools import pairwise
from typing import Any

from lockgate.sources.conditions import Condition, Value, rendered
from lockgate.sources.postgres_problems import problem
from lockgate.sources.postgres_session import SnapshotSession
from lockgate.sources.postgres_table import Relation
from lockgate.sources.postgres_types import ReadColumn

_BY_COLUMN = 8  # partitions, where their number is not given
_BLOCKS = 4096  # of a table, in a partition: 32 MB
_MOST = 32  # partitions that nobody asked for
_TID_RANGES = 140000  # the version of the server that reads a range of places without reading all

# Where every row of a table is in: its own blocks, and those of its partitions. A foreign table has none.
_PLACES = """
SELECT bool_and(k.relkind IN ('r', 'm', 'p')),
       coalesce(max(pg_catalog.pg_relation_size(k.oid)), 0) / current_setting('block_size')::int
FROM pg_catalog.pg_class c
LEFT JOIN LATERAL (
  SELECT c.oid UNION SELECT t.relid FROM pg_catalog.pg_partition_tree(c.oid) t WHERE t.isleaf
  UNION SELECT i.inhrelid FROM pg_catalog.pg_inherits i WHERE i.inhparent = c.oid
) parts ON true
JOIN pg_catalog.pg_class k ON k.oid = parts.oid
WHERE c.oid = pg_catalog.to_regclass(%s)
"""

_PARSERS: Mapping[str, Callable[[str], Any]] = {
    "smallint": int,
    "integer": int,
    "bigint": int,
    "numeric": Decimal,
    "date": date.fromisoformat,
    "timestamp without time zone": datetime.fromisoformat,
    "timestamp with time zone": datetime.fromisoformat,
}


def partitions(
    session: SnapshotSession,
    source: str,
    relation: Relation,
    params: Mapping[str, Any],
    conditions: Sequence[Condition],
) -> tuple[Condition | None, ...]:
    """Conditions of which every row meets exactly one. None is the whole."""
    count = params.get("partitions")
    name = params.get("partition_column")
    if name is not None:
        return _by_column(session, source, relation, name, count or _BY_COLUMN, conditions)
    if relation.is_table and count != 1 and session.server_version >= _TID_RANGES:
        return _by_place(session, source, relation, count)
    return (None,)


def _by_column(
    session: SnapshotSession,
    source: str,
    relation: Relation,
    name: str,
    count: int,
    conditions: Sequence[Condition],
) -> tuple[Condition | None, ...]:
    column = relation.column(name)
    if column is None:
        known = ", ".join(c.name for c in relation.columns)
        raise problem(source, f"there is no column {name} to divide the rows by; the columns are {known}")
    if column.compares not in _PARSERS:
        raise problem(
            source,
            f"the rows cannot be divided by the column {name}",
            hint="partition_column must be a whole number, a numeric, a date or a timestamp",
        )
    bounds = _bounds(session, source, relation, column, conditions)
    if bounds is None:
        return (None,)
    return ranges(column, split(*bounds, count))


def _bounds(
    session: SnapshotSession, source: str, relation: Relation, column: ReadColumn, conditions: Sequence[Condition]
) -> tuple[Any, Any] | None:
    where, values = rendered(conditions)
    for name, text in values:
        session.ask(source, "the rows cannot be divided", "SELECT set_config(%s, %s, true)", [name, text])
    asked = f"SELECT min({column.quoted})::text, max({column.quoted})::text FROM {relation.sql} WHERE {where}"
    session.ask(source, "the rows cannot be divided", "SELECT set_config('datestyle', 'ISO, YMD', true)")
    least, most = session.ask(source, f"the bounds of {column.name} cannot be read", asked.encode()).fetchone()
    parse = _PARSERS[str(column.compares)]
    try:
        return None if least is None else (parse(least), parse(most))
    except (ValueError, InvalidOperation):  # infinity, NaN, a year before Christ: the reading says so where it matters
        return None


def split(least: Any, most: Any, count: int) -> list[Any]:
    """The values at which each part but the first begins, in growing order.

    >>> split(0, 100, 4), split(7, 7, 4), split(date(2026, 1, 1), date(2026, 1, 3), 2)
    ([25, 50, 75], [], [datetime.date(2026, 1, 2)])
    """
    width = most - least
    found: list[Any] = []
    for number in range(1, count):
        if isinstance(width, timedelta | Decimal):
            value = least + width * number / count
        else:
            value = least + width * number // count
        if value > (found[-1] if found else least):
            found.append(value)
    return found


def ranges(column: ReadColumn, starts: Sequence[Any]) -> tuple[Condition | None, ...]:
    """One condition a range; the first has the NULLs as well."""
    if not starts:
        return (None,)
    kind = str(column.compares)
    values = [Value(start.isoformat() if isinstance(start, date) else str(start), kind) for start in starts]
    name = column.quoted
    first = Condition.of(f"{name} < ", values[0], f" OR {name} IS NULL")
    between = [Condition.of(f"{name} >= ", low, f" AND {name} < ", high) for low, high in pairwise(values)]
    return (first, *between, Condition.of(f"{name} >= ", values[-1]))


def _by_place(
    session: SnapshotSession, source: str, relation: Relation, count: int | None
) -> tuple[Condition | None, ...]:
    stored, blocks = session.ask(source, "the size of the table cannot be read", _PLACES, [relation.sql]).fetchone()
    if not stored:
        return (None,)
    parts = min(count or min(-(-blocks // _BLOCKS), _MOST), max(blocks, 1))
    starts = split(0, blocks, parts)
    if not starts:
        return (None,)
    places = [Value(f"({start},0)", "tid") for start in starts]
    between = [Condition.of("ctid >= ", low, " AND ctid < ", high) for low, high in pairwise(places)]
    # The last one has no end: nothing beyond the blocks counted is in the snapshot, but that costs nothing to say so.
    return (Condition.of("ctid < ", places[0]), *between, Condition.of("ctid >= ", places[-1]))
