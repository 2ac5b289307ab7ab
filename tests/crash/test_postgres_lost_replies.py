"""The connection is cut at each message of the protocol: never a row twice, never a false report."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import lockgate
from lockgate.running.result import RunResult
from lockgate.running.state import RunState
from support.cutting_proxy import Cut
from support.postgres import through
from support.postgres_cuts import (
    COUNTS,
    NEW,
    OLD,
    RUN,
    Messages,
    attempt,
    committing,
    content,
    copying,
    finished,
    messages_of_a_run,
    old_table,
    proxied,
    transaction_begins,
)
from support.postgres_runs import counts

EVERY = [pytest.mark.slow, pytest.mark.timeout(3600)]  # hundreds of runs


def every_cut(messages: Messages) -> list[Cut]:
    """Before and after each message of the transaction, and some of what comes before it."""
    begins = transaction_begins(messages)
    found = [Cut(side, begins[side] * n // 6) for side in ("client", "server") for n in range(6)]
    for side in ("client", "server"):
        for number in range(begins[side], len(messages[side])):
            found += [Cut(side, number), Cut(side, number, delivered=True)]
    return found


def chosen_cuts(messages: Messages) -> list[Cut]:
    """While a session opens, after each statement that changes something is done, and all around the commit."""
    begins = transaction_begins(messages)
    found = [Cut("client", 0), Cut("server", begins["server"] // 2)]
    done = [
        n
        for n, (kind, body) in enumerate(messages["server"])
        if n >= begins["server"] and kind == "C" and body[5:9] in (b"BEGI", b"COPY", b"UPDA", b"INSE")
    ]
    found += [Cut("server", n) for n in done]
    found += [Cut("client", copying(messages) + n, delivered=True) for n in (-1, 0)]
    found += [Cut("client", committing(messages) + n, delivered) for n in (-2, -1, 0, 1) for delivered in (False, True)]
    replied = max(n for n, (kind, body) in enumerate(messages["server"]) if kind == "C" and b"COMMIT" in body)
    ready = len(messages["server"]) - 1
    return [*found, Cut("server", replied), Cut("server", replied, delivered=True), Cut("server", ready)]


@pytest.mark.parametrize(
    ("mode", "cuts"),
    [
        ("APPEND", chosen_cuts),
        ("UPSERT", lambda messages: chosen_cuts(messages)[::2]),
        pytest.param("APPEND", every_cut, marks=EVERY),
        pytest.param("UPSERT", every_cut, marks=EVERY),
    ],
)
def test_cut_at_each_message(place: Path, database, mode: str, cuts: Callable[..., list[Cut]]) -> None:
    seen = set()
    for number, cut in enumerate(cuts(messages_of_a_run(place / "count", database, mode))):
        old_table(database)
        folder = place / str(number)
        with proxied(database, cut) as proxy:
            told = attempt(folder, through(proxy.port, database), mode)
            assert proxy.happened, cut
        if isinstance(told, lockgate.LockgateError):
            assert told.exit_code == 1, (cut, told.render())
            assert content(database) == OLD, cut
            assert told.result.exports[0].status in ("failed", "skipped"), cut
            seen.add("failed")
        else:
            assert content(database) == NEW[mode], cut
            assert counts(told.exports[0]) == COUNTS[mode], cut
            seen.add("published")
        assert list((folder / ".lockgate").glob("staging/*")) == [], cut
    assert seen == {"failed", "published"}


def test_cut_for_good_at_each_message_of_the_commit(place: Path, database) -> None:
    """The server cannot be asked: the outcome is unknown, nothing staged goes, and `resume` settles it later."""
    messages = messages_of_a_run(place / "count", database, "APPEND")
    # With its Sync, the message after that, no more can come; until then the server may wait.
    last = committing(messages) + 1
    seen = []
    for number in (last - 7, last - 1, last):
        cut = Cut("client", number, delivered=True, for_good=True)
        old_table(database)
        folder = place / str(number)
        with proxied(database, cut) as proxy:
            profile = through(proxy.port, database)
            unknown = attempt(folder, profile, "APPEND")
            if isinstance(unknown, RunResult):
                assert content(database) == NEW["APPEND"], "the reply had come"
                continue
            assert isinstance(unknown, lockgate.OutcomeUnknown), unknown.render()
            assert unknown.exit_code == 3
            assert f"lockgate resume {RUN}" in unknown.render()
            assert (unknown.result.status, unknown.result.exports[0].status) == ("partial", "unknown")
            committed = content(database) == NEW["APPEND"]
            # Still out of reach: still unknown, and nothing is removed.
            with pytest.raises(lockgate.OutcomeUnknown):
                finished(folder, profile)
            assert RunState(folder / ".lockgate").run(RUN).result["exports"][0]["status"] == "unknown"
            assert len(list((folder / ".lockgate").glob("staging/*/rows/*.parquet"))) == 2
            proxy.revive()
            result = finished(folder, profile)
            assert (result.status, result.exports[0].status) == ("published", "published")
            assert counts(result.exports[0]) == COUNTS["APPEND"]
            assert content(database) == NEW["APPEND"], cut
            assert finished(folder, profile).exit_code == 0
            assert content(database) == NEW["APPEND"], cut
            seen.append(committed)
        assert list((folder / ".lockgate").glob("staging/*")) == []
    assert True in seen, "a reply was lost after the server had committed"
    assert False in seen, "the server was lost before it was told to commit"


def test_a_server_that_takes_the_question_and_never_answers_is_given_up(
    place: Path, database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lockgate.destinations.postgres_commit.LONGEST_ANSWER", 0.2)
    messages = messages_of_a_run(place / "count", database, "APPEND")
    replied = max(n for n, (kind, body) in enumerate(messages["server"]) if kind == "C" and b"COMMIT" in body)
    old_table(database)
    with proxied(database, Cut("server", replied, silent=True)) as proxy:
        profile = through(proxy.port, database)
        unknown = attempt(place / "run", profile, "APPEND")
        assert isinstance(unknown, lockgate.OutcomeUnknown), unknown
        assert "the server has not answered within 0.2 seconds" in unknown.render()
        assert unknown.exit_code == 3
        proxy.revive()
        monkeypatch.undo()
        assert counts(finished(place / "run", profile).exports[0]) == COUNTS["APPEND"]
    assert content(database) == NEW["APPEND"]
