"""dry_run: the same numbers and files as the merge itself, and nothing on disk is different."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from contracts.engine.dataset import STRATEGIES, Dataset, ids, new
from lockgate.errors import DuplicateKeyError, NullKeyError, PartitionMoveError, SchemaMismatchError

OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "skip_unchanged": {"skip_unchanged": True},
    "moves": {"allow_partition_moves": True},
}


def source(days: list[str]) -> pa.Table:
    return pa.concat_tables([new(2), ids(3), new(7)]).append_column("day", pa.array(days))


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_it_says_what_the_merge_does_and_does_nothing(dataset: Dataset, strategy: str, options: str) -> None:
    dataset.add("day=mon/a.parquet", ids(1, 2))
    dataset.add("day=tue/b.parquet", ids(3, 4))
    dataset.add("day=wed/c.parquet", ids(5))
    rows = source(["tue" if options == "moves" else "mon", "tue", "thu"])
    before = dataset.state()

    said = dataset.merge(rows, strategy, dry_run=True, **OPTIONS[options])

    assert dataset.state() == before, "names, bytes, times, inodes: all as it was, and no lock was made"
    done = dataset.merge(rows, strategy, **OPTIONS[options])
    assert said.dry_run
    assert not done.dry_run
    for field in (
        "strategy", "source_count", "target_count_before", "target_count_after", "inserted", "updated", "deleted",
        "deduplicated", "rewritten_files", "preserved_files", "removed_files", "engine",
    ):  # fmt: skip
        assert getattr(said, field) == getattr(done, field), field


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_of_a_target_that_is_not_there(dataset: Dataset, strategy: str) -> None:
    result = dataset.merge(new(1, 2), strategy, dry_run=True)
    assert result.inserted == (0 if strategy == "update" else 2)
    assert result.target_count_after == result.inserted
    assert not dataset.root.exists()


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_of_an_empty_source(dataset: Dataset, strategy: str) -> None:
    dataset.add("a.parquet", ids(1, 2))
    before = dataset.state()
    result = dataset.merge(new(), strategy, dry_run=True)
    assert result.deleted == (2 if strategy == "full_merge" else 0)
    assert dataset.state() == before


def test_mistakes_are_found_as_in_the_merge(dataset: Dataset) -> None:
    dataset.add("day=mon/a.parquet", ids(1, 2))
    before = dataset.state()
    moving = new(2).append_column("day", pa.array(["tue"]))
    for table, error in [
        (new(1, 1).append_column("day", pa.array(["mon", "mon"])), DuplicateKeyError),
        (new(None).append_column("day", pa.array(["mon"])), NullKeyError),
        (new(1), SchemaMismatchError),
        (moving, PartitionMoveError),
    ]:
        with pytest.raises(error):
            dataset.merge(table, dry_run=True)
    assert dataset.state() == before


def test_deduplicate_counts_what_it_would_drop(dataset: Dataset) -> None:
    dataset.add("a.parquet", ids(1))
    result = dataset.merge(new(1, 1, 2), "deduplicate", dry_run=True)
    assert (result.inserted, result.updated, result.deduplicated) == (1, 1, 1)


def test_a_dry_run_after_a_merge_leaves_the_lock_as_it_is(dataset: Dataset) -> None:
    dataset.merge(new(1))
    before = dataset.state()
    assert dataset.merge(new(1, 2), dry_run=True).inserted == 1
    assert dataset.state() == before
