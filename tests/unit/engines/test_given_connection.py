"""A connection that the caller has set up in a way of its own: a merge means the same on it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lockgate import DatasetMergeError, DuckDBDatasetIO

SETTINGS = [
    "SET preserve_insertion_order = false",
    "SET default_collation = 'NOCASE'",
    "SET default_null_order = 'NULLS_FIRST'",
    "SET default_order = 'DESC'",
    "SET threads = 1",
    "SET memory_limit = '64MB'",
    "SET TimeZone = 'Pacific/Kiritimati'",
    "SET Calendar = 'japanese'",
    "SET binary_as_string = true",
    "SET integer_division = true",
    "SET old_implicit_casting = true",
    "SET arrow_large_buffer_size = true",
    "SET produce_arrow_string_view = true",
    "SET arrow_lossless_conversion = true",
    "SET enable_object_cache = true",
    "SET disabled_optimizers = 'filter_pushdown'",
    "SET max_expression_depth = 50",
    "SET schema = 'main'",
    "CREATE TABLE target AS SELECT 'mine' AS id",
    "CREATE MACRO read_parquet(a) AS 1",
    "PRAGMA disable_optimizer",
    "PRAGMA enable_progress_bar",
    "SET VARIABLE paths = 'elsewhere'",
]


@pytest.fixture
def connection() -> Iterator[Any]:
    with duckdb.connect() as opened:
        yield opened


def rows(path: Path) -> list[dict[str, Any]]:
    return pq.ParquetFile(path).read().to_pylist()


@pytest.mark.parametrize("use_merge", [True, False])
@pytest.mark.parametrize("setting", SETTINGS)
def test_its_settings_do_not_change_what_a_merge_means(
    connection: Any, tmp_path: Path, setting: str, use_merge: bool
) -> None:
    try:
        connection.execute(setting)
    except duckdb.Error as error:
        pytest.skip(f"this DuckDB does not take it: {error}")
    keys = ["a", "A", "é", "b", "e\u0301"] * 600
    at = [datetime(2026, 1, 1, hour % 24, tzinfo=UTC) for hour in range(3000)]
    table = pa.table({"id": keys, "n": range(3000), "at": at, "b": [b"\xff\x00"] * 3000, "x": ["old"] * 3000})
    pq.write_table(table, tmp_path / "a.parquet")
    source = table.slice(1, 1).set_column(4, "x", pa.array(["new"]))

    result = DuckDBDatasetIO(connection).merge(source, tmp_path, "update", ["id", "at"], use_merge=use_merge)

    # the row ("A", 1 o'clock) comes again every 120 rows
    changed = [i for i in range(3000) if keys[i] == "A" and at[i].hour == 1]
    assert result.updated == len(changed)
    fresh = rows(tmp_path / "a.parquet")
    assert [i for i, row in enumerate(fresh) if row["x"] == "new"] == changed
    kept = [i for i in range(3000) if i not in changed]
    old = table.to_pylist()
    assert [fresh[i] for i in kept] == [old[i] for i in kept], "in the order they had"


def test_the_order_of_rows_does_not_depend_on_its_settings(connection: Any, tmp_path: Path) -> None:
    connection.execute("SET preserve_insertion_order = false")
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"id": range(60_000), "x": ["old"] * 60_000}), path, row_group_size=2048)
    DuckDBDatasetIO(connection).merge(pa.table({"id": [5], "x": ["new"]}), tmp_path, "update", ["id"])
    assert pq.ParquetFile(path).read()["id"].to_pylist() == list(range(60_000))


def test_its_settings_are_as_they_were(connection: Any, tmp_path: Path) -> None:
    query = "SELECT name, value FROM duckdb_settings() ORDER BY name"
    before = connection.execute(query).fetchall()
    pq.write_table(pa.table({"id": [1, 2], "x": ["a", "b"]}), tmp_path / "a.parquet")
    DuckDBDatasetIO(connection).merge(pa.table({"id": [2], "x": ["B"]}), tmp_path, "upsert", ["id"])
    assert connection.execute(query).fetchall() == before


def test_it_stays_open(connection: Any, tmp_path: Path) -> None:
    io = DuckDBDatasetIO(connection)
    for i in range(3):
        assert io.merge(pa.table({"id": [i]}), tmp_path, "upsert", ["id"]).inserted == 1
    assert connection.execute("SELECT 42").fetchall() == [(42,)]


def test_one_of_a_database_that_may_only_be_read(tmp_path: Path) -> None:
    duckdb.connect(str(tmp_path / "mine.db")).close()
    pq.write_table(pa.table({"id": [1, 2], "x": ["a", "b"]}), tmp_path / "a.parquet")
    with duckdb.connect(str(tmp_path / "mine.db"), read_only=True) as connection:
        result = DuckDBDatasetIO(connection).merge(pa.table({"id": [2], "x": ["B"]}), tmp_path, "upsert", ["id"])
    assert result.updated == 1


def test_one_that_is_closed_is_an_error_that_says_so(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"id": [1, 2], "x": ["a", "b"]}), path)
    before = path.read_bytes()
    connection = duckdb.connect()
    connection.close()
    with pytest.raises(DatasetMergeError, match="closed"):
        DuckDBDatasetIO(connection).merge(pa.table({"id": [2], "x": ["B"]}), tmp_path, "upsert", ["id"])
    assert path.read_bytes() == before


def test_one_that_may_not_reach_files_is_an_error_or_does_without(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"id": [1, 2], "x": ["a", "b"]}), path)
    before = path.read_bytes()
    with duckdb.connect(config={"enable_external_access": False}) as connection:
        with pytest.raises(DatasetMergeError, match="MERGE operation failed"):
            DuckDBDatasetIO(connection).merge(pa.table({"id": [2], "x": ["B"]}), tmp_path, "upsert", ["id"])
    assert path.read_bytes() == before
    assert not list(tmp_path.glob(".staging*"))


def test_temporary_folders_are_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Links and spilled rows live in folders of their own while a merge runs."""
    import tempfile

    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    pq.write_table(pa.table({"id": [1, 2], "x": ["a", "b"]}), tmp_path / "a.parquet")
    (tmp_path / "dataset").mkdir()
    (tmp_path / "a.parquet").rename(tmp_path / "dataset" / "a.parquet")
    DuckDBDatasetIO().merge(pa.table({"id": [2], "x": ["B"]}), tmp_path / "dataset", "upsert", ["id"])
    assert list(scratch.iterdir()) == []
