"""Keys of the target: NULL matches nothing, and one key may be there several times."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest

from contracts.engine.dataset import REPLACING, STRATEGIES, Dataset, as_multiset, counts, ids, new, totals

NAN = math.nan


def test_a_null_key_of_the_target_matches_nothing(dataset: Dataset) -> None:
    dataset.add("a.parquet", ids(1, None, 2))
    result = dataset.merge(new(2, 3), "upsert")
    assert counts(result) == {"inserted": 1, "updated": 1, "deleted": 0}
    assert as_multiset(dataset.rows()) == as_multiset(
        [{"id": 1, "x": "old 1"}, {"id": None, "x": "old None"}, {"id": 2, "x": "new 2"}, {"id": 3, "x": "new 3"}]
    )


def test_full_merge_removes_a_row_with_a_null_key(dataset: Dataset) -> None:
    dataset.add("a.parquet", ids(1, None, 2))
    dataset.add("b.parquet", ids(None))
    result = dataset.merge(new(2), "full_merge")
    assert counts(result) == {"inserted": 0, "updated": 1, "deleted": 3}
    assert dataset.rows() == [{"id": 2, "x": "new 2"}]


def test_a_null_in_one_of_two_key_columns_matches_nothing(dataset: Dataset) -> None:
    old = pa.table({"a": [1, 1, None], "b": pa.array([None, 2, 2], pa.int64()), "x": ["p", "q", "r"]})
    dataset.add("a.parquet", old)
    result = dataset.merge(pa.table({"a": [1], "b": [2], "x": ["Q"]}), "upsert", ["a", "b"])
    assert counts(result) == {"inserted": 0, "updated": 1, "deleted": 0}
    assert dataset.column("x") == ["p", "Q", "r"]


def test_a_file_of_null_keys_alone(dataset: Dataset) -> None:
    dataset.add("a.parquet", ids(None, None))
    untouched = dataset.state()[str(dataset.root / "a.parquet")]
    result = dataset.merge(new(1), "upsert")
    assert counts(result) == {"inserted": 1, "updated": 0, "deleted": 0}
    assert dataset.state()[str(dataset.root / "a.parquet")] == untouched


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_each_of_several_rows_with_one_key_is_replaced_and_counted(dataset: Dataset, strategy: str) -> None:
    dataset.add("a.parquet", ids(1, 2, 1, 3))
    dataset.add("b.parquet", ids(1, 4))
    result = dataset.merge(new(1, 5), strategy)

    replaced = 3 if strategy in REPLACING else 0
    inserted = 0 if strategy == "update" else 1
    deleted = 3 if strategy == "full_merge" else 0
    assert counts(result) == {"inserted": inserted, "updated": replaced, "deleted": deleted}
    assert totals(result) == (6, 6 + inserted - deleted)
    assert dataset.column("x").count("new 1") == replaced
    assert dataset.column("x").count("old 1") == 3 - replaced
    assert len(dataset.rows()) == 6 + inserted - deleted


@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()])
@pytest.mark.parametrize("statistics", [True, False])
def test_nan_and_minus_zero_are_one_key_each(dataset: Dataset, kind: pa.DataType, statistics: bool) -> None:
    old = pa.table({"id": pa.array([NAN, 0.0, -0.0, 1.5, NAN, None], kind), "x": list("abcdef")})
    dataset.add("a.parquet", old, write_statistics=statistics)
    source = pa.table({"id": pa.array([-0.0, NAN, 2.5], kind), "x": ["zero", "nan", "new"]})
    result = dataset.merge(source, "upsert")
    assert counts(result) == {"inserted": 1, "updated": 4, "deleted": 0}
    assert sorted(dataset.column("x")) == sorted(["nan", "zero", "zero", "d", "nan", "f", "new"])


def test_nan_in_a_file_with_bounds_of_other_numbers(dataset: Dataset) -> None:
    """Writers leave NaN out of the bounds, so a NaN key may be in any file."""
    dataset.add("a.parquet", pa.table({"id": [1.0, 2.0, NAN], "x": ["a", "b", "c"]}))
    dataset.add("b.parquet", pa.table({"id": [7.0, 8.0], "x": ["d", "e"]}))
    result = dataset.merge(pa.table({"id": [NAN], "x": ["C"]}), "update")
    assert result.updated == 1
    assert dataset.column("x") == ["a", "b", "C", "d", "e"]


def test_minus_zero_in_a_file_with_a_bound_of_zero(dataset: Dataset) -> None:
    dataset.add("a.parquet", pa.table({"id": [0.0, 1.0], "x": ["a", "b"]}))
    dataset.add("b.parquet", pa.table({"id": [-1.0, -0.0], "x": ["c", "d"]}))
    result = dataset.merge(pa.table({"id": [-0.0], "x": ["zero"]}), "update")
    assert result.updated == 2


def test_nan_and_zero_within_a_key_of_two_columns(dataset: Dataset) -> None:
    dataset.add("a.parquet", pa.table({"a": [NAN, NAN, 0.0], "b": [1, 2, 1], "x": ["p", "q", "r"]}))
    source = pa.table({"a": [NAN, -0.0, NAN], "b": [2, 1, 3], "x": ["Q", "R", "S"]})
    result = dataset.merge(source, "upsert", ["a", "b"])
    assert counts(result) == {"inserted": 1, "updated": 2, "deleted": 0}
    assert sorted(dataset.column("x")) == ["Q", "R", "S", "p"]


def test_infinities_are_keys_like_any_other(dataset: Dataset) -> None:
    dataset.add("a.parquet", pa.table({"id": [math.inf, -math.inf, 1.0], "x": ["a", "b", "c"]}))
    result = dataset.merge(pa.table({"id": [math.inf, NAN], "x": ["A", "n"]}), "upsert")
    assert counts(result) == {"inserted": 1, "updated": 1, "deleted": 0}
