"""kill -9 of a pipeline with an incremental source, three DELTA exports and a PostgreSQL export, at points of every
layer; rerun, each row is once in every table, and a reader of the log never sees the three tables at odds."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from support.exactly_once import Place, Reader, assert_each_row_once, execute, kill, points_of
from support.kill_points import Point
from support.merge_places import fast_folder
from support.postgres import new_database

FIRST, LATER = 4, 9  # rows once a first run is through, and a later one
ALL_LAYERS = (
    "before SqliteTransaction commit", "after SqliteTransaction commit", "before record publishing",
    "before the record commits", "after record finish", "before server COPY", "after server COPY",
    "before server COMMIT", "after server COMMIT", "before Publisher _put", "after Publisher _put", "before link",
    "after replace",
)  # fmt: skip


@pytest.fixture
def place() -> Iterator[Path]:
    with fast_folder() as folder:
        yield folder


@pytest.fixture
def made(place: Path) -> Iterator[Callable[..., Place]]:
    """Each project with a database of its own, which may have the log too."""
    with ExitStack() as databases:

        def make(name: str, *, log: bool = False) -> Place:
            url = databases.enter_context(new_database()).url
            (place / name).mkdir()
            return Place(place / name, url, **({"log": url} if log else {}))

        yield make


def points_of_two_runs(at: Place) -> tuple[list[Point], list[Point]]:
    """Of a run that makes all tables, and of one that finds them."""
    found = points_of(at, 1, FIRST), points_of(at, 2, LATER)
    assert_each_row_once(at, LATER)
    return found


def killed_and_rerun(at: Place, first: Point, later: Point) -> None:
    kill(at, 1, FIRST, first)
    execute(at, 2, FIRST + 2)
    assert_each_row_once(at, FIRST + 2, first)
    kill(at, 3, LATER, later)
    execute(at, 4, LATER + 2)
    assert_each_row_once(at, LATER + 2, later)


def assert_exact_and_never_at_odds(
    place: Path, pairs: Iterable[tuple[Point, Point]], made: Callable[[str], Place]
) -> int:
    kills = 0
    with Reader(place / "reader") as reader:
        for number, (first, later) in enumerate(pairs):
            at = made(str(number))
            reader.look_at(at)
            killed_and_rerun(at, first, later)
            kills += 2
            reader.look_at(None)
            shutil.rmtree(at.folder)
    reads, wrong, states = reader.findings()
    assert wrong == []
    assert reads > kills
    assert states > kills // 2
    return kills


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("every", [18, pytest.param(1, marks=pytest.mark.slow)])
def test_each_row_once_whatever_the_point(place: Path, made: Callable[..., Place], every: int) -> None:
    first, later = points_of_two_runs(made("counted"))
    for points in (first, later):
        assert {what for what, _ in points} >= set(ALL_LAYERS)
    assert len(first) + len(later) >= 100
    pairs = [(first[n % len(first)], later[n % len(later)]) for n in range(max(len(first), len(later)))]
    assert assert_exact_and_never_at_odds(place, pairs[3::every], made) >= 30


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("every", [12, pytest.param(1, marks=pytest.mark.slow)])
def test_with_the_log_on_a_server(place: Path, made: Callable[..., Place], every: int) -> None:
    """At the points of its transactions, and of publishing what they have committed."""
    found = points_of_two_runs(made("counted", log=True))
    first, later = ([point for point in points if point[0].split()[1].startswith("P")] for points in found)
    assert {what for what, _ in first} >= {"before PostgresTransaction commit", "after PostgresTransaction commit"}
    pairs = [(first[n % len(first)], later[n % len(later)]) for n in range(max(len(first), len(later)))]
    assert assert_exact_and_never_at_odds(place, pairs[1::every], lambda name: made(name, log=True))
