"""A DuckDB connection that the caller gave is used, and left as it was."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

from lockgate.datasets.entry import merge, write_dataset
from lockgate.errors import LockgateError
from support.merge_places import fast_folder
from support.merge_reading import values
from support.merge_writers import rows


@pytest.fixture
def folder() -> Iterator[Path]:
    with fast_folder() as place:
        write_dataset(rows({"a": 1, "b": 1}), place / "data")
        yield place / "data"


@pytest.fixture
def connection() -> Iterator[Any]:
    with duckdb.connect() as opened:
        opened.execute("CREATE TABLE mine AS SELECT 1 AS one").fetchall()
        yield opened


def test_nothing_of_a_merge_stays_in_it(folder: Path, connection: Any) -> None:
    merge(rows({"a": 2}), folder, strategy="upsert", key_columns="key", engine="duckdb", connection=connection)
    assert connection.sql("SHOW ALL TABLES").fetchall()[0][2] == "mine"
    assert len(connection.sql("SHOW ALL TABLES").fetchall()) == 1
    assert connection.sql("SELECT view_name FROM duckdb_views() WHERE NOT internal").fetchall() == []
    assert values(folder, "key", "value") == {"a": 2, "b": 1}


def test_nothing_of_a_failed_merge_stays_in_it(folder: Path, connection: Any) -> None:
    damaged = next(folder.glob("*.parquet"))
    whole = bytearray(damaged.read_bytes())
    whole[4:40] = b"\xff" * 36  # the first column's pages; the footer is fine
    damaged.write_bytes(whole)
    with pytest.raises(LockgateError):
        merge(rows({"a": 2}), folder, strategy="upsert", key_columns="key", engine="duckdb", connection=connection)
    assert len(connection.sql("SHOW ALL TABLES").fetchall()) == 1


def test_a_result_that_the_caller_is_reading_goes_on(folder: Path, connection: Any) -> None:
    reading = connection.execute("SELECT * FROM range(3)")
    assert reading.fetchone() == (0,)
    merge(rows({"a": 2}), folder, strategy="upsert", key_columns="key", engine="duckdb", connection=connection)
    assert reading.fetchall() == [(1,), (2,)]


def test_a_transaction_that_the_caller_has_open_stays_open(folder: Path, connection: Any) -> None:
    connection.begin()
    connection.execute("INSERT INTO mine VALUES (2)").fetchall()
    merge(rows({"a": 2}), folder, strategy="upsert", key_columns="key", engine="duckdb", connection=connection)
    connection.rollback()
    assert connection.sql("SELECT one FROM mine").fetchall() == [(1,)]
    assert values(folder, "key", "value") == {"a": 2, "b": 1}
