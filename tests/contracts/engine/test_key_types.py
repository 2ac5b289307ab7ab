"""Every type that can be a key, and pairs of types that hold the same keys."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from contracts.engine.dataset import STRATEGIES, Dataset, counts
from lockgate.errors import SchemaMismatchError

D = Decimal

# three values: the first only in the target, the second in both, the third only in the source
KEYS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "int8": (pa.int8(), [-128, 0, 127]),
    "int16": (pa.int16(), [-(2**15), 0, 2**15 - 1]),
    "int32": (pa.int32(), [-(2**31), 0, 2**31 - 1]),
    "int64": (pa.int64(), [-(2**63), 2**53 + 1, 2**63 - 1]),
    "int64 beyond doubles": (pa.int64(), [2**53, 2**53 + 1, 2**53 + 2]),
    "uint8": (pa.uint8(), [0, 127, 255]),
    "uint16": (pa.uint16(), [0, 2**15, 2**16 - 1]),
    "uint32": (pa.uint32(), [0, 2**31, 2**32 - 1]),
    "uint64": (pa.uint64(), [0, 2**63, 2**64 - 1]),
    "float": (pa.float32(), [-1.5, 0.1, 3e38]),
    "double": (pa.float64(), [-1.5, 0.1, 1e308]),
    "string": (pa.string(), ["", "é", "日本\U0001f600"]),
    "string with odd characters": (pa.string(), ["a\0b", "a'b", 'a"b;--']),
    "string of other case": (pa.string(), ["a", "A", "B"]),
    "string with blanks at its end": (pa.string(), ["a", "a ", "a\t"]),
    "string normalised otherwise": (pa.string(), ["é", "e\u0301", "e"]),
    "long strings with one beginning": (pa.string(), ["x" * 5000 + "a", "x" * 5000 + "b", "x" * 5000 + "c"]),
    "large_string": (pa.large_string(), ["", "é", "z"]),
    "dictionary": (pa.dictionary(pa.int32(), pa.string()), ["a", "b", "c"]),
    "dictionary of numbers": (pa.dictionary(pa.int8(), pa.int64()), [1, 2, 3]),
    "binary": (pa.binary(), [b"", b"\x00\xff", b"\xff\x00"]),
    "large_binary": (pa.large_binary(), [b"", b"\x00\xff", b"\xff"]),
    "fixed binary": (pa.binary(3), [b"\x00\x00\x00", b"abc", b"\xff\xff\xff"]),
    "date": (pa.date32(), [date(1, 1, 1), date(2026, 2, 28), date(9999, 12, 31)]),
    "timestamp s": (pa.timestamp("s"), [datetime(1, 1, 1), datetime(2026, 1, 1, 10), datetime(9999, 12, 31)]),
    "timestamp ms": (pa.timestamp("ms"), [datetime(1, 1, 1), datetime(2026, 1, 1, 10), datetime(9999, 12, 31)]),
    "timestamp us": (pa.timestamp("us"), [datetime(1, 1, 1), datetime(2026, 1, 1, 10), datetime(9999, 12, 31)]),
    "timestamp ns": (pa.timestamp("ns"), [-(2**62), 1_700_000_000_000_000_001, 1_700_000_000_000_000_002]),
    "zoned timestamp s": (pa.timestamp("s", "UTC"), [datetime(1969, 1, 1), datetime(2026, 1, 1), datetime(2026, 7, 1)]),
    "zoned timestamp ms": (
        pa.timestamp("ms", "Europe/Oslo"),
        [datetime(1969, 1, 1), datetime(2026, 1, 1), datetime(2026, 7, 1)],
    ),
    "zoned timestamp us": (
        pa.timestamp("us", "America/New_York"),
        [datetime(1969, 1, 1), datetime(2026, 1, 1), datetime(2026, 7, 1)],
    ),
    "zoned timestamp ns": (pa.timestamp("ns", "UTC"), [1, 1_700_000_000_000_000_001, 1_700_000_000_000_000_002]),
    "time s": (pa.time32("s"), [time(0), time(12, 30), time(23, 59, 59)]),
    "time ms": (pa.time32("ms"), [time(0), time(12, 30), time(23, 59, 59, 999000)]),
    "time us": (pa.time64("us"), [time(0), time(12, 30), time(23, 59, 59, 999999)]),
    "time ns": (pa.time64("ns"), [0, 1_000_000_001, 1_000_000_002]),
    "decimal(4, 2)": (pa.decimal128(4, 2), [D("-99.99"), D("0.00"), D("99.99")]),
    "decimal(9, 0)": (pa.decimal128(9, 0), [D("-1"), D("0"), D("999999999")]),
    "decimal(18, 6)": (pa.decimal128(18, 6), [D("-1.000001"), D("0.5"), D("123456789012.000001")]),
    "decimal(38, 10)": (pa.decimal128(38, 10), [D("-1"), D("0.1"), D("9999999999999999999999999999.0000000001")]),
    "date64": (pa.date64(), [date(1970, 1, 1), date(2026, 2, 28), date(9999, 12, 31)]),
    "duration": (pa.duration("us"), [timedelta(microseconds=-1), timedelta(0), timedelta(days=40_000)]),
    "half float": (pa.float16(), [-1.5, 0.25, 65504.0]),
    "uuid": (pa.uuid(), [b"0" * 16, b"\xff" * 16, b"0123456789abcdef"]),
    "decimal256(50, 3)": (pa.decimal256(50, 3), [D("-1"), D("0.125"), D("9" * 40 + ".001")]),
}


def keyed(name: str, positions: list[int], mark: str) -> pa.Table:
    kind, values = KEYS[name]
    chosen = [values[p] for p in positions]
    if pa.types.is_dictionary(kind):
        indices = pa.array(range(len(chosen)), kind.index_type)
        column = pa.DictionaryArray.from_arrays(indices, pa.array(chosen, kind.value_type))
    elif isinstance(kind, pa.BaseExtensionType):
        column = pa.ExtensionArray.from_storage(kind, pa.array(chosen, kind.storage_type))
    elif pa.types.is_float16(kind):
        column = pa.array(chosen, pa.float32()).cast(kind)
    else:
        column = pa.array(chosen, kind)
    return pa.table({"id": column, "x": [f"{mark} {p}" for p in positions]})


EXPECTED = {
    "insert": (["old 0", "old 1", "new 2"], 1, 0, 0),
    "update": (["old 0", "new 1"], 0, 1, 0),
    "upsert": (["old 0", "new 1", "new 2"], 1, 1, 0),
    "full_merge": (["new 1", "new 2"], 1, 1, 1),
    "deduplicate": (["old 0", "new 1", "new 2"], 1, 1, 0),
}


@pytest.mark.parametrize("strategy", ["insert", "full_merge", "upsert"])
@pytest.mark.parametrize("kind", KEYS)
def test_a_key_of_each_type(dataset: Dataset, kind: str, strategy: str) -> None:
    dataset.add("a.parquet", keyed(kind, [0, 1], "old"))
    stored = pq.read_schema(dataset.files()[0])

    result = dataset.merge(keyed(kind, [2, 1], "new"), strategy)

    rows, inserted, updated, deleted = EXPECTED[strategy]
    assert sorted(dataset.column("x")) == sorted(rows)
    assert counts(result) == {"inserted": inserted, "updated": updated, "deleted": deleted}
    assert all(pq.read_schema(f).equals(stored) for f in dataset.files())


@pytest.mark.parametrize("kind", KEYS)
def test_files_without_statistics(dataset: Dataset, kind: str) -> None:
    dataset.add("a.parquet", keyed(kind, [0, 1], "old"), write_statistics=False)
    result = dataset.merge(keyed(kind, [2, 1], "new"), "upsert")
    assert counts(result) == {"inserted": 1, "updated": 1, "deleted": 0}


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_boolean_key(dataset: Dataset, strategy: str) -> None:
    dataset.add("a.parquet", pa.table({"id": [True, None], "x": ["old 1", "old 0"]}))
    result = dataset.merge(pa.table({"id": [True, False], "x": ["new 1", "new 2"]}), strategy)
    rows, inserted, updated, deleted = EXPECTED[strategy]
    assert sorted(dataset.column("x")) == sorted(rows)
    assert counts(result) == {"inserted": inserted, "updated": updated, "deleted": deleted}


PAIRS: dict[str, tuple[pa.Array, pa.Array]] = {
    "int32 in files, int64 in the source": (pa.array([1, 2], pa.int32()), pa.array([2, 3], pa.int64())),
    "int64 in files, int32 in the source": (pa.array([1, 2], pa.int64()), pa.array([2, 3], pa.int32())),
    "int64 in files, uint8 in the source": (pa.array([1, 2], pa.int64()), pa.array([2, 3], pa.uint8())),
    "uint32 in files, int64 in the source": (pa.array([1, 2], pa.uint32()), pa.array([2, 3], pa.int64())),
    "double in files, int64 in the source": (pa.array([1.0, 2.0]), pa.array([2, 3])),
    "int64 in files, double in the source": (pa.array([1, 2]), pa.array([2.0, 3.0])),
    "decimals of another scale": (
        pa.array([D("1.0"), D("2.0")], pa.decimal128(10, 1)),
        pa.array([D("2.000"), D("3.000")], pa.decimal128(10, 3)),
    ),
    "decimal in files, int64 in the source": (
        pa.array([D("1.0"), D("2.0")], pa.decimal128(10, 1)),
        pa.array([2, 3]),
    ),
    "large_string in the source": (pa.array(["1", "2"]), pa.array(["2", "3"], pa.large_string())),
    "string_view in the source": (pa.array(["1", "2"]), pa.array(["2", "3"], pa.string_view())),
    "dictionary in the source": (pa.array(["1", "2"]), pa.array(["2", "3"]).dictionary_encode()),
    "dictionary in files": (pa.array(["1", "2"]).dictionary_encode(), pa.array(["2", "3"])),
    "fixed binary in files": (pa.array([b"1", b"2"], pa.binary(1)), pa.array([b"2", b"3"])),
    "timestamps of another unit": (
        pa.array([datetime(2026, 1, 1), datetime(2026, 1, 2)], pa.timestamp("ms")),
        pa.array([datetime(2026, 1, 2), datetime(2026, 1, 3)], pa.timestamp("ns")),
    ),
    "timestamps of another zone": (
        pa.array([datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC)], pa.timestamp("us", "UTC")),
        pa.array(
            [datetime(2026, 1, 2, tzinfo=UTC), datetime(2026, 1, 3, tzinfo=UTC)], pa.timestamp("us", "Asia/Tokyo")
        ),
    ),
    "dates as timestamps": (
        pa.array([date(2026, 1, 1), date(2026, 1, 2)]),
        pa.array([datetime(2026, 1, 2), datetime(2026, 1, 3)], pa.timestamp("us")),
    ),
}


@pytest.mark.parametrize("pair", PAIRS)
def test_keys_of_another_type_are_the_same_keys(dataset: Dataset, pair: str) -> None:
    mine, theirs = PAIRS[pair]
    dataset.add("a.parquet", pa.table({"id": mine, "x": ["a", "b"]}))
    result = dataset.merge(pa.table({"id": theirs, "x": ["B", "C"]}), "upsert")
    assert counts(result) == {"inserted": 1, "updated": 1, "deleted": 0}
    assert sorted(dataset.column("x")) == ["B", "C", "a"]
    assert {pq.read_schema(f).field("id").type for f in dataset.files()} == {mine.type}


@pytest.mark.parametrize(
    ("mine", "theirs"),
    [
        (pa.array([1]), pa.array(["1"])),
        (pa.array([1], pa.int32()), pa.array([2**40])),
        (pa.array([datetime(2026, 1, 1)]), pa.array([datetime(2026, 1, 1)], pa.timestamp("us", "UTC"))),
        (pa.array([1]), pa.array([1.5])),
    ],
)
def test_keys_that_cannot_be_compared_are_refused(dataset: Dataset, mine: pa.Array, theirs: pa.Array) -> None:
    dataset.add("a.parquet", pa.table({"id": mine, "x": ["a"]}))
    before = dataset.contents()
    with pytest.raises(SchemaMismatchError, match="id"):
        dataset.merge(pa.table({"id": theirs, "x": ["B"]}))
    assert dataset.contents() == before


COMPOSITES: dict[str, dict[str, list[Any]]] = {
    "two numbers": {"a": [1, 1, 2], "b": [1, 2, 1]},
    "number and text": {"a": [1, 1, 2], "b": ["p", "q", "p"]},
    "texts that join to the same": {"a": ["ab", "a", "abc"], "b": ["c", "bc", ""]},
    "date and text": {"a": [date(2026, 1, 1), date(2026, 1, 2), date(2026, 1, 1)], "b": ["p", "p", "q"]},
    "double and bytes": {"a": [0.5, 0.5, 1.5], "b": [b"\x00", b"\x01", b"\x00"]},
    "three columns": {"a": [1, 1, 1], "b": ["p", "p", "q"], "c": [True, False, True]},
    "three wide columns": {
        "a": [2**62, 2**62, 2**62 + 1],
        "b": ["x" * 100, "x" * 100, "x" * 100],
        "c": [D("1.5"), D("2.5"), D("1.5")],
    },
}


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("case", COMPOSITES)
def test_a_key_of_several_columns(dataset: Dataset, case: str, strategy: str) -> None:
    table = pa.table(COMPOSITES[case])
    old = table.take([0, 1]).append_column("x", pa.array(["old 0", "old 1"]))
    fresh = table.take([2, 1]).append_column("x", pa.array(["new 2", "new 1"]))
    dataset.add("a.parquet", old)
    result = dataset.merge(fresh, strategy, table.column_names)
    rows, inserted, updated, deleted = EXPECTED[strategy]
    assert sorted(dataset.column("x")) == sorted(rows)
    assert counts(result) == {"inserted": inserted, "updated": updated, "deleted": deleted}


def test_many_combinations_of_two_key_columns(dataset: Dataset) -> None:
    pairs = [(a, b) for a in range(40) for b in range(40)]
    old = pa.table({"a": [a for a, _ in pairs], "b": [b for _, b in pairs], "x": ["old"] * len(pairs)})
    dataset.add("a.parquet", old, row_group_size=100)
    wanted = [(a, b) for a, b in pairs if (a * 7 + b) % 5 == 0] + [(99, 0), (0, 99)]
    source = pa.table({"b": [b for _, b in wanted], "a": [a for a, _ in wanted], "x": ["new"] * len(wanted)})
    result = dataset.merge(source, "upsert", ["a", "b"])
    assert counts(result) == {"inserted": 2, "updated": len(wanted) - 2, "deleted": 0}
    assert {(r["a"], r["b"]) for r in dataset.rows() if r["x"] == "new"} == set(wanted)
