"""Datasets whose folders hold values: inside the key, outside it, or the whole key."""

from __future__ import annotations

import pyarrow as pa
import pytest

from contracts.engine.dataset import CREATING, STRATEGIES, Dataset, as_multiset, counts, totals
from lockgate.errors import LockgateError, PartitionMoveError, SchemaMismatchError


def rows(*triples: tuple[int, str | None, str]) -> pa.Table:
    names = ("id", "day", "x")
    schema = pa.schema([("id", pa.int64()), ("day", pa.string()), ("x", pa.string())])
    return pa.Table.from_pylist([dict(zip(names, t, strict=True)) for t in triples], schema)


def file_rows(*pairs: tuple[int, str]) -> pa.Table:
    return pa.table({"id": pa.array([i for i, _ in pairs], pa.int64()), "x": [x for _, x in pairs]})


def found(dataset: Dataset) -> list[tuple[int, str | None, str]]:
    return sorted(((r["id"], r["day"], r["x"]) for r in dataset.rows()), key=str)


@pytest.fixture
def by_day(dataset: Dataset) -> Dataset:
    dataset.add("day=mon/a.parquet", file_rows((1, "a"), (2, "b")))
    dataset.add("day=tue/b.parquet", file_rows((3, "c"), (1, "d")))
    return dataset


@pytest.mark.parametrize("strategy", CREATING)
def test_a_new_dataset_is_partitioned_as_asked(dataset: Dataset, strategy: str) -> None:
    result = dataset.merge(rows((1, "mon", "a"), (2, "tue", "b"), (3, "mon", "c")), strategy, partition_by=["day"])
    assert result.inserted == 3
    assert {f.parent.name for f in dataset.files()} == {"day=mon", "day=tue"}
    assert found(dataset) == [(1, "mon", "a"), (2, "tue", "b"), (3, "mon", "c")]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_partition_column_inside_the_key(by_day: Dataset, strategy: str) -> None:
    result = by_day.merge(rows((1, "tue", "D"), (1, "wed", "new")), strategy, ["id", "day"])
    expected = {
        "insert": {"inserted": 1, "updated": 0, "deleted": 0},
        "update": {"inserted": 0, "updated": 1, "deleted": 0},
        "upsert": {"inserted": 1, "updated": 1, "deleted": 0},
        "full_merge": {"inserted": 1, "updated": 1, "deleted": 3},
        "deduplicate": {"inserted": 1, "updated": 1, "deleted": 0},
    }[strategy]
    assert counts(result) == expected
    assert ((1, "tue", "D") in found(by_day)) == (expected["updated"] == 1)
    assert ((1, "wed", "new") in found(by_day)) == (expected["inserted"] == 1)
    assert ((1, "mon", "a") in found(by_day)) == (strategy != "full_merge")


@pytest.mark.parametrize("key", [["id", "day"], ["day", "id"]])
def test_the_order_of_the_key_does_not_matter(by_day: Dataset, key: list[str]) -> None:
    assert by_day.merge(rows((1, "tue", "D")), "update", key).updated == 1
    assert (1, "tue", "D") in found(by_day)
    assert (1, "mon", "a") in found(by_day)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_key_of_partition_columns_alone(dataset: Dataset, strategy: str) -> None:
    """Each folder is one key; here every row of it is replaced."""
    dataset.add("day=mon/a.parquet", pa.table({"x": ["a", "b"]}))
    dataset.add("day=tue/b.parquet", pa.table({"x": ["c"]}))
    source = pa.table({"x": ["M", "W"], "day": ["mon", "wed"]})
    result = dataset.merge(source, strategy, ["day"])
    expected = {
        "insert": {"inserted": 1, "updated": 0, "deleted": 0},
        "update": {"inserted": 0, "updated": 2, "deleted": 0},
        "upsert": {"inserted": 1, "updated": 2, "deleted": 0},
        "full_merge": {"inserted": 1, "updated": 2, "deleted": 1},
        "deduplicate": {"inserted": 1, "updated": 2, "deleted": 0},
    }[strategy]
    assert counts(result) == expected
    assert dataset.column("x").count("M") == expected["updated"]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_partition_column_outside_the_key(by_day: Dataset, strategy: str) -> None:
    result = by_day.merge(rows((2, "mon", "B"), (9, "wed", "new")), strategy)
    updated, inserted = int(strategy != "insert"), int(strategy != "update")
    deleted = 3 if strategy == "full_merge" else 0
    assert counts(result) == {"inserted": inserted, "updated": updated, "deleted": deleted}
    assert totals(result) == (4, 4 + inserted - deleted)
    assert ((2, "mon", "B") in found(by_day)) == bool(updated)
    assert ((9, "wed", "new") in found(by_day)) == bool(inserted)


