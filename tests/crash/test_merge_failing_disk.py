"""A disk that fails, or is full, at every step of a merge or a write: the error says what is true of the data."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import lockgate
from lockgate.errors import LockgateError
from lockgate.targets.journal import JOURNAL_NAME
from support.faults import Fault
from support.leftovers import leftovers
from support.merge_faults import NumberedSteps
from support.merge_places import fast_folder
from support.merge_reading import all_rows
from support.merge_scenarios import SCENARIOS
from support.merge_soak import sweeps
from support.merge_states import States

NOTHING = "nothing was written"


@pytest.fixture
def place() -> Iterator[Path]:
    with fast_folder() as folder:
        yield folder


@pytest.mark.parametrize(("name", "engine", "fault"), sweeps("EIO", "ENOSPC"))
def test_a_failing_disk_at_every_step(place: Path, name: str, engine: str, fault: Fault) -> None:
    scenario = SCENARIOS[name]
    states = States.of(scenario, engine, place)
    ends: Counter[str] = Counter()
    untrue = []
    for at in range(states.steps):
        folder = states.fresh(place / str(at))
        storage = NumberedSteps(at, fault)
        error = None
        try:
            scenario.act(folder, engine, storage)
        except LockgateError as caught:
            error = caught
        assert len(storage.steps) > at, f"step {at} was not reached"
        states.assert_files_whole(folder, at)
        ends[outcome(folder, states)] += 1
        if complaint := complaint_about(error, folder, states):
            untrue.append(f"step {at} ({storage.steps[at][0]} {storage.steps[at][1].name}): {complaint}")
        settle(folder, name, engine, states)
        assert all_rows(folder) == states.new, at
        assert leftovers(place / str(at)) == [], at
        shutil.rmtree(folder)
    assert not untrue, "\n".join(untrue)
    assert ends["old"] > 5
    assert ends["decided"] > 2
    assert ends["new"] > 0


def outcome(folder: Path, states: States) -> str:
    if (folder / JOURNAL_NAME).exists():
        return "decided"
    now = all_rows(folder)
    assert now in (states.old, states.new), "a mix, and no journal that could mend it"
    return "old" if now == states.old else "new"


def complaint_about(error: LockgateError | None, folder: Path, states: States) -> str | None:
    """What is wrong with the words of the error, given what is in the folder; None if they are true."""
    state = outcome(folder, states)
    if error is None:
        # Tidying up behind a finished change may fail in silence; the next writer sweeps.
        return None if state == "new" else f"no error, though the data is {state}"
    said = error.render()
    match state:
        case "old":
            return None if NOTHING in said else f"the data is old and it does not say that {NOTHING}: {said!r}"
        case "decided":
            told = NOTHING not in said and "decided" in said and "finish" in said
            return None if told else f"the change is decided and will be finished, but it says: {said!r}"
        case _:
            told = NOTHING not in said and "in place" in said and "in part" not in said
            return None if told else f"the change is in place, but it says: {said!r}"


def settle(folder: Path, name: str, engine: str, states: States) -> None:
    """What a user does after the error: the same again; where that would add rows twice, a recovery first."""
    scenario = SCENARIOS[name]
    if not scenario.repeatable:
        lockgate.recover(folder)
        if all_rows(folder) == states.new:
            return
    scenario.act(folder, engine, NumberedSteps())
