"""`engine="auto"`: which engine it takes, and that it says why."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lockgate

ROWS = pa.table({"id": [1, 2, 3], "x": ["a", "b", "c"]})
CHANGE = pa.table({"id": [2], "x": ["B"]})


def chosen(folder: Path, caplog: pytest.LogCaptureFixture, change: pa.Table = CHANGE) -> tuple[str, str]:
    with caplog.at_level(logging.INFO, "lockgate.merge"):
        result = lockgate.merge(change, folder, strategy="upsert", key_columns="id")
    return result.engine, next(m for m in caplog.messages if m.startswith("auto:"))


def test_duckdb_where_it_can_write_the_files_as_they_are(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    pq.write_table(ROWS, tmp_path / "a.parquet")
    engine, said = chosen(tmp_path, caplog)
    assert engine == "duckdb"
    assert "because" in said
    assert pq.read_table(tmp_path).to_pylist()[1] == {"id": 2, "x": "B"}


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"sorting_columns": [pq.SortingColumn(0)]}, "sort order"),
        ({"bloom_filter_options": {"id": True}}, "Bloom"),
        ({"write_page_index": True}, "page index"),
        ({"write_page_checksum": True}, "checksums"),
        ({"compression": {"id": "zstd", "x": "snappy"}}, "codecs"),
    ],
)
def test_arrow_where_the_layout_would_be_lost(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, options: dict[str, Any], word: str
) -> None:
    pq.write_table(ROWS, tmp_path / "a.parquet", **options)
    engine, said = chosen(tmp_path, caplog)
    assert engine == "arrow"
    assert word in said


def test_arrow_where_a_type_would_be_changed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    odd = pa.array([1.5, 2.5, 3.5], pa.float16())
    pq.write_table(ROWS.append_column("h", odd), tmp_path / "a.parquet")
    engine, said = chosen(tmp_path, caplog, CHANGE.append_column("h", odd.slice(0, 1)))
    assert engine == "arrow"
    assert "halffloat" in said


def test_arrow_for_a_dataset_that_is_made(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    engine, said = chosen(tmp_path / "new", caplog)
    assert engine == "arrow"
    assert "no files" in said


@pytest.mark.parametrize("engine", ["spark", "pandas", ""])
def test_an_engine_that_is_not_there_is_refused(tmp_path: Path, engine: str) -> None:
    with pytest.raises(lockgate.ArgumentError, match="engine") as refused:
        lockgate.merge(ROWS, tmp_path / "new", strategy="upsert", key_columns="id", engine=engine)
    assert refused.value.in_place == "nothing was written"
    assert not (tmp_path / "new").exists()
