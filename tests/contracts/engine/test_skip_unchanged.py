"""skip_unchanged: a matched row that is equal already is neither counted nor rewritten."""

from __future__ import annotations

import math
from decimal import Decimal

import pyarrow as pa
import pytest

from contracts.engine.dataset import REPLACING, Dataset, counts, ids, new


@pytest.mark.parametrize("strategy", REPLACING)
def test_equal_rows_are_not_counted_and_their_file_is_not_touched(dataset: Dataset, strategy: str) -> None:
    same = dataset.add("a.parquet", ids(1, 2))
    other = dataset.add("b.parquet", ids(3, 4))
    before = dataset.contents()
    source = pa.concat_tables([ids(1, 2), new(3), ids(4)])

    result = dataset.merge(source, strategy, skip_unchanged=True)

    assert counts(result) == {"inserted": 0, "updated": 1, "deleted": 0}
    assert dataset.contents()[str(same)] == before[str(same)]
    assert result.rewritten_files == [str(other)]
    assert dataset.column("x") == ["old 1", "old 2", "new 3", "old 4"]


@pytest.mark.parametrize("strategy", REPLACING)
def test_a_source_equal_to_the_target_changes_nothing_on_disk(dataset: Dataset, strategy: str) -> None:
    dataset.add("a.parquet", ids(1, 2))
    dataset.add("b.parquet", ids(3))
    before = dataset.contents()
    result = dataset.merge(ids(3, 2, 1), strategy, skip_unchanged=True)
    assert counts(result) == {"inserted": 0, "updated": 0, "deleted": 0}
    assert dataset.contents() == before
    assert (result.target_count_before, result.target_count_after) == (3, 3)


def test_without_it_equal_rows_are_counted(dataset: Dataset) -> None:
    dataset.add("a.parquet", ids(1, 2))
    assert dataset.merge(ids(1, 2)).updated == 2


def test_new_rows_are_still_inserted(dataset: Dataset) -> None:
    dataset.add("a.parquet", ids(1, 2))
    result = dataset.merge(pa.concat_tables([ids(1), new(5)]), skip_unchanged=True)
    assert counts(result) == {"inserted": 1, "updated": 0, "deleted": 0}
    assert sorted(dataset.column("x")) == ["new 5", "old 1", "old 2"]


def test_full_merge_still_removes_others(dataset: Dataset) -> None:
    dataset.add("a.parquet", ids(1, 2, 3))
    dataset.add("b.parquet", ids(4))
    dataset.add("c.parquet", ids(5, 6))
    source = pa.concat_tables([ids(1), new(3), ids(5, 6)])
    kept = dataset.contents()[str(dataset.root / "c.parquet")]
    result = dataset.merge(source, "full_merge", skip_unchanged=True)
    assert counts(result) == {"inserted": 0, "updated": 1, "deleted": 2}
    assert dataset.column("x") == ["old 1", "new 3", "old 5", "old 6"]
    assert dataset.contents()[str(dataset.root / "c.parquet")] == kept


def test_insert_with_skip_unchanged_is_an_insert(dataset: Dataset) -> None:
    dataset.add("a.parquet", ids(1))
    assert counts(dataset.merge(new(1, 2), "insert", skip_unchanged=True)) == {
        "inserted": 1,
        "updated": 0,
        "deleted": 0,
    }


def test_each_of_several_rows_with_one_key_is_compared(dataset: Dataset) -> None:
    dataset.add("a.parquet", pa.table({"id": [1, 1, 2], "x": ["p", "q", "r"]}))
    result = dataset.merge(pa.table({"id": [1], "x": ["q"]}), "update", skip_unchanged=True)
    assert result.updated == 1
    assert dataset.column("x") == ["q", "q", "r"]


