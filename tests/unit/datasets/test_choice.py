"""`engine="auto"`: which engine it takes, and that it says why."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lockgate
from lockgate.datasets import by_spark

ROWS = pa.table({"id": [1, 2, 3], "x": ["a", "b", "c"]})
CHANGE = pa.table({"id": [2], "x": ["B"]})


def chosen(folder: Path, caplog: pytest.LogCaptureFixture, **options: Any) -> tuple[str, str]:
    with caplog.at_level(logging.INFO, "lockgate.merge"):
        result = lockgate.merge(CHANGE, folder, strategy="upsert", key_columns="id", **options)
    return result.engine, next(m for m in caplog.messages if m.startswith("auto:"))


def test_arrow_because_it_is_faster(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    pq.write_table(ROWS, tmp_path / "a.parquet")
    engine, said = chosen(tmp_path, caplog)
    assert engine == "arrow"
    assert said == "auto: the Arrow engine, because it takes less time and memory than DuckDB for the same result"
    assert pq.read_table(tmp_path).to_pylist()[1] == {"id": 2, "x": "B"}


def test_duckdb_where_an_option_of_it_is_given(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    pq.write_table(ROWS, tmp_path / "a.parquet")
    assert chosen(tmp_path, caplog, use_merge=False) == (
        "duckdb",
        "auto: the DuckDB engine, because use_merge is an option of it",
    )


def test_duckdb_where_a_connection_is_given(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    pq.write_table(ROWS, tmp_path / "a.parquet")
    with duckdb.connect() as connection:
        engine, said = chosen(tmp_path, caplog, connection=connection)
    assert engine == "duckdb"
    assert said == "auto: the DuckDB engine, because a connection to it was given"


@pytest.mark.parametrize("engine", ["Spark", "pandas", ""])
def test_an_engine_that_is_not_there_is_refused(tmp_path: Path, engine: str) -> None:
    with pytest.raises(lockgate.ArgumentError, match="engine") as refused:
        lockgate.merge(ROWS, tmp_path / "new", strategy="upsert", key_columns="id", engine=engine)
    assert refused.value.in_place == "nothing was written"
    assert not (tmp_path / "new").exists()


def test_spark_needs_a_session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(by_spark, "active_session", lambda: None)
    with pytest.raises(lockgate.ArgumentError, match="needs a Spark session") as refused:
        lockgate.merge(ROWS, tmp_path / "new", strategy="upsert", key_columns="id", engine="spark")
    assert refused.value.in_place == "nothing was written"
    assert not (tmp_path / "new").exists()
