"""The server stops at once, or this process is killed, while rows are copied, swapped in or committed."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import lockgate
from lockgate.destinations.protocol import Surroundings
from lockgate.errors import ResumeError
from lockgate.running.pipeline import utc_now
from lockgate.running.progress import Silent
from lockgate.running.settle import resume
from lockgate.running.state import RunState
from lockgate.storage.local import LocalStorage
from support.arrow_run import export
from support.cutting_proxy import Cut
from support.faults import FaultyStorage, run_in_child, was_killed
from support.postgres import Database, through
from support.postgres_crash import FragileServer, fragile_server
from support.postgres_cuts import (
    COUNTS,
    NEW,
    OLD,
    RUN,
    attempt,
    committing,
    content,
    copying,
    finished,
    messages_of_a_run,
    old_table,
    proxied,
    run_of,
    swapping,
)
from support.postgres_runs import counts, postgres_run, to_table

PHASES = {"copy": copying, "swap": swapping, "commit": committing}
STAGED = "SELECT relname FROM pg_class WHERE relname LIKE 'lockgate_staged%'"


@pytest.fixture(scope="module")
def fragile() -> Iterator[FragileServer]:
    with fragile_server() as server:
        yield server


@pytest.mark.parametrize("mode", ["APPEND", "UPSERT"])
@pytest.mark.parametrize("phase", PHASES)
def test_the_server_is_shut_down_at_once(place: Path, fragile: FragileServer, phase: str, mode: str) -> None:
    """After its restart the table is whole, and what was reported is true."""
    database = fragile.database
    at = PHASES[phase](messages_of_a_run(place / "count", database, mode))
    old_table(database)
    with proxied(database, Cut("client", at, delivered=True, for_good=True)) as proxy:
        proxy.then = fragile.stop_at_once
        profile = through(proxy.port, database)
        told = attempt(place / "run", profile, mode)
        assert proxy.happened
        proxy.revive()  # when it returns the server has stopped
        fragile.start_again()
        assert isinstance(told, lockgate.LockgateError)
        if isinstance(told, lockgate.OutcomeUnknown):
            assert phase == "commit"
            assert content(database) in (OLD, NEW[mode])
            assert counts(finished(place / "run", profile).exports[0]) == COUNTS[mode]
        else:
            assert told.exit_code == 1, told.render()
            assert content(database) == OLD
            again = run_of(place / "run", profile, mode, run="2026-01-02T00-00-00-bbbb").execute()
            assert counts(again.exports[0]) == COUNTS[mode]
    assert content(database) == NEW[mode]
    assert database.run(STAGED) == []


@pytest.mark.parametrize("server", ["17 and newer", "older"])
def test_a_number_that_the_server_lost_is_not_taken_for_that_of_a_later_transaction(
    place: Path, fragile: FragileServer, server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that crashes forgets the numbers of transactions that are not in its log yet, and gives them out again;
    somebody else's commit must not be taken for ours."""
    if server == "older":
        monkeypatch.setattr("lockgate.destinations.postgres_number._FLUSHES", 1_000_000)
    database = fragile.database
    at = committing(messages_of_a_run(place / "count", database, "APPEND"))
    old_table(database)
    with proxied(database, Cut("client", at, for_good=True)) as proxy:
        proxy.then = fragile.stop_at_once
        profile = through(proxy.port, database)
        assert isinstance(attempt(place / "run", profile, "APPEND"), lockgate.OutcomeUnknown)
        proxy.revive()  # when it returns the server has stopped
        fragile.start_again()
        assert content(database) == OLD
        with database.session() as session:
            for _ in range(100):
                session.execute("SELECT pg_current_xact_id()")
        assert counts(finished(place / "run", profile).exports[0]) == COUNTS["APPEND"]
    assert content(database) == NEW["APPEND"]


@pytest.mark.parametrize("phase", PHASES)
def test_killed_while_the_server_works_then_resumed(place: Path, database: Database, phase: str) -> None:
    at = PHASES[phase](messages_of_a_run(place / "count", database, "APPEND"))
    old_table(database)
    with proxied(database, Cut("client", at, delivered=True)) as proxy:
        profile = through(proxy.port, database)
        child = os.fork()
        if child == 0:
            try:
                run_of(place, profile, "APPEND").execute()
            finally:
                os._exit(70)
        proxy.then = lambda: os.kill(child, signal.SIGKILL)
        assert was_killed(os.waitpid(child, 0)[1])
        result = finished(place, profile)
    assert (result.status, counts(result.exports[0])) == ("published", COUNTS["APPEND"])
    assert content(database) == NEW["APPEND"]
    assert list((place / ".lockgate").glob("staging/*")) == []


