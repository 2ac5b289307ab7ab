"""Small tables for tests of what keeps tables well."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

import lockgate

SCHEMA = pa.schema({"id": pa.int64(), "x": pa.string(), "day": pa.string()})


def rows(*values: tuple[int, str | None, str | None]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, v, strict=True)) for v in values], SCHEMA)


def ids(table: Any) -> list[Any]:
    found = table if isinstance(table, pa.Table) else table.to_arrow()
    return sorted(found.column("id").to_pylist())


def elsewhere(table: lockgate.Table, version: int | None = None) -> pa.Table:
    """The rows as another Delta reader sees them, in the order of their ids."""
    from deltalake import DeltaTable

    found = pa.table(DeltaTable(table.location, version=version).to_pyarrow_table())
    return found.select(table.schema.names).cast(table.schema).sort_by("id")
