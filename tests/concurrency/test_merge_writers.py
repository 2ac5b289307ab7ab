"""Many processes and threads merge into one dataset at once: they take turns, and nobody's rows are lost."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from lockgate.datasets.entry import merge
from support import merge_processes
from support.leftovers import leftovers
from support.merge_places import fast_folder
from support.merge_reading import values
from support.merge_writers import (
    FIRST_COME,
    SHARED,
    TURNS,
    append_own_rows,
    export_own_rows,
    own_keys,
    rows,
    take_turns,
    upsert_own_rows,
)

PROCESSES = 16
THREADS = 8


@pytest.fixture
def folder() -> Iterator[Path]:
    with fast_folder() as place:
        yield place / "data"


def at_once(folder: Path, works: list[Callable[[str, int, Any], None]]) -> None:
    """A process for each; they begin together, and each must end well."""
    start = merge_processes.barrier(len(works))
    processes = [merge_processes.start(work, str(folder), number, start) for number, work in enumerate(works)]
    assert [merge_processes.end_of(process) for process in processes] == [0] * len(works)


def assert_all_turns_are_there(found: dict[str, int], writers: int) -> None:
    for number in range(writers):
        assert [found.pop(key) for key in own_keys(number)] == [TURNS - 1] * 3, f"an update of {number} is lost"
        assert found.pop(f"inserted by {number}") == number
    assert found.pop(SHARED) in {number * 100 + TURNS - 1 for number in range(writers)}
    assert found.pop(FIRST_COME) in range(writers)
    assert found == {}


def test_sixteen_processes_lose_no_update_and_make_no_key_twice(folder: Path) -> None:
    at_once(folder, [take_turns] * PROCESSES)
    assert_all_turns_are_there(values(folder, "key", "value"), PROCESSES)
    assert leftovers(folder) == []


def test_merges_appends_and_pipelines_at_once(folder: Path) -> None:
    # The pipeline's rows are staged without the lock, beside those of merges that hold it.
    works = [upsert_own_rows, append_own_rows, export_own_rows] * 3
    at_once(folder, works)
    expected: dict[str, int] = {}
    for number, work in enumerate(works):
        if work is upsert_own_rows:
            expected |= dict.fromkeys(own_keys(number), 2)
        else:
            word = "appended" if work is append_own_rows else "exported"
            expected |= {f"{word} {number}-{turn}": turn for turn in range(3)}
    assert values(folder, "key", "value") == expected
    assert leftovers(folder) == []


def in_threads(work: Callable[[int], None]) -> None:
    with ThreadPoolExecutor(THREADS) as pool:
        for each in [pool.submit(work, number) for number in range(THREADS)]:
            each.result(timeout=120)


def test_threads_of_one_process_take_turns_too(folder: Path) -> None:
    start = threading.Barrier(THREADS)
    in_threads(lambda number: take_turns(str(folder), number, start))
    assert_all_turns_are_there(values(folder, "key", "value"), THREADS)
    assert leftovers(folder) == []


def test_threads_of_one_process_merge_into_datasets_of_their_own(folder: Path) -> None:
    start = threading.Barrier(THREADS)
    in_threads(lambda number: upsert_own_rows(str(folder / str(number)), number, start))
    for number in range(THREADS):
        assert values(folder / str(number), "key", "value") == dict.fromkeys(own_keys(number), 2)


def test_threads_may_share_one_duckdb_connection(folder: Path) -> None:
    import duckdb

    with duckdb.connect() as connection:

        def work(number: int) -> None:
            for turn in range(3):
                source = rows(dict.fromkeys(own_keys(number), turn))
                merge(source, folder, strategy="upsert", key_columns="key", engine="duckdb", connection=connection)

        in_threads(work)
        assert connection.sql("SHOW TABLES").fetchall() == []
    expected = {key: 2 for number in range(THREADS) for key in own_keys(number)}
    assert values(folder, "key", "value") == expected
