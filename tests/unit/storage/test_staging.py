from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from lockgate.errors import DatasetBusy, StorageError
from lockgate.storage.local import LocalStorage
from lockgate.storage.locks import FileLock, is_held
from lockgate.storage.processes import is_alive, process_note
from lockgate.storage.staging import StagingArea, abandon, areas, has_dead_unborn, share, sweep, touch
from support.faults import FaultyStorage, run_in_child, was_killed


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


def killed_child() -> int:
    """The number of a process that is gone."""
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    return child


def grow_old(shared: Path, hours: float) -> None:
    then = time.time() - hours * 3600
    os.utime(shared, (then, then))


def test_a_shared_area_lives_as_long_as_its_keeper(tmp_path: Path) -> None:
    live = share(LocalStorage(), tmp_path, "live", keeper=os.getpid())
    dead = share(LocalStorage(), tmp_path, "dead", keeper=killed_child())
    grow_old(live, hours=100)
    assert has_dead_unborn(tmp_path)
    assert sweep(LocalStorage(), tmp_path) == [dead]
    assert live.is_dir()


@pytest.mark.parametrize(("hours", "swept"), [(23, False), (25, True)])
def test_a_shared_area_of_another_machine_lives_for_a_day_after_it_was_touched(
    tmp_path: Path, hours: float, swept: bool
) -> None:
    shared = share(LocalStorage(), tmp_path, "far", keeper=os.getpid())
    owner = json.loads((shared / "owner").read_bytes())
    owner["keeper"] |= {"pid": killed_child(), "where": "another machine"}
    (shared / "owner").write_text(json.dumps(owner))
    grow_old(shared, hours)
    assert sweep(LocalStorage(), tmp_path) == ([shared] if swept else [])
    if not swept:
        touch(shared)
        assert time.time() - shared.stat().st_mtime < 3600


@pytest.mark.parametrize("keeper", [None, 7, [], {}, {"pid": "x"}, {"pid": 2**80}, {"pid": -1, "where": None}])
def test_a_keeper_that_cannot_be_understood_is_nobody(tmp_path: Path, keeper: object) -> None:
    shared = share(LocalStorage(), tmp_path, "odd", keeper=os.getpid())
    (shared / "owner").write_text(json.dumps({"keeper": keeper}))
    assert sweep(LocalStorage(), tmp_path) == []
    grow_old(shared, hours=25)
    assert sweep(LocalStorage(), tmp_path) == [shared]


def test_a_process_number_that_was_given_away_again_is_another_process() -> None:
    note = process_note(os.getpid())
    assert is_alive(note)
    assert is_alive(note | {"started": "0"}) is False
    assert is_alive(note | {"pid": killed_child()}) is False
    assert is_alive(note | {"where": "elsewhere"}) is None


def test_who_adopts_a_shared_area_owns_it_under_another_name(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "folder"
    shared = share(LocalStorage(), folder, "a", keeper=killed_child())
    (shared / "part").write_text("rows")
    area = StagingArea.adopt(LocalStorage(), folder, "a")
    assert not shared.exists()
    assert (area.path / "part").read_text() == "rows"
    assert sweep(LocalStorage(), folder) == []
    abandon(LocalStorage(), folder, "a")  # not while its owner is at work
    assert area.exists
    area.discard()
    assert not (tmp_path / "new").exists()


def test_an_adopted_area_of_a_dead_owner_can_be_abandoned(tmp_path: Path) -> None:
    share(LocalStorage(), tmp_path / "new", "a", keeper=os.getpid())

    def work() -> None:
        StagingArea.adopt(LocalStorage(), tmp_path / "new", "a")
        os.kill(os.getpid(), 9)

    assert was_killed(run_in_child(work))
    abandon(LocalStorage(), tmp_path / "new", "a")
    assert not (tmp_path / "new").exists()
    abandon(LocalStorage(), tmp_path / "new", "a")


@pytest.mark.parametrize(("at", "step"), [(0, "mkdir"), (2, "mkdir"), (3, "create")])
def test_a_shared_area_that_cannot_be_made_leaves_nothing(tmp_path: Path, at: int, step: str) -> None:
    storage = FaultyStorage(at=at)
    with pytest.raises(StorageError):
        share(storage, tmp_path / "new", "a", keeper=os.getpid())
    assert storage.steps[at][0] == step
    assert list(tmp_path.iterdir()) == []
