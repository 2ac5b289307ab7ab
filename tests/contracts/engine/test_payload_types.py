"""Columns beside the key, of every type that Parquet holds: kept and replaced without a change."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from contracts.engine.dataset import Dataset, counts

STRUCT = pa.struct([("a", pa.int32()), ("b", pa.list_(pa.string()))])

VALUES: dict[str, tuple[pa.DataType, Any, Any]] = {
    "list": (pa.list_(pa.int64()), [1, None, 3], []),
    "large_list": (pa.large_list(pa.string()), ["a", None], ["b"]),
    "list of lists": (pa.list_(pa.list_(pa.int8())), [[1], [], None], [[2, 3]]),
    "fixed list": (pa.list_(pa.float32(), 2), [1.5, 2.5], [0.0, -1.0]),
    "struct": (STRUCT, {"a": 1, "b": ["x"]}, {"a": None, "b": None}),
    "list of structs": (pa.list_(STRUCT), [{"a": 1, "b": []}], [{"a": 2, "b": ["y"]}, None]),
    "map": (pa.map_(pa.string(), pa.int32()), [("a", 1), ("b", None)], []),
    "map of structs": (pa.map_(pa.int64(), STRUCT), [(1, {"a": 1, "b": ["x"]})], [(2, None)]),
    "dictionary": (pa.dictionary(pa.int32(), pa.string()), "a", "b"),
    "dictionary of large_string": (pa.dictionary(pa.int8(), pa.large_string()), "a", "b"),
    "large_string": (pa.large_string(), "é", "ü"),
    "binary": (pa.binary(), b"\x00\xff", b""),
    "fixed binary": (pa.binary(2), b"ab", b"\x00\x01"),
    "bool": (pa.bool_(), True, False),
    "decimal": (pa.decimal128(38, 18), Decimal("1.000000000000000001"), Decimal("-2.5")),
    "decimal256": (pa.decimal256(60, 2), Decimal("9" * 50 + ".25"), Decimal("-0.01")),
    "date": (pa.date32(), date(1, 1, 1), date(9999, 12, 31)),
    "date64": (pa.date64(), date(1970, 1, 2), date(2026, 1, 1)),
    "timestamp": (pa.timestamp("us"), datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999999)),
    "timestamp ms": (pa.timestamp("ms"), datetime(2026, 1, 1), datetime(1969, 1, 1)),
    "zoned timestamp": (pa.timestamp("us", "UTC"), datetime(2026, 1, 1, tzinfo=UTC), datetime(1969, 1, 1, tzinfo=UTC)),
    "timestamp of a zone": (
        pa.timestamp("us", "Europe/Oslo"),
        datetime(2026, 7, 1, tzinfo=UTC),
        datetime(2026, 1, 1, tzinfo=UTC),
    ),
    "time": (pa.time64("us"), time(12, 30, 0, 5), time(0)),
    "time ms": (pa.time32("ms"), time(12, 30), time(0)),
    "duration": (pa.duration("us"), timedelta(days=1), timedelta(microseconds=-1)),
    "uint64": (pa.uint64(), 2**64 - 1, 0),
    "uint8": (pa.uint8(), 255, 0),
    "int8": (pa.int8(), -128, 127),
    "half float": (pa.float16(), 1.5, -0.25),
    "float": (pa.float32(), 0.10000000149011612, 3.0),
    "infinite": (pa.float64(), float("inf"), float("-inf")),
    "null": (pa.null(), None, None),
    "json": (pa.json_(pa.string()), '{"a": 1}', "[]"),
    "uuid": (pa.uuid(), b"0123456789abcdef", b"fedcba9876543210"),
}


def column(kind: pa.DataType, values: list[Any]) -> pa.Array:
    if isinstance(kind, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(kind, pa.array(values, kind.storage_type))
    if pa.types.is_float16(kind):
        return pa.array(values, pa.float32()).cast(kind)
    return pa.array(values, kind)


@pytest.mark.parametrize("strategy", ["upsert", "full_merge"])
@pytest.mark.parametrize("case", VALUES)
def test_a_value_is_kept_replaced_and_added(dataset: Dataset, case: str, strategy: str) -> None:
    kind, one, two = VALUES[case]
    old = pa.table({"id": [1, 2, 3], "v": column(kind, [one, two, None])})
    fresh = pa.table({"id": [1, 2, 4], "v": column(kind, [two, None, one])})
    path = dataset.add("a.parquet", old)
    with pq.ParquetFile(path) as stored:
        before = stored.read()

    result = dataset.merge(fresh, strategy)

    assert result.updated == 2
    assert result.inserted == 1
    expected = pa.concat_tables([fresh.slice(0, 2), old.slice(2), fresh.slice(2)])
    if strategy == "full_merge":
        expected = fresh
    with pq.ParquetFile(path) as rewritten:
        first = rewritten.read()
    (added,) = result.inserted_files
    with pq.ParquetFile(added) as other:
        assert other.schema_arrow.field("v").type == before.schema.field("v").type
        rows = first.to_pylist() + other.read().to_pylist()
    assert first.schema.equals(before.schema, check_metadata=True)
    assert sorted(map(repr, rows)) == sorted(map(repr, expected.to_pylist()))


def test_a_row_with_every_type_at_once(dataset: Dataset) -> None:
    old = pa.table({"id": [1, 2]} | {name: column(kind, [one, two]) for name, (kind, one, two) in VALUES.items()})
    fresh = pa.table({"id": [2, 3]} | {name: column(kind, [one, two]) for name, (kind, one, two) in VALUES.items()})
    dataset.add("a.parquet", old)
    result = dataset.merge(fresh)
    assert counts(result) == {"inserted": 1, "updated": 1, "deleted": 0}
    rows = {row["id"]: row for row in dataset.rows()}
    assert repr(rows[1]) == repr(old.to_pylist()[0])
    assert repr(rows[2]) == repr(fresh.to_pylist()[0])
    assert repr(rows[3]) == repr(fresh.to_pylist()[1])


def test_dictionaries_with_other_values_in_each_row_group(dataset: Dataset) -> None:
    names = [f"name {i}" for i in range(20)]
    dataset.add("a.parquet", pa.table({"id": range(20), "v": pa.array(names).dictionary_encode()}), row_group_size=5)
    source = pa.table({"id": [3, 17, 40], "v": pa.array(["x", "y", "z"]).dictionary_encode()})
    dataset.merge(source)
    values = {r["id"]: r["v"] for r in dataset.rows()}
    assert values == dict(enumerate(names)) | {3: "x", 17: "y", 40: "z"}
