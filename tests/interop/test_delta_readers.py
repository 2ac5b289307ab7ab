"""What we publish is read equal by deltalake, by DuckDB's delta extension, and by ourselves, at every version."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lockgate
from support.delta_readers import by_deltalake, by_duckdb, spelled

INSTANT, WALL = pa.timestamp("us", "UTC"), pa.timestamp("us")
STRUCT = pa.struct({"a": pa.int32(), "b": pa.struct({"c": pa.string(), "d": pa.decimal128(9, 2)})})
ALL = pa.schema(
    {
        "id": pa.int64(),
        "byte": pa.int8(),
        "short": pa.int16(),
        "integer": pa.int32(),
        "float": pa.float32(),
        "double": pa.float64(),
        "small_decimal": pa.decimal128(5, 2),
        "decimal": pa.decimal128(38, 10),
        "string": pa.string(),
        "binary": pa.binary(),
        "boolean": pa.bool_(),
        "date": pa.date32(),
        "timestamp": INSTANT,
        "timestamp_ntz": WALL,
        "struct": STRUCT,
        "array": pa.list_(pa.int64()),
        "map": pa.map_(pa.string(), pa.float64()),
        "deep": pa.list_(pa.struct({"k": pa.list_(pa.string())})),
    }
)
FIRST: dict[str, Any] = {
    "id": 1, "byte": -128, "short": 32767, "integer": -(2**31), "float": 1.5, "double": math.inf,
    "small_decimal": Decimal("-999.99"), "decimal": Decimal("1234567890123456789012345678.0123456789"),
    "string": "ünï 'q' \U0001f600 " + "long " * 20, "binary": b"\x00\xff", "boolean": True, "date": date(1969, 12, 31),
    "timestamp": datetime(2026, 1, 2, 3, 4, 5, 678901, UTC), "timestamp_ntz": datetime(1899, 1, 1, 0, 0, 0, 1),
    "struct": {"a": 7, "b": {"c": "x", "d": Decimal("1.20")}}, "array": [1, None, 3], "map": [("k", 1.0), ("l", None)],
    "deep": [{"k": ["x", None]}, None],
}  # fmt: skip
SECOND = {
    **FIRST,
    "id": 2,
    "double": math.nan,
    "string": "",
    "timestamp": datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC),
}
EMPTY = dict.fromkeys(ALL.names, None) | {"id": 3}


def equal_everywhere(table: lockgate.Table) -> None:
    versions = list(range(table.version + 1))
    theirs = by_duckdb(table.location, versions)
    for version in versions:
        ours = spelled(table.at(version=version).to_arrow())
        assert by_deltalake(table.location, version) == ours, version
        assert theirs[version] == ours, version


@pytest.mark.usefixtures("project")
def test_all_types_at_every_version() -> None:
    with lockgate.create_table("t.all", ALL) as table:
        table.append(pa.Table.from_pylist([FIRST, EMPTY], ALL))
        table.merge(
            pa.Table.from_pylist([SECOND, {**EMPTY, "string": "now"}], ALL), strategy="upsert", key_columns="id"
        )
        table.merge(pa.Table.from_pylist([SECOND], ALL), strategy="full_merge", key_columns="id", engine="duckdb")
        table.overwrite(pa.Table.from_pylist([FIRST], ALL))
        assert table.version == 4
        equal_everywhere(table)


VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "text": (
        pa.string(),
        ["a b", "x/y", "50%", "%2F", "ünï", "a=b", "007", "NULL", "it's", "a:b", "#?&", "\U0001f600"],
    ),
    "date": (pa.date32(), [date(2026, 1, 1), date(1, 1, 1), date(9999, 12, 31)]),
    "instant": (INSTANT, [datetime(2026, 1, 1, 10, tzinfo=UTC), datetime(2026, 1, 1, 10, 0, 0, 1, UTC)]),
    "wall": (WALL, [datetime(2026, 1, 1, 10), datetime(2026, 1, 1, 10, 0, 0, 1)]),
    "decimal": (pa.decimal128(10, 2), [Decimal("1.50"), Decimal("0.01")]),  # deltalake 1.6 stumbles over negative ones
    "integer": (pa.int32(), [-7, 0, 7]),
    "boolean": (pa.bool_(), [True, False]),
    "double": (pa.float64(), [1.5, -2.0]),
}


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize("kind", VALUES)
def test_partition_values_of_each_type(kind: str) -> None:
    arrow, values = VALUES[kind]
    schema = pa.schema({"id": pa.int64(), "p": arrow, "x": pa.string()})
    rows = [{"id": n, "p": p, "x": "old"} for n, p in enumerate([*values, None])]
    with lockgate.create_table("t.parts", schema, partition_by="p") as table:
        table.append(pa.Table.from_pylist(rows, schema))
        changed = [{**rows[0], "x": "new"}, {**rows[-1], "x": "new"}]
        assert table.merge(pa.Table.from_pylist(changed, schema), strategy="upsert", key_columns="id").updated == 2
        equal_everywhere(table)


@pytest.mark.usefixtures("project")
def test_an_empty_text_is_no_partition() -> None:
    with lockgate.create_table("t.parts", pa.schema({"id": pa.int64(), "p": pa.string()}), partition_by="p") as table:
        with pytest.raises(lockgate.SchemaMismatchError, match="NULL"):
            table.append([{"id": 1, "p": ""}])
        assert table.version == 0
        assert not list(Path(table.location).rglob("*.parquet"))
