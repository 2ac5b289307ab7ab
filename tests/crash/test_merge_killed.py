"""kill -9 before and after every step of a merge or a write, then a recovery or the next merge."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import lockgate
from lockgate.datasets.entry import merge
from lockgate.targets.journal import JOURNAL_NAME
from support import merge_processes
from support.faults import Fault
from support.leftovers import leftovers
from support.merge_faults import NumberedSteps
from support.merge_places import fast_folder
from support.merge_reading import all_rows
from support.merge_scenarios import ENGINES, SCENARIOS, act
from support.merge_soak import sweeps
from support.merge_states import States


@pytest.fixture
def place() -> Iterator[Path]:
    with fast_folder() as folder:
        yield folder


@pytest.mark.parametrize(("name", "engine", "fault"), sweeps("kill before", "kill after"))
def test_killed_at_every_step(place: Path, name: str, engine: str, fault: Fault) -> None:
    states = States.of(SCENARIOS[name], engine, place)
    became_old = became_new = 0
    for at in range(states.steps):
        folder = states.fresh(place / str(at))
        code = merge_processes.run(act, name, engine, str(folder), at, fault)
        assert merge_processes.was_killed(code), f"step {at} was not reached: {code}"
        states.assert_files_whole(folder, at)
        decided = (folder / JOURNAL_NAME).exists()
        if at % 2 or not folder.exists():
            lockgate.recover(folder)
        else:
            empty = SCENARIOS[name].empty_source
            merge(empty, folder, strategy="update", key_columns="id", engine="arrow", lock_timeout=5)
        now = all_rows(folder)
        assert now in (states.old, states.new), f"step {at} left a mix"
        if decided:
            assert now == states.new, f"step {at} was decided and undone"
        assert leftovers(place / str(at)) == [], at
        became_old += now == states.old
        became_new += now == states.new
        shutil.rmtree(folder, ignore_errors=True)
    assert became_old > 5
    assert became_new > 5


@pytest.mark.parametrize("engine", ENGINES)
def test_a_killed_merge_done_again_is_as_if_done_once(place: Path, engine: str) -> None:
    states = States.of(SCENARIOS["full_merge by partition"], engine, place)
    for at in range(0, states.steps, 3):
        folder = states.fresh(place / str(at))
        code = merge_processes.run(act, "full_merge by partition", engine, str(folder), at, "kill before")
        assert merge_processes.was_killed(code)
        SCENARIOS["full_merge by partition"].act(folder, engine, NumberedSteps())
        assert all_rows(folder) == states.new, at
        assert leftovers(folder) == [], at


def test_a_recovery_killed_at_every_step_is_finished_by_the_next(place: Path) -> None:
    states = States.of(SCENARIOS["full_merge by partition"], "arrow", place)
    decided_at = states.step_of("replace", JOURNAL_NAME)
    for interrupted in (decided_at + 1, decided_at + 4):
        torn = states.fresh(place / f"torn{interrupted}")
        code = merge_processes.run(act, "full_merge by partition", "arrow", str(torn), interrupted, "kill before")
        assert merge_processes.was_killed(code)
        count = place / f"count{interrupted}"
        shutil.copytree(torn, count)
        steps = steps_of_recovery(count)
        assert steps > 5
        for at in range(steps):
            folder = place / f"{interrupted}-{at}"
            shutil.copytree(torn, folder)
            assert merge_processes.was_killed(merge_processes.run(recover_until, str(folder), at)), at
            states.assert_files_whole(folder, at)
            lockgate.recover(folder)
            assert all_rows(folder) == states.new, at
            assert leftovers(folder) == [], at


def recover_until(folder: str, at: int | None) -> None:
    from lockgate.targets.folder import FolderTarget

    with FolderTarget(Path(folder), NumberedSteps(at, "kill before")).locked():
        return


def steps_of_recovery(folder: Path) -> int:
    from lockgate.targets.folder import FolderTarget

    storage = NumberedSteps()
    with FolderTarget(folder, storage).locked():
        return len(storage.steps)
