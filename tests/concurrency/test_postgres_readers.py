"""A reader that counts while a table is written sees what was there before, or all that is there after."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import psycopg
import pyarrow as pa
import pytest

from support.postgres import Database
from support.postgres_runs import counts, write

COUNT = "SELECT count(*), count(*) FILTER (WHERE v = 'new'), sum(id) FROM t"
WAITING = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'advisory'"


def table_of(database: Database, rows: int, *, index: bool = True) -> None:
    database.run("CREATE TABLE t (id bigint, v text)")
    database.run("INSERT INTO t SELECT n, 'old' FROM generate_series(1, %s) n", rows)
    if index:
        database.run("ALTER TABLE t ADD PRIMARY KEY (id)")


def source_of(rows: int) -> pa.Table:
    """Half of the old keys, and as many new ones."""
    first = rows // 2 + 1
    return pa.table({"id": pa.array(range(first, first + rows)), "v": pa.array(["new"] * rows)})


def states(rows: int, mode: str) -> list[tuple[int, int, int]]:
    half, total = rows // 2, rows + rows // 2
    old = (rows, 0, rows * (rows + 1) // 2)
    brought = total * (total + 1) // 2
    if mode == "REPLACE":
        return [old, (rows, rows, brought - half * (half + 1) // 2)]
    return [old, (total, rows, brought)]


def look(database: Database, until: Callable[[], bool]) -> list[tuple]:
    """Count again and again; once more when it is over."""
    seen = []
    with database.session() as session:
        while True:
            over = until()
            seen.append(session.execute(COUNT).fetchone())
            if over:
                return seen


@pytest.mark.parametrize("rows", [2_000, pytest.param(1_000_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("index", [True, False])
@pytest.mark.parametrize("mode", ["REPLACE", "UPSERT"])
def test_no_partial_count_is_ever_seen(place: Path, database: Database, mode: str, index: bool, rows: int) -> None:
    table_of(database, rows, index=index)
    started, keys = threading.Event(), ["id"] if mode == "UPSERT" else []

    def writing() -> object:
        started.wait()
        return write(place, database.profile(), source_of(rows), "t", mode, keys)

    with ThreadPoolExecutor(1) as pool:
        writer = pool.submit(writing)

        def over() -> bool:
            started.set()  # by now the reader is there
            return writer.done()

        seen = look(database, over)
        writer.result()
    assert sorted(set(seen)) == sorted(states(rows, mode))
    assert len(seen) > 2


@pytest.mark.parametrize("mode", ["REPLACE", "UPSERT", "FULL_MERGE"])
def test_a_reader_in_the_middle_of_the_swap_is_not_kept_waiting(place: Path, database: Database, mode: str) -> None:
    """A trigger holds the writer up when its rows are in the table, until the reader has looked."""
    table_of(database, 10, index=False)
    database.run(
        "CREATE FUNCTION hold() RETURNS trigger LANGUAGE plpgsql AS "
        "'BEGIN PERFORM pg_advisory_xact_lock(7); RETURN NULL; END'"
    )
    database.run("CREATE TRIGGER hold AFTER INSERT ON t FOR EACH STATEMENT EXECUTE FUNCTION hold()")
    keys = [] if mode == "REPLACE" else ["id"]
    with database.session() as holder, ThreadPoolExecutor(1) as pool:
        holder.execute("SELECT pg_advisory_lock(7)")
        writer = pool.submit(write, place, database.profile(), source_of(10), "t", mode, keys)
        try:
            seen = look(database, lambda: is_waiting(holder, writer))
        finally:
            holder.execute("SELECT pg_advisory_unlock(7)")
        writer.result()
    old, new = states(10, "REPLACE" if mode == "FULL_MERGE" else mode)
    assert set(seen) == {old}
    assert database.run(COUNT) == [new]


def is_waiting(session: psycopg.Connection, writer: Future) -> bool:
    assert not writer.done(), writer.result()
    return session.execute(WAITING).fetchone() == (1,)


@pytest.mark.parametrize("index", [True, False])
def test_upserting_writers_lose_and_repeat_nothing(place: Path, database: Database, index: bool) -> None:
    """With an index they meet the same keys in opposite order, which the server sees as a deadlock now and then."""
    table_of(database, 100, index=index)
    writers, size = 4, 500

    def one(number: int) -> tuple[int | None, int | None, int | None]:
        ids = [100 * number + n for n in range(1, size + 1)]
        rows = pa.table({"id": ids[:: -1 if number % 2 else 1], "v": [f"w{number}"] * size})
        return counts(write(place / str(number), database.profile(), rows, "t", "UPSERT", ["id"]))

    with ThreadPoolExecutor(writers) as pool:
        counted = list(pool.map(one, range(writers)))
    total = 100 * (writers - 1) + size
    assert database.run("SELECT count(*), count(DISTINCT id), min(id), max(id) FROM t") == [(total, total, 1, total)]
    assert sum(inserted or 0 for inserted, _, _ in counted) == total - 100
    assert [(inserted or 0) + (updated or 0) for inserted, updated, _ in counted] == [size] * writers
    assert database.run("SELECT DISTINCT v FROM t WHERE id > %s", total - 100) == [(f"w{writers - 1}",)]
    assert database.run("SELECT count(*) FROM t WHERE v = 'old'") == [(0,)]


@pytest.mark.parametrize("mode", ["UPSERT", "INSERT", "FULL_MERGE", "REPLACE"])
def test_a_key_that_somebody_is_bringing_is_waited_for(place: Path, database: Database, mode: str) -> None:
    """Without an index nothing but a lock keeps two writers from bringing one key twice."""
    table_of(database, 2, index=False)
    waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 't'::regclass"
    keys = [] if mode == "REPLACE" else ["id"]
    rows = pa.table({"id": [2, 3], "v": ["new", "new"]})
    with database.session() as watcher, psycopg.connect(database.url) as other, ThreadPoolExecutor(1) as pool:
        other.execute("INSERT INTO t VALUES (3, 'other')")
        writer = pool.submit(write, place, database.profile(), rows, "t", mode, keys)
        try:
            while watcher.execute(waiting).fetchone() == (0,):
                assert not writer.done(), writer.result()
        finally:
            other.commit()
        counted = counts(writer.result())
    left = database.run("SELECT * FROM t ORDER BY id")
    expected = {
        "UPSERT": ([(1, "old"), (2, "new"), (3, "new")], (0, 2, 0)),
        "INSERT": ([(1, "old"), (2, "old"), (3, "other")], (0, 0, 0)),
        "FULL_MERGE": ([(2, "new"), (3, "new")], (0, 2, 1)),
        "REPLACE": ([(2, "new"), (3, "new")], (2, 0, 3)),
    }
    assert (left, counted) == expected[mode]