@pytest.mark.parametrize("strategy", ["update", "upsert", "full_merge", "deduplicate"])
def test_a_row_that_would_move_is_refused(by_day: Dataset, strategy: str) -> None:
    before = by_day.contents()
    with pytest.raises(PartitionMoveError) as refused:
        by_day.merge(rows((2, "tue", "B")), strategy)
    assert isinstance(refused.value, ValueError)
    assert "partition columns cannot change for existing keys" in refused.value.message
    assert "id=2" in refused.value.message
    assert by_day.contents() == before


def test_insert_leaves_a_key_of_another_partition_alone(by_day: Dataset) -> None:
    before = by_day.contents()
    result = by_day.merge(rows((2, "tue", "B")), "insert")
    assert counts(result) == {"inserted": 0, "updated": 0, "deleted": 0}
    assert by_day.contents() == before


@pytest.mark.parametrize("strategy", ["update", "upsert", "full_merge", "deduplicate"])
def test_a_row_moves_where_that_is_allowed(by_day: Dataset, strategy: str) -> None:
    result = by_day.merge(rows((2, "tue", "B"), (3, "wed", "C")), strategy, allow_partition_moves=True)
    deleted = 2 if strategy == "full_merge" else 0
    assert counts(result) == {"inserted": 0, "updated": 2, "deleted": deleted}
    kept = [] if deleted else [(1, "mon", "a"), (1, "tue", "d")]
    assert found(by_day) == [*kept, (2, "tue", "B"), (3, "wed", "C")]


def test_all_rows_of_a_folder_may_move(by_day: Dataset) -> None:
    """Its file would be empty, so it goes."""
    (by_day.root / "day=tue/b.parquet").unlink()
    result = by_day.merge(rows((1, "tue", "A"), (2, "tue", "B")), "update", allow_partition_moves=True)
    assert counts(result) == {"inserted": 0, "updated": 2, "deleted": 0}
    assert found(by_day) == [(1, "tue", "A"), (2, "tue", "B")]
    assert result.removed_files == [str(by_day.root / "day=mon/a.parquet")]


def test_several_rows_of_one_key_in_two_partitions(by_day: Dataset) -> None:
    """Key 1 is in both folders; a source row can be of one only."""
    with pytest.raises(PartitionMoveError, match="id=1"):
        by_day.merge(rows((1, "mon", "A")), "update")
    result = by_day.merge(rows((1, "mon", "A")), "update", allow_partition_moves=True)
    assert result.updated == 2
    assert found(by_day).count((1, "mon", "A")) == 2


def test_a_null_partition(dataset: Dataset) -> None:
    dataset.merge(rows((1, None, "a"), (2, "mon", "b")), partition_by="day")
    assert (dataset.root / "day=__HIVE_DEFAULT_PARTITION__").is_dir()
    result = dataset.merge(rows((1, None, "A"), (3, None, "c")), "upsert")
    assert counts(result) == {"inserted": 1, "updated": 1, "deleted": 0}
    assert found(dataset) == [(1, None, "A"), (2, "mon", "b"), (3, None, "c")]


def test_a_row_does_not_leave_or_enter_the_null_partition_unnoticed(dataset: Dataset) -> None:
    dataset.merge(rows((1, None, "a"), (2, "mon", "b")), partition_by="day")
    with pytest.raises(PartitionMoveError):
        dataset.merge(rows((1, "mon", "A")))
    with pytest.raises(PartitionMoveError):
        dataset.merge(rows((2, None, "B")))
    dataset.merge(rows((1, "mon", "A"), (2, None, "B")), allow_partition_moves=True)
    assert found(dataset) == [(1, "mon", "A"), (2, None, "B")]


