"""The table of SPEC §3: what each strategy does to matched, new and other rows, and what it counts."""

from __future__ import annotations

import pyarrow as pa
import pytest

from contracts.engine.dataset import REPLACING, STRATEGIES, Dataset, as_multiset, counts, ids, new, totals

OLD = {1: "old 1", 2: "old 2", 3: "old 3", 4: "old 4"}
TABLE = {
    "insert": (OLD | {5: "new 5"}, {"inserted": 1, "updated": 0, "deleted": 0}),
    "update": (OLD | {2: "new 2", 4: "new 4"}, {"inserted": 0, "updated": 2, "deleted": 0}),
    "upsert": (OLD | {2: "new 2", 4: "new 4", 5: "new 5"}, {"inserted": 1, "updated": 2, "deleted": 0}),
    "full_merge": ({2: "new 2", 4: "new 4", 5: "new 5"}, {"inserted": 1, "updated": 2, "deleted": 2}),
    "deduplicate": (OLD | {2: "new 2", 4: "new 4", 5: "new 5"}, {"inserted": 1, "updated": 2, "deleted": 0}),
}


@pytest.fixture
def two_files(dataset: Dataset) -> Dataset:
    dataset.add("a.parquet", ids(1, 2))
    dataset.add("b.parquet", ids(3, 4))
    return dataset


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_rows_and_counts_of_each_strategy(two_files: Dataset, strategy: str) -> None:
    rows, expected = TABLE[strategy]

    result = two_files.merge(new(2, 4, 5), strategy)

    assert {row["id"]: row["x"] for row in two_files.rows()} == rows
    assert len(two_files.rows()) == len(rows)
    assert counts(result) == expected
    assert totals(result) == (4, len(rows))
    assert (result.strategy, result.source_count, result.deduplicated) == (strategy, 3, 0)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_result_says_which_engine_did_it(two_files: Dataset, strategy: str) -> None:
    wanted = two_files.implementation["engine"]
    engine = two_files.merge(new(2), strategy).engine
    assert engine == wanted or (wanted == "auto" and engine in ("arrow", "duckdb"))


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_only_matched(two_files: Dataset, strategy: str) -> None:
    result = two_files.merge(new(1, 2, 3, 4), strategy)
    replaced = 4 if strategy in REPLACING else 0
    assert counts(result) == {"inserted": 0, "updated": replaced, "deleted": 0}
    assert two_files.column("x") == [f"{'new' if replaced else 'old'} {i}" for i in (1, 2, 3, 4)]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_only_new(two_files: Dataset, strategy: str) -> None:
    result = two_files.merge(new(5, 6), strategy)
    inserted = 0 if strategy == "update" else 2
    deleted = 4 if strategy == "full_merge" else 0
    assert counts(result) == {"inserted": inserted, "updated": 0, "deleted": deleted}
    assert totals(result) == (4, 4 + inserted - deleted)
    assert len(two_files.rows()) == 4 + inserted - deleted


def test_a_merge_of_the_same_rows_again_changes_no_row(two_files: Dataset) -> None:
    two_files.merge(new(2, 4, 5))
    once = as_multiset(two_files.rows())
    result = two_files.merge(new(2, 4, 5))
    assert as_multiset(two_files.rows()) == once
    assert counts(result) == {"inserted": 0, "updated": 3, "deleted": 0}


@pytest.mark.parametrize("strategy", REPLACING)
def test_the_whole_row_is_replaced_even_by_nulls(dataset: Dataset, strategy: str) -> None:
    dataset.add("a.parquet", pa.table({"id": [1, 2], "a": ["a", "b"], "b": [1.5, 2.5]}))
    schema = pa.schema([("id", pa.int64()), ("a", pa.string()), ("b", pa.float64())])
    dataset.merge(pa.Table.from_pylist([{"id": 1, "a": None, "b": None}], schema), strategy)
    assert {"id": 1, "a": None, "b": None} in dataset.rows()


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_columns_are_matched_by_name_in_any_order(dataset: Dataset, strategy: str) -> None:
    dataset.add("a.parquet", pa.table({"a": [10, 20], "id": [1, 2], "b": [100, 200]}))
    dataset.merge(pa.table({"b": [222, 333], "a": [22, 33], "id": [2, 3]}), strategy)

    expected = {
        "insert": [(1, 10, 100), (2, 20, 200), (3, 33, 333)],
        "update": [(1, 10, 100), (2, 22, 222)],
        "upsert": [(1, 10, 100), (2, 22, 222), (3, 33, 333)],
        "full_merge": [(2, 22, 222), (3, 33, 333)],
        "deduplicate": [(1, 10, 100), (2, 22, 222), (3, 33, 333)],
    }[strategy]
    assert sorted((r["id"], r["a"], r["b"]) for r in dataset.rows()) == expected


def test_rows_keep_their_order_in_a_rewritten_file(dataset: Dataset) -> None:
    dataset.add("a.parquet", ids(5, 3, 9, 1, 7, 2))
    dataset.merge(new(7, 5), "update")
    assert dataset.column("x") == ["new 5", "old 3", "old 9", "old 1", "new 7", "old 2"]


def test_full_merge_keeps_the_order_of_the_rows_that_stay(dataset: Dataset) -> None:
    dataset.add("a.parquet", ids(5, 3, 9, 1, 7, 2))
    dataset.merge(new(2, 7, 5), "full_merge")
    assert dataset.column("x") == ["new 5", "new 7", "new 2"]


def test_a_strategy_may_be_written_in_capitals(two_files: Dataset) -> None:
    assert two_files.merge(new(5), "UPSERT").strategy == "upsert"


def test_an_unknown_strategy_is_refused_by_name(two_files: Dataset) -> None:
    before = two_files.state()
    with pytest.raises(ValueError, match="upsrt"):
        two_files.merge(new(5), "upsrt")
    assert two_files.state() == before
