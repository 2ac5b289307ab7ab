from __future__ import annotations

import json

import pytest

from lockgate.errors import DatasetMergeError
from lockgate.merging.counts import MergeStats, compute_merge_stats
from lockgate.merging.strategy import MergeStrategy


def counted(
    strategy: str, before: int, inserted: int, updated: int, deleted: int, after: int | None = None
) -> MergeStats:
    return compute_merge_stats(
        strategy=strategy,
        target_before=before,
        target_after=before + inserted - deleted if after is None else after,
        inserted_rows=inserted,
        updated_rows=updated,
        deleted_rows=deleted,
    )


def test_stats_are_items_and_attributes() -> None:
    stats = counted("full_merge", 5, 2, 3, 2)
    assert stats == {"inserted": 2, "updated": 3, "deleted": 2, "total": 5}
    assert (stats.inserted, stats.updated, stats.deleted, stats.total) == (2, 3, 2, 5)
    assert json.loads(json.dumps(stats)) == stats


@pytest.mark.parametrize("strategy", ["upsert", "insert"])
def test_empty_target_upsert_insert_all_source_rows_are_inserted_deleted_is_0(strategy: str) -> None:
    assert counted(strategy, 0, 4, 0, 0) == {"inserted": 4, "updated": 0, "deleted": 0, "total": 4}


def test_empty_target_update_is_a_no_op_with_zero_updated_rows() -> None:
    assert counted("update", 0, 0, 0, 0) == {"inserted": 0, "updated": 0, "deleted": 0, "total": 0}


def test_full_merge_with_empty_source_deleted_equals_the_original_target_row_count() -> None:
    assert counted("full_merge", 7, 0, 0, 7) == {"inserted": 0, "updated": 0, "deleted": 7, "total": 0}


@pytest.mark.parametrize("strategy", MergeStrategy)
def test_a_strategy_may_be_given_as_itself_or_by_name(strategy: MergeStrategy) -> None:
    assert counted(strategy, 1, 0, 0, 0) == counted(strategy.value.upper(), 1, 0, 0, 0)


@pytest.mark.parametrize(
    ("strategy", "before", "inserted", "updated", "deleted", "after", "said"),
    [
        ("upsert", 3, 2, 1, 0, 4, "rows after is not"),
        ("full_merge", 3, 0, 0, 1, 3, "rows after is not"),
        ("insert", 3, 1, 1, 0, None, "insert updates nothing"),
        ("insert", 3, 1, 0, 1, None, "insert deletes nothing"),
        ("update", 3, 1, 1, 0, None, "update inserts nothing"),
        ("update", 3, 0, 1, 1, None, "update deletes nothing"),
        ("upsert", 3, 0, 1, 1, None, "upsert deletes nothing"),
        ("deduplicate", 3, 0, 1, 1, None, "deduplicate deletes nothing"),
        ("upsert", 3, -1, 0, 0, None, "inserted is negative"),
        ("upsert", 3, 0, -1, 0, None, "updated is negative"),
        ("full_merge", 3, 0, 0, -1, None, "deleted is negative"),
        ("full_merge", -3, 3, 0, 0, None, "rows before is negative"),
        ("full_merge", 3, 0, 2, 2, None, "more rows were updated and deleted"),
    ],
)
def test_counts_that_cannot_be_true_are_refused(
    strategy: str, before: int, inserted: int, updated: int, deleted: int, after: int | None, said: str
) -> None:
    with pytest.raises(DatasetMergeError, match=said) as caught:
        counted(strategy, before, inserted, updated, deleted, after)
    assert caught.value.strategy == strategy
    assert caught.value.in_place == "nothing was written"


def test_an_unknown_strategy_is_a_value_error() -> None:
    with pytest.raises(ValueError, match="no merge strategy"):
        counted("replace", 0, 0, 0, 0)
