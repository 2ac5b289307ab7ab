"""A table as the server describes it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lockgate.destinations.postgres_session import Session
from lockgate.identifiers import double_quoted

_FIND = """
SELECT c.oid::int8 AS oid, n.nspname::text AS schema, c.relname::text AS name, c.relkind::text AS kind,
       EXISTS (SELECT FROM pg_catalog.pg_trigger g WHERE g.tgrelid = c.oid AND NOT g.tgisinternal
               AND (g.tgtype & 7) = 7) AS fills_rows,
       pg_catalog.has_table_privilege(c.oid, 'SELECT') AS can_select,
       pg_catalog.has_table_privilege(c.oid, 'INSERT') AS can_insert,
       pg_catalog.has_table_privilege(c.oid, 'UPDATE') AS can_update,
       pg_catalog.has_table_privilege(c.oid, 'DELETE') AS can_delete,
       pg_catalog.has_table_privilege(c.oid, 'TRUNCATE') AS can_truncate
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.oid = pg_catalog.to_regclass($1::text)
"""
# A domain is written through the type below it; the server looks after its constraints.
_COLUMNS = """
WITH RECURSIVE base AS (
  SELECT a.attnum, a.atttypid AS type, a.atttypmod AS typmod
  FROM pg_catalog.pg_attribute a WHERE a.attrelid = $1::int8::oid AND a.attnum > 0 AND NOT a.attisdropped
  UNION ALL
  SELECT b.attnum, t.typbasetype, t.typtypmod
  FROM base b JOIN pg_catalog.pg_type t ON t.oid = b.type WHERE t.typtype = 'd'
)
SELECT a.attname::text AS name, t.typname::text AS type, tn.nspname::text AS type_schema, t.typtype::text AS type_kind,
       pg_catalog.format_type(a.atttypid, a.atttypmod) AS declared, b.typmod::int8 AS typmod,
       coalesce(e.typname::text, '') AS element, coalesce(en.nspname::text, '') AS element_schema,
       coalesce(e.typtype::text, '') AS element_kind,
       a.attnotnull AS required, a.attidentity::text AS identity, a.attgenerated <> '' AS generated,
       a.atthasdef OR a.attidentity <> '' AS filled, coalesce(l.collisdeterministic, true) AS exact_text
FROM base b
JOIN pg_catalog.pg_attribute a ON a.attrelid = $1::int8::oid AND a.attnum = b.attnum
JOIN pg_catalog.pg_type t ON t.oid = b.type AND t.typtype <> 'd'
JOIN pg_catalog.pg_namespace tn ON tn.oid = t.typnamespace
LEFT JOIN pg_catalog.pg_type e ON e.oid = t.typelem AND t.typcategory = 'A'
LEFT JOIN pg_catalog.pg_namespace en ON en.oid = e.typnamespace
LEFT JOIN pg_catalog.pg_collation l ON l.oid = a.attcollation
ORDER BY a.attnum
"""
# Those that ON CONFLICT can use: whole, at once, by the columns' own equality.
_UNIQUE = """
SELECT array_agg(a.attname::text) AS columns
FROM pg_catalog.pg_index i
CROSS JOIN LATERAL unnest(i.indkey::int2[], i.indcollation::oid[]) WITH ORDINALITY AS k(attnum, rule, place)
JOIN pg_catalog.pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum
WHERE i.indrelid = $1::int8::oid AND i.indisunique AND i.indisvalid AND i.indimmediate
  AND i.indpred IS NULL AND i.indexprs IS NULL AND k.place <= i.indnkeyatts
GROUP BY i.indexrelid HAVING bool_and(k.rule = a.attcollation)
"""
_CASCADES = """
SELECT DISTINCT c.conrelid::regclass::text AS child
FROM pg_catalog.pg_constraint c
WHERE c.confrelid = $1::int8::oid AND c.conrelid <> c.confrelid AND c.contype = 'f' AND c.confdeltype IN ('c', 'n', 'd')
ORDER BY 1
"""
_ENUM = """
SELECT v.enumlabel::text AS label FROM pg_catalog.pg_enum v JOIN pg_catalog.pg_type t ON t.oid = v.enumtypid
JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace WHERE n.nspname = $1::text AND t.typname = $2::text
"""


@dataclass(frozen=True)
class TableColumn:
    name: str
    type: str  # pg_type's name of the type below any domain: int4, not integer
    type_schema: str
    type_kind: str  # b base, e enum, c composite, r range, m multirange
    declared: str  # as DDL spells it
    typmod: int
    element: str  # of an array
    element_schema: str
    element_kind: str
    required: bool
    identity: str  # a: only the server gives values, d: by default
    generated: bool
    filled: bool  # the server has a value for it when none is given
    exact_text: bool


@dataclass(frozen=True)
class Table:
    oid: int
    schema: str
    name: str
    kind: str
    fills_rows: bool  # a trigger before INSERT may put in what is missing
    privileges: frozenset[str]
    columns: tuple[TableColumn, ...]
    unique: tuple[frozenset[str], ...]

    @property
    def sql(self) -> str:
        return f"{double_quoted(self.schema)}.{double_quoted(self.name)}"

    def column(self, name: str) -> TableColumn | None:
        return next((c for c in self.columns if c.name == name), None)

    def has_unique(self, keys: Sequence[str]) -> bool:
        return frozenset(keys) in self.unique


def inspect(session: Session, schema: str | None, name: str) -> Table | None:
    """The table, or None if there is none of that name."""
    path = f"{double_quoted(schema)}.{double_quoted(name)}" if schema else double_quoted(name)
    found = session.rows(_FIND, path)
    if not found:
        return None
    row = found[0]
    columns = [TableColumn(**{**c, "typmod": int(c["typmod"])}) for c in session.rows(_COLUMNS, row["oid"])]
    return Table(
        oid=int(row["oid"]),
        schema=row["schema"],
        name=row["name"],
        kind=row["kind"],
        fills_rows=row["fills_rows"],
        privileges=frozenset(
            what.upper() for what in ("select", "insert", "update", "delete", "truncate") if row[f"can_{what}"]
        ),
        columns=tuple(columns),
        unique=tuple(frozenset(u["columns"]) for u in session.rows(_UNIQUE, row["oid"])),
    )


def cascading_children(session: Session, table: Table) -> list[str]:
    """Tables whose rows would be deleted or changed when rows of this one are deleted."""
    return [row["child"] for row in session.rows(_CASCADES, table.oid)]


def enum_labels(session: Session, schema: str, name: str) -> list[str]:
    return [row["label"] for row in session.rows(_ENUM, schema, name)]


def here(session: Session) -> dict[str, Any]:
    """Where a new table would be made, and whether a temporary one may be."""
    return session.rows(
        "SELECT pg_catalog.current_schema()::text AS schema, current_user::text AS role, "
        "pg_catalog.current_database()::text AS database, "
        "pg_catalog.has_database_privilege(pg_catalog.current_database(), 'TEMP') AS temp, "
        "pg_catalog.pg_is_in_recovery() AS standby, current_setting('server_version_num')::int4 AS version"
    )[0]