NAN = math.nan
VALUES = {
    "NULL and NULL": (pa.array([None], pa.int64()), pa.array([None], pa.int64()), True),
    "NULL and a value": (pa.array([None], pa.int64()), pa.array([1]), False),
    "a value and NULL": (pa.array([1]), pa.array([None], pa.int64()), False),
    "NaN and NaN": (pa.array([NAN]), pa.array([NAN]), True),
    "NaN and NULL": (pa.array([NAN]), pa.array([None], pa.float64()), False),
    "empty text and NULL": (pa.array([""]), pa.array([None], pa.string()), False),
    "lists": (pa.array([[1, None]]), pa.array([[1, None]]), True),
    "lists of another length": (pa.array([[1, None]]), pa.array([[1]]), False),
    "lists that differ": (pa.array([[1, 2]]), pa.array([[1, 3]]), False),
    "empty list and NULL": (pa.array([[]], pa.list_(pa.int64())), pa.array([None], pa.list_(pa.int64())), False),
    "structs": (pa.array([{"a": 1, "b": None}]), pa.array([{"a": 1, "b": None}]), True),
    "structs that differ": (pa.array([{"a": 1, "b": [1]}]), pa.array([{"a": 1, "b": [2]}]), False),
    "struct of NULL and NULL": (
        pa.array([{"a": None}], pa.struct([("a", pa.int64())])),
        pa.array([None], pa.struct([("a", pa.int64())])),
        False,
    ),
    "maps": (
        pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64())),
        pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64())),
        True,
    ),
    "maps that differ": (
        pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64())),
        pa.array([[("a", 2)]], pa.map_(pa.string(), pa.int64())),
        False,
    ),
    "dictionaries": (pa.array(["a"]).dictionary_encode(), pa.array(["a"]).dictionary_encode(), True),
    "dictionaries that differ": (pa.array(["a"]).dictionary_encode(), pa.array(["b"]).dictionary_encode(), False),
    "decimals of another scale": (
        pa.array([Decimal("1.50")], pa.decimal128(8, 2)),
        pa.array([Decimal("1.5")], pa.decimal128(8, 1)),
        True,
    ),
    "numbers of another width": (pa.array([7], pa.int64()), pa.array([7], pa.int8()), True),
    "bytes": (pa.array([b"\x00"]), pa.array([b"\x00"]), True),
    "bytes that differ": (pa.array([b"\x00"]), pa.array([b"\x01"]), False),
}


@pytest.mark.parametrize("case", VALUES)
def test_what_is_equal(dataset: Dataset, case: str) -> None:
    old, fresh, equal = VALUES[case]
    dataset.add("a.parquet", pa.table({"id": [1], "v": old}))
    before = dataset.contents()
    result = dataset.merge(pa.table({"id": [1], "v": fresh}), "upsert", skip_unchanged=True)
    assert result.updated == (0 if equal else 1)
    assert (dataset.contents() == before) == equal


def test_minus_zero_and_zero_are_the_same_key_but_may_be_different_values(dataset: Dataset) -> None:
    """-0.0 equals 0.0 where SQL compares, so the row counts as unchanged."""
    dataset.add("a.parquet", pa.table({"id": [1], "v": [0.0]}))
    assert dataset.merge(pa.table({"id": [1], "v": [-0.0]}), skip_unchanged=True).updated == 0


def test_a_row_that_moves_is_a_change(dataset: Dataset) -> None:
    dataset.add("day=mon/a.parquet", ids(1, 2))
    dataset.add("day=tue/b.parquet", ids(3))
    source = ids(1, 2, 3).append_column("day", pa.array(["mon", "tue", "tue"]))
    result = dataset.merge(source, "update", skip_unchanged=True, allow_partition_moves=True)
    assert counts(result) == {"inserted": 0, "updated": 1, "deleted": 0}
    assert sorted((r["id"], r["day"]) for r in dataset.rows()) == [(1, "mon"), (2, "tue"), (3, "tue")]


def test_files_of_many_row_groups(dataset: Dataset) -> None:
    dataset.add("a.parquet", ids(*range(100)), row_group_size=7)
    source = pa.concat_tables([ids(*range(50)), new(*range(50, 60)), ids(*range(60, 100))])
    result = dataset.merge(source, "update", skip_unchanged=True)
    assert result.updated == 10
    assert dataset.column("x") == [f"{'new' if 50 <= i < 60 else 'old'} {i}" for i in range(100)]
