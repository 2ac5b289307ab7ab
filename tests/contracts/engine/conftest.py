"""The implementations that the suite runs against. An engine joins by one entry here."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import duckdb
import pytest

from contracts.engine.dataset import Dataset

# Set by test_older_duckdb.py for the run that must see another DuckDB than the installed one.
OLDER_DUCKDB = os.environ.get("LOCKGATE_TEST_OLDER_DUCKDB")

IMPLEMENTATIONS: dict[str, Mapping[str, Any]] = {
    "arrow": {"engine": "arrow"},
    "duckdb-merge": {"engine": "duckdb", "use_merge": True},
    "duckdb-union": {"engine": "duckdb", "use_merge": False},
}
SPARK = "spark"
if not OLDER_DUCKDB:
    IMPLEMENTATIONS[SPARK] = {"engine": "spark"}
else:
    IMPLEMENTATIONS = {"duckdb-detected": {"engine": "duckdb", "use_merge": None}}


def pytest_report_header() -> str:
    return f"duckdb {duckdb.__version__}"


@pytest.fixture(scope="module")
def connection() -> Iterator[Any]:
    """One for all tests of a module: opening a database takes longer than a small merge. And a merge must leave it as
    it was: the tests after the first would see what was left behind."""
    if OLDER_DUCKDB:
        assert duckdb.__version__.startswith(f"{OLDER_DUCKDB}."), duckdb.__version__
    with duckdb.connect() as opened:
        yield opened


@pytest.fixture(params=IMPLEMENTATIONS)
def implementation(request: pytest.FixtureRequest, connection: Any) -> Mapping[str, Any]:
    if request.param == SPARK:
        return {**IMPLEMENTATIONS[SPARK], "spark": request.getfixturevalue("spark")}
    return {**IMPLEMENTATIONS[request.param], "connection": connection}


@pytest.fixture
def root() -> Iterator[Path]:
    """A folder that is not there yet, in memory where that can be: a merge syncs every file, and disks are slow."""
    shared = "/dev/shm" if Path("/dev/shm").is_dir() else None
    parent = Path(tempfile.mkdtemp(prefix="lockgate-contract-", dir=shared))
    yield parent / "dataset"
    shutil.rmtree(parent)


@pytest.fixture
def dataset(root: Path, implementation: Mapping[str, Any]) -> Iterator[Dataset]:
    yield Dataset(root, implementation)
    hidden = {p.name for p in root.rglob(".*")} if root.exists() else set()
    assert hidden <= {".lockgate_lock"}, "staging or a journal was left"


# On Spark a merge of two rows takes a second or two. The tests of what a merge means run there one case each, the rest
# in the long run.
_MEANING = ("strategies", "source_keys", "target_keys")


@pytest.hookimpl(tryfirst=True)  # before those marked slow are left out
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    seen = set()
    for item in items:
        parameters = getattr(getattr(item, "callspec", None), "params", {})
        if parameters.get("implementation") == SPARK:
            test = (item.path, getattr(item, "originalname", item.name))
            if test in seen or item.path.stem.removeprefix("test_") not in _MEANING:
                item.add_marker(pytest.mark.slow)
            seen.add(test)
