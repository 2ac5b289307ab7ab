"""The same suite on a DuckDB that has no MERGE yet, in a process of its own: one process loads one DuckDB."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from contracts.engine.conftest import OLDER_DUCKDB
from contracts.engine.dataset import Dataset, counts, ids, new
from lockgate import DatasetMergeError

VERSION = "1.3"
PROJECT = Path(__file__).parents[3]
INSTALLED = Path(sys.prefix) / "older" / f"duckdb-{VERSION}"  # by make


@pytest.mark.skipif(OLDER_DUCKDB is not None, reason="this is the other process")
def test_the_suite_on_a_duckdb_without_merge() -> None:
    assert (INSTALLED / "duckdb").is_dir(), "make installs it"
    path = os.pathsep.join([str(INSTALLED), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "tests/contracts/engine", "--tb=short", "-p", "no:cacheprovider", "-v"],
        cwd=PROJECT,
        env=os.environ | {"PYTHONPATH": path, "LOCKGATE_TEST_OLDER_DUCKDB": VERSION},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-10_000:] + done.stderr[-2_000:]
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed is not None, done.stdout[-2_000:]
    assert int(passed[1]) > 50
    assert f"duckdb {VERSION}" in done.stdout, "said by the header of that run"


@pytest.mark.skipif(OLDER_DUCKDB is None, reason="this DuckDB has MERGE")
def test_merge_on_request_is_an_error_that_says_what_is_needed(root: Path, dataset: Dataset) -> None:
    dataset.add("a.parquet", ids(1, 2))
    before = dataset.contents()
    with pytest.raises(DatasetMergeError, match=r"DuckDB MERGE requested but not available\.") as refused:
        dataset.merge(new(2), use_merge=True)
    assert re.search(r"Required version: >= 1\.4\.0, Current: 1\.3\.\d", refused.value.message)
    assert "use_merge=False" in refused.value.render()
    assert Dataset(root).contents() == before


@pytest.mark.skipif(OLDER_DUCKDB is None, reason="this DuckDB has MERGE")
def test_the_union_form_is_chosen_by_itself(dataset: Dataset, caplog: pytest.LogCaptureFixture) -> None:
    dataset.add("a.parquet", ids(1, 2))
    with caplog.at_level("INFO", logger="lockgate.merge"):
        result = dataset.merge(new(2, 3), use_merge=None)
    assert counts(result) == {"inserted": 1, "updated": 1, "deleted": 0}
    assert "Using UNION ALL fallback for merge operation (DuckDB < 1.4.0 or MERGE unavailable)" in caplog.messages
