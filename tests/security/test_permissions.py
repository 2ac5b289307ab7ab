"""Files and folders that this user may not read or write: said, before anything changes."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest

from lockgate.datasets.entry import merge, write_dataset
from lockgate.targets.journal import JOURNAL_NAME
from support.leftovers import leftovers
from support.merge_outcomes import NOBODY, outcome_as_nobody
from support.merge_reading import by_file


def upsert(folder: str, engine: str, dry_run: bool = False) -> None:
    source = pa.table({"id": [1, 2, 3], "v": ["new"] * 3, "p": ["a", "b", "a"]})
    merge(source, folder, strategy="upsert", key_columns="id", engine=engine, dry_run=dry_run)


def append(folder: str) -> None:
    write_dataset(pa.table({"id": [9], "v": ["new"], "p": ["a"]}), folder)


@pytest.fixture
def dataset(place: Path) -> Path:
    """Two partitions that belong to the user who is to merge."""
    folder = place / "data"
    write_dataset(pa.table({"id": [1, 2], "v": ["old"] * 2, "p": ["a", "b"]}), folder, partition_by="p")
    if os.getuid() == 0:
        for path in (folder, *folder.rglob("*")):
            os.chown(path, NOBODY, NOBODY)
    return folder


@contextmanager
def closed(path: Path, mode: int) -> Iterator[None]:
    """With other permissions for a while; what a test cannot read afterwards it could not check either."""
    was = path.stat().st_mode
    path.chmod(mode)
    try:
        yield
    finally:
        path.chmod(was)


def test_the_dataset_can_be_merged_when_nothing_is_closed(dataset: Path, engine: str) -> None:
    assert outcome_as_nobody(upsert, str(dataset), engine).error is None


def test_a_file_that_may_not_be_read_is_named(dataset: Path, engine: str) -> None:
    before = by_file(dataset)
    file = next((dataset / "p=b").glob("*.parquet"))
    with closed(file, 0):
        outcome = outcome_as_nobody(upsert, str(dataset), engine)
    assert outcome.is_refusal, outcome.said
    assert file.name in outcome.said
    assert "denied" in outcome.said.lower()
    assert by_file(dataset) == before
    assert leftovers(dataset) == []


def test_a_folder_that_may_not_be_read_is_named(dataset: Path, engine: str) -> None:
    """Its rows must not be taken for absent: an upsert would add them a second time."""
    before = by_file(dataset)
    with closed(dataset / "p=b", 0):
        outcome = outcome_as_nobody(upsert, str(dataset), engine)
    assert outcome.is_refusal, outcome.said
    assert "denied" in outcome.said.lower()
    assert "p=b" in outcome.said
    assert by_file(dataset) == before
    assert leftovers(dataset) == []


@pytest.mark.parametrize("mode", [0o555, 0o000])
def test_a_dataset_that_may_not_be_written_is_refused(dataset: Path, engine: str, mode: int) -> None:
    before = by_file(dataset)
    with closed(dataset, mode):
        outcome = outcome_as_nobody(upsert, str(dataset), engine)
        appended = outcome_as_nobody(append, str(dataset))
    for each in (outcome, appended):
        assert each.is_refusal, each.said
        assert "denied" in each.said.lower()
    assert by_file(dataset) == before
    assert leftovers(dataset) == []


def test_a_dataset_that_may_be_read_alone_can_be_asked_what_a_merge_would_do(dataset: Path, engine: str) -> None:
    with closed(dataset, 0o555):
        outcome = outcome_as_nobody(upsert, str(dataset), engine, True)
    assert outcome.error is None, outcome.said


def test_a_partition_that_may_not_be_written_is_found_before_anything_is_decided(dataset: Path, engine: str) -> None:
    before = by_file(dataset)
    with closed(dataset / "p=b", 0o555):
        outcome = outcome_as_nobody(upsert, str(dataset), engine)
        decided = (dataset / JOURNAL_NAME).exists()
    assert not decided, "a change is decided that cannot be carried out"
    assert outcome.is_refusal, outcome.said
    assert "p=b" in outcome.said
    assert by_file(dataset) == before


def test_a_place_where_no_dataset_may_be_made_is_refused(place: Path, engine: str) -> None:
    (place / "closed").mkdir()
    with closed(place / "closed", 0o555):
        outcome = outcome_as_nobody(upsert, str(place / "closed" / "data"), engine)
    assert outcome.is_refusal, outcome.said
    assert list((place / "closed").iterdir()) == []


def test_a_place_that_may_not_be_looked_into_is_refused(place: Path, dataset: Path, engine: str) -> None:
    shutil.move(dataset, place / "inner")
    (place / "closed").mkdir()
    shutil.move(place / "inner", place / "closed" / "data")
    with closed(place / "closed", 0o000):
        outcome = outcome_as_nobody(upsert, str(place / "closed" / "data"), engine)
    assert outcome.is_refusal, outcome.said


def test_a_rewritten_file_keeps_its_permissions(dataset: Path, engine: str) -> None:
    file = next((dataset / "p=a").glob("*.parquet"))
    file.chmod(0o640)
    assert outcome_as_nobody(upsert, str(dataset), engine).error is None
    assert file.stat().st_mode & 0o777 == 0o640
