"""A process that merges without end is killed at moments nobody chose."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

import lockgate
from support import merge_processes
from support.leftovers import leftovers
from support.merge_generations import LASTING, OWN, first_generation, write_generations_until_killed
from support.merge_places import fast_folder
from support.merge_reading import values

KILLS = 5  # for each engine


@pytest.fixture
def place() -> Iterator[Path]:
    with fast_folder() as folder:
        yield folder


@pytest.mark.parametrize("engine", ["arrow", "duckdb"])
def test_a_killed_writer_leaves_one_generation_and_none_that_was_reported_is_lost(place: Path, engine: str) -> None:
    folder = place / "data"
    first_generation(folder)
    generation = 0
    for seed in range(KILLS):
        done = merge_processes.number(generation)
        began = generation + 1
        writer = merge_processes.start(write_generations_until_killed, str(folder), began, engine, done)
        while done.value < began and writer.is_alive():
            writer.join(0.005)
        # Not a wait for something: a moment to strike that nobody chose, the same in every test run.
        writer.join(random.Random(seed).uniform(0, 0.25))
        assert writer.is_alive(), "the writer failed"
        writer.kill()
        assert merge_processes.was_killed(merge_processes.end_of(writer))
        reported = done.value
        lockgate.recover(folder)
        found = values(folder, "id", "generation")
        generation = max(found.values())
        assert set(found.values()) == {generation}, f"seed {seed}: two generations at once"
        assert set(found) == {*LASTING, OWN + generation}, f"seed {seed}: rows missing or left over"
        assert reported <= generation <= reported + 1, f"seed {seed}: generation {reported} was reported, and is gone"
        assert leftovers(folder) == []
