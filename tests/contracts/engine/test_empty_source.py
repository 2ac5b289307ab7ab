"""A source without rows."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from contracts.engine.dataset import STRATEGIES, Dataset, counts, ids, new, totals

KEEPING = [s for s in STRATEGIES if s != "full_merge"]


@pytest.mark.parametrize("strategy", KEEPING)
def test_nothing_is_touched(dataset: Dataset, strategy: str) -> None:
    file = dataset.add("a.parquet", ids(1, 2))
    untouched = dataset.state()[str(file)]
    result = dataset.merge(new(), strategy)
    assert counts(result) == {"inserted": 0, "updated": 0, "deleted": 0}
    assert totals(result) == (2, 2)
    assert result.source_count == 0
    assert result.preserved_files == [str(file)]
    assert dataset.state()[str(file)] == untouched
    assert dataset.files() == [file]


def test_full_merge_empties_the_target_and_keeps_its_schema(dataset: Dataset) -> None:
    dataset.add("a.parquet", ids(1, 2))
    dataset.add("b.parquet", ids(3))
    result = dataset.merge(new(), "full_merge")
    assert counts(result) == {"inserted": 0, "updated": 0, "deleted": 3}
    assert totals(result) == (3, 0)
    assert dataset.rows() == []
    assert pq.read_table(dataset.root).schema.names == ["id", "x"]
    assert pq.read_table(dataset.root).num_rows == 0


def test_an_emptied_target_takes_rows_again(dataset: Dataset) -> None:
    dataset.add("a.parquet", ids(1, 2))
    dataset.merge(new(), "full_merge")
    assert totals(dataset.merge(new(), "full_merge")) == (0, 0)
    assert totals(dataset.merge(new(7), "upsert")) == (0, 1)
    assert dataset.column("id") == [7]


def test_full_merge_empties_a_partitioned_target(dataset: Dataset) -> None:
    dataset.add("day=1/a.parquet", ids(1, 2))
    dataset.add("day=2/b.parquet", ids(3))
    source = new().append_column("day", pa.array([], pa.int64()))
    result = dataset.merge(source, "full_merge")
    assert counts(result) == {"inserted": 0, "updated": 0, "deleted": 3}
    assert dataset.rows() == []
    again = dataset.merge(new(9).append_column("day", pa.array([2])), "upsert")
    assert totals(again) == (0, 1)
    assert [(r["id"], r["day"]) for r in dataset.rows()] == [(9, "2")]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_source_of_chunks_without_rows(dataset: Dataset, strategy: str) -> None:
    dataset.add("a.parquet", ids(1))
    empty = pa.table({"id": pa.chunked_array([], pa.int64()), "x": pa.chunked_array([], pa.string())})
    assert dataset.merge(empty, strategy).source_count == 0
