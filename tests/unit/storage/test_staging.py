from __future__ import annotations

import os
from pathlib import Path

import pytest

from lockgate.errors import DatasetBusy
from lockgate.storage.local import LocalStorage
from lockgate.storage.locks import FileLock, is_held
from lockgate.storage.staging import StagingArea, areas, sweep
from support.faults import run_in_child, was_killed


def killed_with_an_area(folder: Path, *, sealed: bool = False) -> None:
    def work() -> None:
        area = StagingArea.create(LocalStorage(), folder, "dead")
        if sealed:
            area.seal()
        os.kill(os.getpid(), 9)

    assert was_killed(run_in_child(work))


def test_an_area_of_a_live_owner_is_not_swept(tmp_path: Path) -> None:
    area = StagingArea.create(LocalStorage(), tmp_path, "live")
    assert sweep(LocalStorage(), tmp_path) == []
    assert area.exists
    area.discard()
    assert list(tmp_path.iterdir()) == []


def test_an_area_of_a_dead_owner_is_swept_with_the_folders_made_for_it(tmp_path: Path) -> None:
    killed_with_an_area(tmp_path / "new" / "folder")
    assert len(list(areas(tmp_path / "new" / "folder"))) == 1
    assert len(sweep(LocalStorage(), tmp_path / "new" / "folder")) == 1
    assert not (tmp_path / "new").exists()


def test_a_sealed_area_is_kept_whoever_died(tmp_path: Path) -> None:
    killed_with_an_area(tmp_path, sealed=True)
    assert sweep(LocalStorage(), tmp_path) == []
    assert len(list(areas(tmp_path))) == 1


def test_discarding_keeps_a_folder_that_others_use(tmp_path: Path) -> None:
    area = StagingArea.create(LocalStorage(), tmp_path / "out", "a")
    (tmp_path / "out" / "other.txt").write_text("x")
    area.discard()
    assert (tmp_path / "out" / "other.txt").exists()


def test_a_lock_dies_with_its_process(tmp_path: Path) -> None:
    path = tmp_path / "lock"

    def work() -> None:
        assert FileLock(path).try_acquire()
        os.kill(os.getpid(), 9)

    assert was_killed(run_in_child(work))
    assert not is_held(path)
    with FileLock(path) as lock:
        assert lock.try_acquire()
        assert is_held(path)


def test_a_live_lock_is_waited_for_and_then_named(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with FileLock(path) as held:
        held.acquire(0)
        times = iter([0.0, 1.0, 5.0])
        with pytest.raises(DatasetBusy, match="lock") as caught:
            FileLock(path, clock=lambda: next(times)).acquire(3)
        assert isinstance(caught.value, TimeoutError)
        assert "nothing was written" in caught.value.render()
    FileLock(path).acquire(0)