def several(folder: Path, database: Database, storage: LocalStorage) -> Callable[[], object]:
    rows = pa.table({"id": [2, 3], "v": ["B", "C"]})
    exports = [
        (to_table("t", "APPEND"), rows),
        (to_table("u", "UPSERT", ["id"]), rows),
        (export("out/a.csv", "CSV"), rows),
    ]
    return postgres_run(folder, database.profile(), exports, run=RUN, storage=storage).execute


def state_of(database: Database) -> list[list[tuple]]:
    return [database.run(f'SELECT id, v FROM {name} ORDER BY id, v COLLATE "C"') for name in ("t", "u")]


def tables(database: Database) -> None:
    for name in ("t", "u"):
        database.run(f"DROP TABLE IF EXISTS {name}")
        database.run(f"CREATE TABLE {name} (id int, v text)")
        database.run(f"INSERT INTO {name} VALUES (1, 'a'), (2, 'b')")


@pytest.mark.parametrize(
    ("fault", "every"),
    [
        ("kill before", 5),
        pytest.param("kill before", 1, marks=pytest.mark.slow),
        pytest.param("kill after", 1, marks=pytest.mark.slow),
    ],
)
def test_killed_at_steps_of_the_disk_then_resumed(place: Path, database: Database, fault: str, every: int) -> None:
    tables(database)
    counted = FaultyStorage()
    several(place / "count", database, counted)()
    seen = set()
    for at in range(0, len(counted.steps), every):
        tables(database)
        folder = place / str(at)
        status = run_in_child(several(folder, database, FaultyStorage(at, fault)))  # type: ignore[arg-type]
        assert was_killed(status), at
        around = Surroundings(LocalStorage(), folder, database.profile())
        try:
            result = resume(RUN, RunState(folder / ".lockgate"), around, Silent(), utc_now)
        except ResumeError:
            assert state_of(database) == [OLD, OLD], at
            seen.add("swept")
        else:
            assert result.exit_code == 0
            assert [counts(e) for e in result.exports[:2]] == [COUNTS["APPEND"], COUNTS["UPSERT"]], at
            assert state_of(database) == [NEW["APPEND"], NEW["UPSERT"]], at
            assert (folder / "out/a.csv").exists()
            seen.add("resumed")
    assert seen == {"swept", "resumed"}


@pytest.mark.parametrize("end", ["resume", "run again", "supersede"])
def test_the_staging_table_of_a_dead_run_is_swept(place: Path, database: Database, end: str) -> None:
    database.run("CREATE SCHEMA scratch")
    rows = pa.table({"id": [2, 3], "v": ["B", "C"]})
    step = to_table("t", "APPEND", parallel=2, staging_schema="scratch")

    def run(folder: Path, profile: lockgate.config.Profile, run: str = RUN, **more: bool):
        return postgres_run(folder, profile, [(step, rows)], run=run, **more)

    old_table(database)
    with proxied(database) as proxy:
        run(place / "count", through(proxy.port, database)).execute()
        at = copying(proxy.messages)
    old_table(database)
    with proxied(database, Cut("client", at, delivered=True)) as proxy:
        profile = through(proxy.port, database)
        child = os.fork()
        if child == 0:
            try:
                run(place, profile).execute()
            finally:
                os._exit(70)
        proxy.then = lambda: os.kill(child, signal.SIGKILL)
        assert was_killed(os.waitpid(child, 0)[1])
    assert len(database.run(STAGED)) == 1
    assert content(database) == OLD
    profile = database.profile()
    if end == "resume":
        finished(place, profile)
        assert content(database) == NEW["APPEND"]
    else:
        run(place, profile, "2026-01-02T00-00-00-bbbb", supersede=end == "supersede").execute()
        assert len(content(database)) == (4 if end == "supersede" else 6)
    assert database.run(STAGED) == []
    assert list((place / ".lockgate").glob("staging/*")) == []