def test_two_partition_columns(dataset: Dataset) -> None:
    names = ("id", "year", "city", "x")
    first = [(1, 2024, "Oslo", "a"), (2, 2025, "Oslo", "b"), (3, 2025, "Rome", "c")]
    second = [(2, 2025, "Oslo", "B"), (4, 2024, "Rome", "d")]

    def table(values: list[tuple[int, int, str, str]]) -> pa.Table:
        return pa.Table.from_pylist([dict(zip(names, v, strict=True)) for v in values])

    dataset.merge(table(first), partition_by=["year", "city"])
    result = dataset.merge(table(second))
    assert counts(result) == {"inserted": 1, "updated": 1, "deleted": 0}
    assert sorted((r["id"], r["year"], r["city"], r["x"]) for r in dataset.rows()) == [
        (1, "2024", "Oslo", "a"),
        (2, "2025", "Oslo", "B"),
        (3, "2025", "Rome", "c"),
        (4, "2024", "Rome", "d"),
    ]
    assert (dataset.root / "year=2024" / "city=Rome").is_dir()


def test_new_rows_go_to_their_folders_though_partition_by_is_not_given(by_day: Dataset) -> None:
    by_day.merge(rows((10, "mon", "x"), (11, "wed", "y")), "insert")
    assert {f.parent.name for f in by_day.files()} == {"day=mon", "day=tue", "day=wed"}
    assert not list(by_day.root.glob("*.parquet"))


@pytest.mark.parametrize("partition_by", [["x"], [], ["day", "x"]])
def test_other_partition_columns_than_the_dataset_has_are_refused(by_day: Dataset, partition_by: list[str]) -> None:
    before = by_day.contents()
    with pytest.raises(SchemaMismatchError, match="day"):
        by_day.merge(rows((1, "mon", "A")), key=["id", "day"], partition_by=partition_by)
    assert by_day.contents() == before


def test_a_source_without_the_partition_column_is_refused(by_day: Dataset) -> None:
    with pytest.raises(SchemaMismatchError, match="day"):
        by_day.merge(rows((1, "mon", "A")).drop_columns(["day"]))


def test_full_merge_removes_whole_folders(by_day: Dataset) -> None:
    result = by_day.merge(rows((3, "tue", "C")), "full_merge")
    assert counts(result) == {"inserted": 0, "updated": 1, "deleted": 3}
    assert found(by_day) == [(3, "tue", "C")]
    assert result.removed_files == [str(by_day.root / "day=mon/a.parquet")]


def test_partition_columns_that_are_in_the_files_too(dataset: Dataset) -> None:
    """As some writers leave them: the new file has them as the old ones have."""
    dataset.add("day=mon/a.parquet", rows((1, "mon", "a"), (2, "mon", "b")))
    result = dataset.merge(rows((2, "mon", "B"), (3, "tue", "c")))
    assert counts(result) == {"inserted": 1, "updated": 1, "deleted": 0}
    assert as_multiset(dataset.rows()) == as_multiset(
        rows((1, "mon", "a"), (2, "mon", "B"), (3, "tue", "c")).to_pylist()
    )


def test_partition_columns_that_are_in_the_files_and_in_the_key(dataset: Dataset) -> None:
    dataset.add("day=mon/a.parquet", rows((1, "mon", "a"), (2, "mon", "b")))
    dataset.add("day=tue/b.parquet", rows((1, "tue", "c")))
    result = dataset.merge(rows((1, "tue", "C"), (1, "wed", "d")), "upsert", ["day", "id"])
    assert counts(result) == {"inserted": 1, "updated": 1, "deleted": 0}
    assert found(dataset) == [(1, "mon", "a"), (1, "tue", "C"), (1, "wed", "d"), (2, "mon", "b")]


@pytest.mark.parametrize("strategy", ["update", "full_merge"])
def test_a_rewritten_file_stays_in_its_folder_under_its_name(by_day: Dataset, strategy: str) -> None:
    result = by_day.merge(rows((2, "mon", "B"), (3, "tue", "C")), strategy)
    names = [by_day.root / "day=mon/a.parquet", by_day.root / "day=tue/b.parquet"]
    assert by_day.files() == names
    assert result.rewritten_files == [str(name) for name in names]


def test_folders_that_do_not_agree_are_refused(by_day: Dataset) -> None:
    by_day.add("stray.parquet", rows((7, "mon", "x")).drop_columns(["day"]))
    before = by_day.contents()
    with pytest.raises(LockgateError, match="partitioned"):
        by_day.merge(rows((1, "mon", "A")), key=["id", "day"])
    assert by_day.contents() == before
