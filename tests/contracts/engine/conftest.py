"""The implementations that the suite runs against. An engine joins by one entry here."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import pytest

from contracts.engine.dataset import Dataset
from contracts.engine.delta_dataset import DeltaDataset
from support.spark_frames import as_frame

# Set by test_older_duckdb.py for the run that must see another DuckDB than the installed one.
OLDER_DUCKDB = os.environ.get("LOCKGATE_TEST_OLDER_DUCKDB")

IMPLEMENTATIONS: dict[str, Mapping[str, Any]] = {
    "arrow": {"engine": "arrow"},
    "duckdb-merge": {"engine": "duckdb", "use_merge": True},
    "duckdb-union": {"engine": "duckdb", "use_merge": False},
}
ON_DELTA = {"arrow-on-delta": "arrow", "duckdb-on-delta": "duckdb-merge"}  # a Delta table in place of a folder
SPREAD, JOINED = "spark-spread", "spark-joined"  # a source that fits one machine's memory, and one that may not
if not OLDER_DUCKDB:
    IMPLEMENTATIONS |= {SPREAD: {"engine": "spark"}, JOINED: {"engine": "spark"}}
    IMPLEMENTATIONS |= {name: IMPLEMENTATIONS[engine] for name, engine in ON_DELTA.items()}
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
def implementation(
    request: pytest.FixtureRequest, connection: Any, monkeypatch: pytest.MonkeyPatch
) -> Mapping[str, Any]:
    if request.param in (SPREAD, JOINED):
        if request.param == JOINED:
            monkeypatch.setattr("lockgate.engines.spark_computed.ROWS_BROUGHT", -1)
        return {**IMPLEMENTATIONS[request.param], "spark": request.getfixturevalue("spark")}
    return {**IMPLEMENTATIONS[request.param], "connection": connection}


@pytest.fixture
def root() -> Iterator[Path]:
    """A folder that is not there yet, in memory where that can be: a merge syncs every file, and disks are slow."""
    shared = "/dev/shm" if Path("/dev/shm").is_dir() else None
    parent = Path(tempfile.mkdtemp(prefix="lockgate-contract-", dir=shared))
    yield parent / "dataset"
    shutil.rmtree(parent)


@pytest.fixture
def dataset(root: Path, implementation: Mapping[str, Any], request: pytest.FixtureRequest) -> Iterator[Dataset]:
    name = request.node.callspec.params["implementation"]
    if name in ON_DELTA:
        table = DeltaDataset(root, implementation)
        yield table
        table.log.close()
        assert not any(root.rglob(".staging*")), "staging was left"
        return
    joined = name == JOINED
    yield Dataset(root, implementation, partial(as_frame, implementation["spark"]) if joined else None)
    hidden = {p.name for p in root.rglob(".*")} if root.exists() else set()
    assert hidden <= {".lockgate_lock"}, "staging or a journal was left"


# On Spark a merge of two rows takes a second or two. The tests of what a merge means run there one case each, the rest
# in the long run.
_MEANING = ("strategies", "source_keys", "target_keys")


# A Delta table has types, names of files and partitions of its own (contracts/delta). What a merge means is the same.
_MEANING_ON_DELTA = (*_MEANING, "deduplicate", "empty_source", "skip_unchanged", "no_target_yet")
_OF_FOLDERS = (
    "partitioned", "only_matched", "null_keys_alone", "nothing_is_touched", "keeps_its_schema", "file_is_not_touched",
    "a_row_that_moves", "what_is_equal", "still_removes_others", "hidden_files",
)  # fmt: skip


def _is_of_delta(item: pytest.Item) -> bool:
    name = item.path.stem.removeprefix("test_")
    return name in _MEANING_ON_DELTA and not any(word in item.name for word in _OF_FOLDERS)


@pytest.hookimpl(tryfirst=True)  # before those marked slow are left out
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items[:] = [
        item
        for item in items
        if getattr(getattr(item, "callspec", None), "params", {}).get("implementation") not in ON_DELTA
        or _is_of_delta(item)
    ]
    seen = set()
    for item in items:
        parameters = getattr(getattr(item, "callspec", None), "params", {})
        way = parameters.get("implementation")
        if way in (SPREAD, JOINED):
            test = (way, item.path, getattr(item, "originalname", item.name))
            if test in seen or item.path.stem.removeprefix("test_") not in _MEANING:
                item.add_marker(pytest.mark.slow)
            seen.add(test)
