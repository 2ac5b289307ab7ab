"""A connection to the log's server that breaks at any message of a commit: no loss, no double, no guess."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import lockgate
from lockgate.txlog.actions import Action
from lockgate.txlog.writer import TxnLogWriter
from support.postgres import Database, socket_path
from support.reply_proxy import Cut, CuttingProxy, Side
from support.txlogs import TABLE, Place, add, adds, paths, place, remove

SMALL: list[Action] = [add("new")]
LARGE: list[Action] = [remove("there"), *adds(f"n{n}" for n in range(20))]


class Between:
    """A log that is reached through a proxy, and directly to see what is true."""

    def __init__(self, direct: Place, server: Database) -> None:
        self.direct = direct
        self.proxy = CuttingProxy(socket_path(server))
        options = direct.url.partition("&")[2]
        self.through = f"postgresql://postgres@127.0.0.1:{self.proxy.port}/postgres?sslmode=disable&{options}"

    def open(self) -> TxnLogWriter:
        return TxnLogWriter.open(self.through, timeout=10.0)


@pytest.fixture
def between(tmp_path: Path, postgres: Database) -> Iterator[Between]:
    direct = place(tmp_path, "postgres", postgres)
    both = Between(direct, postgres)
    with direct.open() as log:
        direct.table(log)
        log.commit(TABLE, None, [add("there")])
    yield both
    both.proxy.close()


def messages_of_a_commit(between: Between, actions: list[Action]) -> dict[Side, range]:
    """Which messages go to and fro during a commit on an open log."""
    with between.open() as log:
        before = {side: len(between.proxy.messages[side]) for side in ("client", "server")}
        log.current_version(TABLE)  # so that its connection is there
        log.metadata(TABLE)
        log._known[TABLE] = log._state(TABLE, fresh=True)
        before = {side: len(between.proxy.messages[side]) for side in ("client", "server")}
        log.commit(TABLE, None, actions)
        return {  # type: ignore[return-value]
            side: range(len(between.proxy.messages[side]) - before[side])  # type: ignore[index]
            for side in ("client", "server")
        }


@pytest.mark.slow
@pytest.mark.parametrize("actions", [SMALL, LARGE], ids=["small", "large"])
@pytest.mark.parametrize("for_good", [False, True], ids=["the server stays", "the server goes"])
def test_a_commit_cut_at_every_message(between: Between, actions: list[Action], for_good: bool) -> None:
    cut_at_messages(between, actions, for_good, every=1)


@pytest.mark.parametrize(("actions", "every"), [(SMALL, 2), (LARGE, 60)], ids=["small", "large"])
@pytest.mark.parametrize("for_good", [False, True], ids=["the server stays", "the server goes"])
def test_a_commit_cut_at_some_messages(between: Between, actions: list[Action], every: int, for_good: bool) -> None:
    """The last ones among them: what the client says with its COMMIT, and the reply to it."""
    cut_at_messages(between, actions, for_good, every=every)


def cut_at_messages(between: Between, actions: list[Action], for_good: bool, *, every: int) -> None:
    live = ["there"] if actions is SMALL else []
    spans = messages_of_a_commit(between, actions)
    with between.direct.open() as log:
        added = [each.path for each in actions if each.key == "add"]
        log.commit(TABLE, None, [remove(path) for path in added])
        if actions is LARGE:
            log.commit(TABLE, None, [add("there")])
    seen = set()
    cuts = [
        (side, n, delivered) for side in spans for n in reversed(spans[side][::-every]) for delivered in (False, True)
    ]
    for side, number, delivered in cuts:
        txn_id = f"{side}-{number}-{delivered}"
        with between.open() as log, between.direct.open() as direct:
            log._state(TABLE, fresh=True)
            between.proxy.happened = False
            between.proxy.cut = Cut(side, len(between.proxy.messages[side]) + number, delivered, for_good)
            before = direct.current_version(TABLE)
            version, error = None, None
            try:
                version = log.commit(TABLE, None, actions, txn_id=txn_id)
            except lockgate.LogError as raised:
                error = raised
            if isinstance(error, lockgate.CommitStateUnknown):
                assert (error.txn_id, for_good) == (txn_id, True)
                outcome = "unknown"
            elif error is not None:
                assert isinstance(error, lockgate.DatabaseError)
                assert "nothing was committed" in (error.in_place or "")
                outcome = "refused"
            else:
                outcome = "committed"
            seen.add(outcome)
            between.proxy.revive()
            after = _settled(direct)
            if outcome == "committed":
                assert after == version == before + 1, txn_id
            elif outcome == "refused":
                assert after == before, txn_id
            assert log.commit(TABLE, None, actions, txn_id=txn_id) == before + 1, txn_id
            assert direct.current_version(TABLE) == before + 1, txn_id
            assert paths(direct) == sorted([*live, *added]), txn_id
            direct.commit(TABLE, None, [remove(path) for path in added])
            if actions is LARGE:
                direct.commit(TABLE, None, [add("there")])
    assert seen >= ({"committed", "unknown"} if for_good else {"committed"})


def _settled(direct: TxnLogWriter) -> int:
    """The version once no transaction that lost its client is left: whoever locks the row waits for it."""
    with direct.store.transaction() as transaction:
        return transaction.lock([TABLE], []).tables[TABLE].current_version


def test_a_group_whose_reply_is_lost_is_settled_one_by_one(between: Between) -> None:
    with between.open() as log:
        log._state(TABLE, fresh=True)
        between.proxy.cut = Cut("server", len(between.proxy.messages["server"]) + 9)  # the group's
        results: dict[str, object] = {}

        def work(name: str) -> None:
            try:
                results[name] = log.commit(TABLE, None, [add(name)], txn_id=name)
            except lockgate.LogError as error:
                results[name] = error

        threads = [threading.Thread(target=work, args=(f"t{n}",)) for n in range(12)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        assert between.proxy.happened
        there = set(paths(log))
        for name, result in results.items():
            assert (name in there) == isinstance(result, int), (name, result)


def test_a_server_that_is_not_there() -> None:
    with pytest.raises(lockgate.DatabaseError, match="cannot be reached") as refused:
        TxnLogWriter.open("postgresql://me:hunter2@127.0.0.1:1/nowhere", timeout=2.0)
    assert "hunter2" not in refused.value.render()


def test_a_lock_that_is_held_for_too_long(between: Between) -> None:
    with between.direct.open() as holder, TxnLogWriter.open(between.direct.url, timeout=0.2) as log:
        log._state(TABLE, fresh=True)
        with holder.store.transaction() as transaction:
            transaction.lock([TABLE], [])
            with pytest.raises(TimeoutError) as refused:
                log.commit(TABLE, None, [add("x")])
        assert isinstance(refused.value, lockgate.TimeoutError)
        assert log.commit(TABLE, None, [add("x")]) == 2
