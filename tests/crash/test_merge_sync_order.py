"""kill -9 cannot show a missing fsync, so the order of the steps is checked: synced before decided before moved."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from lockgate.targets.journal import JOURNAL_NAME
from support.merge_places import fast_folder
from support.merge_scenarios import CASES, SCENARIOS
from support.merge_states import States


@pytest.fixture
def place() -> Iterator[Path]:
    with fast_folder() as folder:
        yield folder


@pytest.mark.parametrize(("name", "engine"), CASES)
def test_everything_is_durable_before_what_relies_on_it(place: Path, name: str, engine: str) -> None:
    states = States.of(SCENARIOS[name], engine, place)
    steps, root = states.recorded, states.after
    draft = next(i for i, (s, p) in enumerate(steps) if s == "create" and p.name.startswith(JOURNAL_NAME + "."))
    decided = states.step_of("replace", JOURNAL_NAME)
    ended = states.step_of("remove", JOURNAL_NAME)
    moved = [(i, p) for i, (s, p) in enumerate(steps) if s == "replace" and p.suffix == ".parquet"]
    removed = [(i, p) for i, (s, p) in enumerate(steps) if s == "remove" and p.suffix == ".parquet" and i > decided]
    cleared = [i for i, (s, p) in enumerate(steps) if s == "remove" and p.suffix == ".crc"]
    assert moved or removed

    staged = {p for s, p in steps if s == "fsync" and p.suffix == ".parquet"}
    assert len(staged) == len(moved), "a file is moved in that was not synced"
    area = {p.parent for p in staged}
    assert len(area) == 1
    for file in staged:
        synced = steps.index(("fsync", file))
        assert synced < draft, "the journal is begun before a staged file is durable"
        assert ("fsync_folder", file.parent) in steps[synced:draft], "the staged file's name is not durable"
    area_named = next(i for i, (s, p) in enumerate(steps) if p in area and s in ("replace", "mkdir"))
    assert ("fsync_folder", root) in steps[area_named:draft], "the staging folder's name is not durable"

    assert "fsync" in [s for s, _ in steps[draft:decided]], "the journal's text is not durable when it gets its name"
    first = min(i for i, _ in (*moved, *removed))
    assert ("fsync_folder", root) in steps[decided:first], "a file changes before the journal is durable"
    assert first > decided
    assert all(decided < i < first for i in cleared), "a checksum outlives the file that it is about"

    for at, path in (*moved, *removed):
        assert at < ended
        assert ("fsync_folder", path.parent) in steps[at:ended], f"the journal ends before {path} is durable"
    assert ("fsync_folder", root) in steps[ended:], "the end of the journal is not durable when the call returns"


@pytest.mark.parametrize(("name", "engine"), CASES)
def test_new_partition_folders_are_durable(place: Path, name: str, engine: str) -> None:
    states = States.of(SCENARIOS[name], engine, place)
    ended = states.step_of("remove", JOURNAL_NAME)
    made = [(i, p) for i, (s, p) in enumerate(states.recorded) if s == "mkdir" and "=" in p.name]
    for at, folder in made:
        assert ("fsync_folder", folder.parent) in states.recorded[at:ended], folder
    assert bool(made) == ("p=d" in {p.name for p in states.after.iterdir()} and name != "full_merge"), "none was made"


@pytest.mark.parametrize("engine", ["arrow", "duckdb"])
def test_permissions_given_to_a_staged_file_are_durable_too(place: Path, engine: str) -> None:
    """A file that is replaced keeps its mode also when the power fails right after: chmod before fsync."""
    states = States.of(SCENARIOS["upsert"], engine, place)
    changed = [(i, p) for i, (s, p) in enumerate(states.recorded) if s in ("chmod", "chown")]
    assert changed
    for at, file in changed:
        assert ("fsync", file) in states.recorded[at:], f"{file.name} gets its mode after it was synced"
