"""Files that other programs wrote."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from contracts.engine.dataset import STRATEGIES, Dataset, counts, ids, new

COUNTS = {
    "insert": {"inserted": 1, "updated": 0, "deleted": 0},
    "update": {"inserted": 0, "updated": 1, "deleted": 0},
    "upsert": {"inserted": 1, "updated": 1, "deleted": 0},
    "full_merge": {"inserted": 1, "updated": 1, "deleted": 1},
    "deduplicate": {"inserted": 1, "updated": 1, "deleted": 0},
}


def copied_by_duckdb(dataset: Dataset, connection: Any, query: str, options: str = "") -> None:
    dataset.root.mkdir(exist_ok=True)
    with connection.cursor() as cursor:
        cursor.execute(f"COPY ({query}) TO '{dataset.root}/a.parquet' (FORMAT parquet{options})")


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("options", ["", ", COMPRESSION zstd", ", PARQUET_VERSION V2", ", ROW_GROUP_SIZE 2048"])
def test_a_file_of_duckdb(dataset: Dataset, connection: Any, strategy: str, options: str) -> None:
    copied_by_duckdb(dataset, connection, "SELECT i AS id, 'old ' || i AS x FROM range(1, 3) AS t(i)", options)
    result = dataset.merge(new(2, 3), strategy)
    assert counts(result) == COUNTS[strategy]
    values = {r["id"]: r["x"] for r in dataset.rows()}
    assert values[2] == ("old 2" if strategy == "insert" else "new 2")
    assert (1 in values) == (strategy != "full_merge")


def test_a_file_of_duckdb_with_many_types(dataset: Dataset, connection: Any) -> None:
    copied_by_duckdb(
        dataset,
        connection,
        """SELECT i AS id, i::HUGEINT::VARCHAR AS h, i::DECIMAL(18, 3) AS d, [i, NULL] AS l, {'a': i, 'b': 'x'} AS s,
                  MAP {'k': i} AS m, DATE '2026-01-01' + i::INTEGER AS day, TIMESTAMP '2026-01-01 10:00:00' AS at,
                  TIMESTAMPTZ '2026-01-01 10:00:00+00' AS instant, i::UTINYINT AS u, 'blob'::BLOB AS b,
                  NULL::INTEGER AS nothing, true AS t FROM range(5) AS r(i)""",
    )
    path = dataset.root / "a.parquet"
    before = pq.read_table(path)
    source = before.slice(2, 1).set_column(1, "h", pa.array(["changed"]))
    assert dataset.merge(source, "update").updated == 1
    after = pq.read_table(path)
    assert after.schema.equals(before.schema)
    assert after.drop_columns(["h"]).equals(before.drop_columns(["h"]))
    assert after["h"].to_pylist() == ["0", "1", "changed", "3", "4"]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_file_without_the_arrow_schema(dataset: Dataset, strategy: str) -> None:
    dataset.add("a.parquet", ids(1, 2), store_schema=False)
    assert counts(dataset.merge(new(2, 3), strategy)) == COUNTS[strategy]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_files_without_statistics(dataset: Dataset, strategy: str) -> None:
    dataset.add("a.parquet", ids(1), write_statistics=False)
    dataset.add("b.parquet", ids(2), write_statistics=False, store_schema=False)
    assert counts(dataset.merge(new(2, 3), strategy)) == COUNTS[strategy]


def test_int96_timestamps_as_spark_once_wrote_them(dataset: Dataset) -> None:
    times = [datetime(2026, 1, 1, 10), datetime(1900, 1, 1)]
    table = pa.table({"id": [1, 2], "at": pa.array(times, pa.timestamp("ns"))})
    path = dataset.add("a.parquet", table, use_deprecated_int96_timestamps=True, store_schema=False)
    source = pa.table({"id": [2, 3], "at": pa.array([datetime(2026, 5, 5)] * 2, pa.timestamp("us"))})
    result = dataset.merge(source)
    assert (result.updated, result.inserted) == (1, 1)
    found = {r["id"]: r["at"] for r in dataset.rows()}
    assert found == {1: times[0], 2: datetime(2026, 5, 5), 3: datetime(2026, 5, 5)}
    assert pq.read_metadata(path).row_group(0).column(1).physical_type == "INT96"


def test_int96_far_from_today(dataset: Dataset) -> None:
    """Nanoseconds since 1970 do not reach the year 1, INT96 does."""
    far = pa.array([datetime(1, 1, 1), datetime(9999, 12, 31)], pa.timestamp("us"))
    path = dataset.add(
        "a.parquet", pa.table({"id": [1, 2], "at": far}), use_deprecated_int96_timestamps=True, store_schema=False
    )
    source = pa.table({"id": [2], "at": pa.array([datetime(3000, 1, 1)], pa.timestamp("us"))})
    assert dataset.merge(source, "update").updated == 1
    with pq.ParquetFile(path, coerce_int96_timestamp_unit="us") as file:
        assert file.read()["at"].to_pylist() == [datetime(1, 1, 1), datetime(3000, 1, 1)]


def test_lists_in_the_older_encoding(dataset: Dataset) -> None:
    table = pa.table({"id": [1, 2], "v": [[1, 2], None]})
    path = dataset.add("a.parquet", table, use_compliant_nested_type=False)
    before = pq.read_metadata(path).schema
    assert dataset.merge(pa.table({"id": [2, 3], "v": [[3], []]})).updated == 1
    assert {r["id"]: r["v"] for r in dataset.rows()} == {1: [1, 2], 2: [3], 3: []}
    assert pq.read_metadata(path).schema.equals(before)


def test_a_summary_of_the_files_does_not_outlive_them(dataset: Dataset) -> None:
    """Readers of _metadata would look for row groups where they are no more."""
    path = dataset.add("a.parquet", ids(1, 2))
    footer = pq.read_metadata(path)
    footer.set_file_path("a.parquet")
    pq.write_metadata(ids(1).schema, dataset.root / "_metadata", metadata_collector=[footer])
    dataset.merge(new(2), "update")
    assert not (dataset.root / "_metadata").exists()
