"""deduplicate: one row a key of the source stays, by `order_by` or else the last."""

from __future__ import annotations

import pyarrow as pa
import pytest

from contracts.engine.dataset import Dataset, counts, ids
from lockgate.errors import ConfigError


def source() -> pa.Table:
    return pa.table(
        {
            "id": [2, 3, 2, 3, 3, 1],
            "at": [20, 30, 21, None, 29, 10],
            "x": ["2 a", "3 a", "2 b", "3 b", "3 c", "1 a"],
        }
    )


@pytest.fixture
def target(dataset: Dataset) -> Dataset:
    dataset.add("a.parquet", pa.table({"id": [2, 4], "at": [1, 1], "x": ["old 2", "old 4"]}))
    return dataset


def chosen(dataset: Dataset) -> dict[int, str]:
    return {row["id"]: row["x"] for row in dataset.rows()}


def test_the_last_row_stays(target: Dataset) -> None:
    result = target.merge(source(), "deduplicate")
    assert chosen(target) == {1: "1 a", 2: "2 b", 3: "3 c", 4: "old 4"}
    assert counts(result) == {"inserted": 2, "updated": 1, "deleted": 0}
    assert (result.source_count, result.deduplicated) == (6, 3)
    assert (result.target_count_before, result.target_count_after) == (2, 4)


@pytest.mark.parametrize(
    ("order_by", "two", "three"),
    [
        ("at", "2 a", "3 b"),  # NULLs first and last where Spark has them
        ("at ASC NULLS LAST", "2 a", "3 c"),
        (["at DESC"], "2 b", "3 a"),
        (["at DESC NULLS FIRST"], "2 b", "3 b"),
        (["x DESC"], "2 b", "3 c"),
        (["x desc", "at"], "2 b", "3 c"),
    ],
)
def test_the_first_row_in_the_given_order_stays(
    target: Dataset, order_by: str | list[str], two: str, three: str
) -> None:
    target.merge(source(), "deduplicate", order_by=order_by)
    assert chosen(target) == {1: "1 a", 2: two, 3: three, 4: "old 4"}


def test_a_source_without_repeated_keys_is_an_upsert(target: Dataset) -> None:
    result = target.merge(pa.table({"id": [2, 5], "at": [9, 9], "x": ["b", "e"]}), "deduplicate")
    assert counts(result) == {"inserted": 1, "updated": 1, "deleted": 0}
    assert result.deduplicated == 0


def test_the_target_itself_is_not_deduplicated(dataset: Dataset) -> None:
    dataset.add("a.parquet", ids(1, 1, 2, 2))
    result = dataset.merge(pa.table({"id": [1, 1], "x": ["a", "b"]}), "deduplicate")
    assert counts(result) == {"inserted": 0, "updated": 2, "deleted": 0}
    assert dataset.column("x") == ["b", "b", "old 2", "old 2"]


def test_into_no_target_yet(dataset: Dataset) -> None:
    result = dataset.merge(source(), "deduplicate")
    assert counts(result) == {"inserted": 3, "updated": 0, "deleted": 0}
    assert result.deduplicated == 3
    assert chosen(dataset) == {1: "1 a", 2: "2 b", 3: "3 c"}


def test_keys_of_two_columns(dataset: Dataset) -> None:
    rows = pa.table({"a": [1, 1, 1], "b": ["p", "q", "p"], "x": [1, 2, 3]})
    result = dataset.merge(rows, "deduplicate", ["a", "b"])
    assert (result.inserted, result.deduplicated) == (2, 1)
    assert sorted(dataset.column("x")) == [2, 3]


@pytest.mark.parametrize("order_by", ["nowhere DESC", "at SIDEWAYS", ""])
def test_an_order_that_makes_no_sense_is_refused(target: Dataset, order_by: str) -> None:
    before = target.state()
    with pytest.raises(Exception, match=r"order|nowhere|SIDEWAYS"):
        target.merge(source(), "deduplicate", order_by=order_by)
    assert target.state() == before


def test_order_by_without_deduplicate_is_refused(target: Dataset) -> None:
    with pytest.raises(ConfigError, match="order_by"):
        target.merge(ids(1), "upsert", order_by="at")
