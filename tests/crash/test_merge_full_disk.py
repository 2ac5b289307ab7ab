"""The disk is full in the middle of a file: bytes that pyarrow and DuckDB write themselves, not only our own steps."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from lockgate.datasets.entry import write_dataset
from support.leftovers import leftovers
from support.merge_limits import write, write_under_limit
from support.merge_outcomes import outcome_of
from support.merge_places import fast_folder
from support.merge_reading import all_rows
from support.merge_sizes import large_rows

# Below, within and beyond the size of the staged files; the first leaves no room even for the name of the owner.
LIMITS = (0, 10, 3_000, 60_000)
ENOUGH = 100_000_000
WHY = ("File too large", "No space left", "No usable temporary directory")


@pytest.fixture
def folder() -> Iterator[Path]:
    with fast_folder() as place:
        write_dataset(large_rows("old"), place / "data")
        yield place / "data"


@pytest.mark.parametrize("what", ["arrow", "duckdb", "append", "overwrite"])
def test_nothing_is_written_and_it_says_so(folder: Path, what: str) -> None:
    old = all_rows(folder)
    for limit in LIMITS:
        outcome = outcome_of(write_under_limit, str(folder), what, limit)
        assert outcome.is_refusal, f"with {limit} bytes: {outcome}"
        assert any(why in outcome.said for why in WHY), f"it does not say why: {outcome.said}"
        assert all_rows(folder) == old, limit
        assert leftovers(folder) == [], limit
    twin = folder.with_name("twin")
    shutil.copytree(folder, twin)
    assert outcome_of(write_under_limit, str(folder), what, ENOUGH).error is None
    write(str(twin), what)
    assert all_rows(folder) == all_rows(twin) != old


def test_the_file_that_was_read_is_not_blamed_for_a_full_disk(folder: Path) -> None:
    """Its owner would restore it from a copy, or move it away, and it is whole."""
    for engine in ("arrow", "duckdb"):
        outcome = outcome_of(write_under_limit, str(folder), engine, 60_000)
        assert outcome.is_ours
        assert "restore" not in outcome.said, outcome.said
