"""The writers' lock: a dead owner's is taken at once, a live owner's is waited for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import lockgate
from lockgate.datasets.entry import merge, write_dataset
from lockgate.errors import DatasetBusy, LockgateError
from support import merge_processes
from support.merge_places import fast_folder
from support.merge_reading import by_file, values
from support.merge_writers import hold_the_lock, rows


@pytest.fixture
def folder() -> Iterator[Path]:
    with fast_folder() as place:
        write_dataset(rows({"a": 1}), place / "data")
        yield place / "data"


@pytest.mark.parametrize("engine", ["arrow", "duckdb"])
def test_a_live_owner_is_waited_for_and_then_said_to_be_busy(folder: Path, engine: str) -> None:
    held, let_go = merge_processes.event(), merge_processes.event()
    owner = merge_processes.start(hold_the_lock, str(folder), held, let_go)
    assert held.wait(30)
    before = by_file(folder)
    with pytest.raises(DatasetBusy, match="another writer has held") as busy:
        merge(
            rows({"a": 2}), folder, strategy="upsert", key_columns="key", engine=engine, lock_timeout=0.2
        )  # fmt: skip
    with pytest.raises(DatasetBusy):
        write_dataset(rows({"b": 2}), folder, lock_timeout=0)
    assert isinstance(busy.value, TimeoutError)
    assert isinstance(busy.value, LockgateError)
    assert "nothing was written" in busy.value.render()
    assert str(folder) in busy.value.render()
    assert by_file(folder) == before
    let_go.set()
    # The owner may take a moment to end; the merge waits for just that.
    merge(rows({"a": 3}), folder, strategy="upsert", key_columns="key", engine=engine, lock_timeout=30)
    assert merge_processes.end_of(owner) == 0
    assert values(folder, "key", "value") == {"a": 3}


def test_the_lock_of_a_killed_owner_is_free_at_once(folder: Path) -> None:
    held, never = merge_processes.event(), merge_processes.event()
    owner = merge_processes.start(hold_the_lock, str(folder), held, never)
    assert held.wait(30)
    owner.kill()
    assert merge_processes.was_killed(merge_processes.end_of(owner))
    merge(rows({"a": 2}), folder, strategy="upsert", key_columns="key", lock_timeout=0)
    assert values(folder, "key", "value") == {"a": 2}


def test_a_dry_run_waits_for_a_writer_too(folder: Path) -> None:
    held, let_go = merge_processes.event(), merge_processes.event()
    owner = merge_processes.start(hold_the_lock, str(folder), held, let_go)
    assert held.wait(30)
    with pytest.raises(DatasetBusy):
        merge(rows({"a": 2}), folder, strategy="upsert", key_columns="key", dry_run=True, lock_timeout=0.1)
    let_go.set()
    assert merge_processes.end_of(owner) == 0


def test_a_lock_is_let_go_by_a_merge_that_fails(folder: Path) -> None:
    with pytest.raises(LockgateError):
        merge(rows({"a": 2}).rename_columns(["key", "other"]), folder, strategy="upsert", key_columns="key")
    merge(rows({"a": 2}), folder, strategy="upsert", key_columns="key", lock_timeout=0)
    assert values(folder, "key", "value") == {"a": 2}


def test_recovery_has_nothing_to_do_while_a_writer_only_holds_the_lock(folder: Path) -> None:
    held, let_go = merge_processes.event(), merge_processes.event()
    owner = merge_processes.start(hold_the_lock, str(folder), held, let_go)
    assert held.wait(30)
    report = lockgate.recover(folder)
    let_go.set()
    assert merge_processes.end_of(owner) == 0
    assert report.finished is None
