"""Looking at the table before anything is published: whether the rows can go in, and whether the role may."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from lockgate.destinations.postgres_columns import Column, columns_for
from lockgate.destinations.postgres_options import Wanted
from lockgate.destinations.postgres_session import Session
from lockgate.destinations.postgres_table import Table, cascading_children, enum_labels, here, inspect
from lockgate.destinations.postgres_types import new_column
from lockgate.errors import SchemaMismatchError, StageError
from lockgate.identifiers import double_quoted

_IN_PLACE = "nothing was written"
_OLDEST = 130000
_KINDS = {"v": "a view", "m": "a materialized view", "f": "a foreign table", "S": "a sequence", "i": "an index"}
_NEEDED = {
    "REPLACE": ("SELECT", "INSERT", "DELETE"),
    "APPEND": ("INSERT",),
    "INSERT": ("SELECT", "INSERT"),
    "UPDATE": ("SELECT", "UPDATE"),
    "UPSERT": ("SELECT", "INSERT", "UPDATE"),
    "DEDUPLICATE": ("SELECT", "INSERT", "UPDATE"),
    "FULL_MERGE": ("SELECT", "INSERT", "UPDATE", "DELETE"),
}


def find_table(opened: Session, wanted: Wanted) -> Table | None:
    """The table, if it is one that rows can be swapped into; None if it is missing and may be made."""
    table = inspect(opened, wanted.schema, wanted.table)
    if table is None:
        if not wanted.create:
            raise StageError(
                f"{wanted.connection} has no table {wanted.shown}, and the option create is false",
                in_place=_IN_PLACE,
                hint="create the table, or leave create out; names are taken exactly, upper and lower case told apart",
            )
        return None
    if table.kind not in ("r", "p"):
        raise StageError(
            f"{wanted.shown} in {wanted.connection} is {_KINDS.get(table.kind, 'no table')}, and rows go into a table",
            in_place=_IN_PLACE,
            hint="name the table below it",
        )
    return table


def examine(opened: Session, wanted: Wanted, schema: pa.Schema) -> tuple[list[Column], Table | None]:
    """Everything that can be refused without the rows."""
    place = here(opened)
    if place["version"] < _OLDEST:
        raise StageError(f"{wanted.connection} is older than PostgreSQL 13", in_place=_IN_PLACE, hint="upgrade it")
    if place["standby"]:
        raise StageError(
            f"{wanted.connection} is a standby, which takes no writes", in_place=_IN_PLACE, hint="name the primary"
        )
    table = find_table(opened, wanted)
    role, name = double_quoted(place["role"]), table.sql if table else wanted.shown
    if wanted.parallel == 1 and not place["temp"]:
        database = double_quoted(place["database"])
        raise _not_allowed(wanted, "TEMP", f"GRANT TEMPORARY ON DATABASE {database} TO {role}")
    columns = columns_for(schema, table, wanted.keys, wanted.mode)
    if table is None:
        if wanted.mode != "UPDATE":
            new_table(opened, wanted, schema)
        return columns, None
    needed = ("INSERT", "TRUNCATE") if wanted.truncate and wanted.mode == "REPLACE" else _NEEDED[wanted.mode]
    missing = [what for what in needed if what not in table.privileges]
    if missing:
        raise _not_allowed(wanted, ", ".join(missing), f"GRANT {', '.join(missing)} ON {name} TO {role}")
    if wanted.mode == "REPLACE" and not wanted.truncate and (children := cascading_children(opened, table)):
        raise StageError(
            f"REPLACE deletes the rows of {wanted.shown} before it inserts the new ones, and to delete them would "
            f"delete or change rows of {', '.join(children)} by a foreign key",
            in_place=_IN_PLACE,
            hint="use MODE FULL_MERGE with KEY, which deletes only the rows that are gone",
        )
    return columns, table


def labels_of(opened: Session, columns: Sequence[Column]) -> dict[str, list[str]]:
    """The values of each column whose type is an enum."""
    found = {}
    for column in columns:
        target = column.target
        if target is None:
            continue
        if target.type_kind == "e":
            found[column.name] = enum_labels(opened, target.type_schema, target.type)
        elif target.element_kind == "e":
            found[column.name] = enum_labels(opened, target.element_schema, target.element)
    return found


def new_table(opened: Session, wanted: Wanted, schema: pa.Schema) -> str:
    """The statement that makes the table, with the key as its primary key."""
    place = wanted.schema or here(opened)["schema"]
    found = place and opened.rows(
        "SELECT pg_catalog.has_schema_privilege(oid, 'CREATE') AS may FROM pg_catalog.pg_namespace "
        "WHERE nspname = $1::text",
        place,
    )
    if not found:
        raise StageError(
            f"{wanted.connection} has no schema {place!r}, in which {wanted.shown} would be made",
            in_place=_IN_PLACE,
            hint="create the schema, or name one that exists",
        )
    if not found[0]["may"]:
        role = double_quoted(here(opened)["role"])
        raise _not_allowed(
            wanted, "CREATE", f"create the table, or GRANT CREATE ON SCHEMA {double_quoted(place)} TO {role}"
        )
    missing = [key for key in wanted.keys if key not in schema.names]
    if missing:
        raise SchemaMismatchError(f'the query has no key column "{missing[0]}"', in_place=_IN_PLACE)
    columns = [new_column(f.name, f.type, required=f.name in wanted.keys) for f in schema]
    if wanted.keys:
        columns.append(f"PRIMARY KEY ({', '.join(double_quoted(key) for key in wanted.keys)})")
    return f"CREATE TABLE {double_quoted(place)}.{double_quoted(wanted.table)} ({', '.join(columns)})"


def _not_allowed(wanted: Wanted, what: str, grant: str) -> StageError:
    return StageError(
        f"the role of {wanted.connection} lacks {what} for {wanted.shown}", in_place=_IN_PLACE, hint=grant
    )
