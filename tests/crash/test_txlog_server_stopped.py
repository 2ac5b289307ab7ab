"""PostgreSQL is stopped at once while several writers commit: what was acknowledged is there, the rest is settled."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import lockgate
from lockgate.txlog.actions import Action, Txn
from lockgate.txlog.writer import TxnLogWriter
from support.postgres_crash import FragileServer, fragile_server
from support.txlogs import TABLE, add, paths, place

WRITERS = 6


@pytest.fixture(scope="module")
def own() -> Iterator[FragileServer]:
    """A server that no other test uses."""
    with fragile_server() as server:
        yield server


def actions(name: str, whole: bool) -> list[Action]:
    """In one statement, or step by step."""
    return [add(name)] if whole else [add(name), Txn(name, 1)]


@pytest.mark.parametrize("whole", [True, False], ids=["in one statement", "step by step"])
def test_a_server_that_is_stopped_at_once_while_writers_commit(own: FragileServer, tmp_path: Path, whole: bool) -> None:
    somewhere = place(tmp_path, "postgres", own.database)
    acknowledged: dict[str, int] = {}
    failed: dict[str, lockgate.LogError] = {}
    enough = threading.Event()

    def work(log: TxnLogWriter, me: int) -> None:
        for n in range(100_000):
            name = f"{me}-{n}"
            try:
                acknowledged[name] = log.commit(TABLE, None, actions(name, whole), txn_id=name)
            except lockgate.LogError as error:
                failed[name] = error
                return
            if len(acknowledged) > 10 * WRITERS:
                enough.set()

    with somewhere.open(timeout=10.0) as log:
        somewhere.table(log)
        threads = [threading.Thread(target=work, args=(log, n)) for n in range(WRITERS)]
        for each in threads:
            each.start()
        assert enough.wait(120)
        own.stop_at_once()
        for each in threads:
            each.join()
        assert len(failed) == WRITERS
        own.start_again()
        there = set(paths(log))
        assert there >= set(acknowledged)
        for name, error in failed.items():
            if isinstance(error, lockgate.CommitStateUnknown):
                assert error.txn_id == name
            else:
                assert isinstance(error, lockgate.DatabaseError), error
                assert name not in there, error.in_place
            acknowledged[name] = log.commit(TABLE, None, actions(name, whole), txn_id=name)
        in_order = sorted(acknowledged, key=lambda name: acknowledged[name])
        assert [acknowledged[name] for name in in_order] == list(range(1, log.current_version(TABLE) + 1))
        assert [record.txn_id for record in reversed(log.history(TABLE))][1:] == in_order
        assert sorted(acknowledged) == paths(log)
