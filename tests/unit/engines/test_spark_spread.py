"""Merges by Spark of a source that fits one machine: what is sent to tasks, and when Spark joins instead."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from contracts.engine.dataset import Dataset, as_multiset, counts, ids, new
from lockgate.engines import spark_computed, spark_spread, spark_tasks
from lockgate.engines.arrow_find import SortedKeys
from lockgate.engines.packing import unpacked
from lockgate.merging.protocol import DataFile
from lockgate.merging.table_source import Matches, SourceRows

SPREAD, JOINED = "Spark's tasks get what they need", "Spark joins the"


@pytest.fixture
def dataset(tmp_path: Path, spark: Any) -> Dataset:
    made = Dataset(tmp_path / "data", {"engine": "spark", "spark": spark})
    made.add("a.parquet", ids(1, 2, 3), row_group_size=2)
    made.add("b.parquet", ids(4, 5, 2))
    made.add("c.parquet", ids(7, 8))
    return made


def merged_once(dataset: Dataset, source: Any) -> None:
    result = dataset.merge(source, "upsert")
    assert counts(result) == {"inserted": 1, "updated": 4, "deleted": 0}
    expected = [*ids(1, 3, 4, 7).to_pylist(), *new(2, 2, 5, 8, 9).to_pylist()]
    assert as_multiset(dataset.rows()) == as_multiset(expected)


def test_keys_are_sent_in_parts(dataset: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_spread, "_BYTES_OF_KEYS", 17)  # one key and its row number
    merged_once(dataset, new(2, 5, 8, 9))


def test_rows_are_sent_in_loads(dataset: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_tasks, "_LEAST_ROWS_A_TASK", 1)
    monkeypatch.setattr(spark_spread, "_BYTES_SENT", 1)
    sent: list[int] = []
    loads = spark_spread._loads
    monkeypatch.setattr(spark_spread, "_loads", lambda tasks: (sent.append(len(load)) or load for load in loads(tasks)))
    merged_once(dataset, new(2, 5, 8, 9))
    assert sent == [1, 1, 1]


def test_a_source_row_is_sent_once_however_often_its_key_is_there() -> None:
    found = Matches(
        DataFile("a.parquet", "/a.parquet", 4, pa.schema([])), pa.array([0, 1, 3]), pa.array([5, 2, 5]), leaving=None
    )
    order = spark_spread._order(7, found, SourceRows(pa.table({"id": pa.arange(0, 10)}), ("id",)))
    assert order["file"] == 7
    assert unpacked(order["rows"]).to_pydict() == {"id": [5, 2]}
    assert unpacked(order["matches"]).to_pydict() == {"row": [0, 1, 3], "source_row": [0, 1, 0]}


def test_parts_of_sorted_keys_are_all_of_them() -> None:
    keys = SortedKeys.of(SourceRows(pa.table({"id": ["c", "a", "d", "b"], "n": [1, 2, 3, 4]}), ("id", "n")))
    parts = list(keys.in_parts(60))
    assert len(parts) > 1
    assert pa.concat_arrays([p.order for p in parts]).to_pylist() == [1, 3, 0, 2]
    assert pa.concat_arrays([p.columns[0] for p in parts]).to_pylist() == ["a", "b", "c", "d"]
    assert next(keys.in_parts(10**9)).order.equals(keys.order)


@pytest.mark.parametrize("dry_run", [False, True])
@pytest.mark.parametrize(("limit", "most", "said"), [
    ("ROWS_BROUGHT", 4, SPREAD), ("ROWS_BROUGHT", 3, JOINED), ("BYTES_BROUGHT", 10, JOINED),
    ("BYTES_BROUGHT", 10_000, SPREAD),
])  # fmt: skip
def test_what_does_not_fit_is_joined(
    dataset: Dataset, spark: Any, monkeypatch: pytest.MonkeyPatch, caplog: Any, limit: str, most: int, said: str,
    dry_run: bool,
) -> None:  # fmt: skip
    monkeypatch.setattr(spark_computed, limit, most)
    before = dataset.contents()
    with caplog.at_level(logging.INFO, "lockgate.merge"):
        result = dataset.merge(spark.createDataFrame(new(2, 5, 8, 9)), "upsert", dry_run=dry_run)
    assert said in caplog.text
    assert counts(result) == {"inserted": 1, "updated": 4, "deleted": 0}
    assert len(result.rewritten_files) == 3
    assert (dataset.contents() == before) == dry_run


def test_the_last_of_equal_rows_stays_in_a_dry_run_too(dataset: Dataset, spark: Any) -> None:
    """Rows that come to the driver keep the order in which Spark has them."""
    rows = [(2, "first"), *((100 + i, "other") for i in range(5_000)), (2, "old 2")]  # the last equals the row in place
    source = spark.createDataFrame(rows, "id long, x string").coalesce(1)
    planned, done = (
        dataset.merge(source, "deduplicate", skip_unchanged=True, dry_run=dry_run) for dry_run in (True, False)
    )
    assert counts(planned) == counts(done) == {"inserted": 5_000, "updated": 0, "deleted": 0}
