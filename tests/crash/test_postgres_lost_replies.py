"""The connection is cut at each message of the protocol: never a row twice, never a false report."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

import lockgate
from lockgate.config import Profile
from lockgate.destinations.protocol import Surroundings
from lockgate.running.pipeline import utc_now
from lockgate.running.progress import Silent
from lockgate.running.result import RunResult
from lockgate.running.settle import resume
from lockgate.running.state import RunState
from lockgate.storage.local import LocalStorage
from support.cutting_proxy import Cut, CuttingProxy
from support.postgres import socket_path, through
from support.postgres_runs import counts, postgres_run, to_table

RUN = "2026-01-01T00-00-00-aaaa"
ROWS = pa.table({"id": [2, 3], "v": ["B", "C"]})
OLD = [(1, "a"), (2, "b")]
NEW = {"APPEND": [(1, "a"), (2, "B"), (2, "b"), (3, "C")], "UPSERT": [(1, "a"), (2, "B"), (3, "C")]}
COUNTS = {"APPEND": (2, 0, 0), "UPSERT": (1, 1, 0)}
EVERY = [pytest.mark.slow, pytest.mark.timeout(3600)]  # hundreds of runs


@contextmanager
def proxied(cut: Cut | None = None) -> Iterator[CuttingProxy]:
    proxy = CuttingProxy(socket_path(), cut)
    try:
        yield proxy
    finally:
        proxy.close()


def old_table(database) -> None:
    database.run("DROP TABLE IF EXISTS t")
    database.run("CREATE TABLE t (id int, v text)")
    database.run("INSERT INTO t VALUES (1, 'a'), (2, 'b')")


def content(database) -> list[tuple]:
    return database.run('SELECT id, v FROM t ORDER BY id, v COLLATE "C"')


def run_of(folder: Path, profile: Profile, mode: str):
    keys = ["id"] if mode == "UPSERT" else []
    return postgres_run(folder, profile, [(to_table("t", mode, keys, settle_timeout=1), ROWS)], run=RUN)


def finished(folder: Path, profile: Profile):
    # The profile of a record is that of lockgate.toml, and there is none here.
    around = replace(Surroundings(LocalStorage(), folder, profile))
    return resume(RUN, RunState(folder / ".lockgate"), around, Silent(), utc_now)


def messages_of_a_run(folder: Path, database, mode: str) -> dict[str, list[tuple[str, bytes]]]:
    old_table(database)
    with proxied() as proxy:
        run_of(folder, through(proxy.port, database), mode).execute()
        return proxy.messages


def commit_begins(messages: dict[str, list[tuple[str, bytes]]]) -> int:
    return next(n for n, (kind, body) in enumerate(messages["client"]) if kind == "P" and b"COMMIT\0" in body)


def transaction_begins(messages: dict[str, list[tuple[str, bytes]]]) -> dict[str, int]:
    """What comes before is the same for every session: mostly the server's types, a message each."""
    return {
        "client": next(n for n, (kind, body) in enumerate(messages["client"]) if kind == "P" and b"BEGIN" in body),
        "server": next(n for n, (kind, body) in enumerate(messages["server"]) if kind == "C" and b"BEGIN" in body),
    }


def every_cut(messages: dict[str, list[tuple[str, bytes]]]) -> list[Cut]:
    """Before and after each message of the transaction, and some of what comes before it."""
    begins = transaction_begins(messages)
    found = [Cut(side, begins[side] * n // 6) for side in ("client", "server") for n in range(6)]
    for side in ("client", "server"):
        for number in range(begins[side], len(messages[side])):
            found += [Cut(side, number), Cut(side, number, delivered=True)]
    return found


def chosen_cuts(messages: dict[str, list[tuple[str, bytes]]]) -> list[Cut]:
    """While a session opens, after each statement that changes something is done, and all around the commit."""
    begins = transaction_begins(messages)
    found = [Cut("client", 0), Cut("server", begins["server"] // 2)]
    done = [
        n
        for n, (kind, body) in enumerate(messages["server"])
        if n >= begins["server"] and kind == "C" and body[5:9] in (b"BEGI", b"COPY", b"UPDA", b"INSE")
    ]
    found += [Cut("server", n) for n in done]
    starts = next(n for n, (_, body) in enumerate(messages["client"]) if b"FROM STDIN" in body)
    found += [Cut("client", starts, delivered=True), Cut("client", starts + 1, delivered=True)]
    commit = max(n for n, (kind, _) in enumerate(messages["client"]) if kind == "B")
    found += [Cut("client", commit + n, delivered) for n in range(4) for delivered in (False, True)]
    replied = max(n for n, (kind, body) in enumerate(messages["server"]) if kind == "C" and b"COMMIT" in body)
    ready = len(messages["server"]) - 1
    return [*found, Cut("server", replied), Cut("server", replied, delivered=True), Cut("server", ready)]


def attempt(folder: Path, profile: Profile, mode: str) -> RunResult | lockgate.LockgateError:
    try:
        return run_of(folder, profile, mode).execute()
    except lockgate.LockgateError as error:
        return error


@pytest.mark.parametrize(
    ("mode", "cuts"),
    [
        ("APPEND", chosen_cuts),
        ("UPSERT", chosen_cuts),
        pytest.param("APPEND", every_cut, marks=EVERY),
        pytest.param("UPSERT", every_cut, marks=EVERY),
    ],
)
def test_cut_at_each_message(tmp_path: Path, database, mode: str, cuts: Callable[..., list[Cut]]) -> None:
    seen = set()
    for number, cut in enumerate(cuts(messages_of_a_run(tmp_path / "count", database, mode))):
        old_table(database)
        folder = tmp_path / str(number)
        with proxied(cut) as proxy:
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


def test_cut_for_good_at_each_message_of_the_commit(tmp_path: Path, database) -> None:
    """The server cannot be asked: the outcome is unknown, nothing staged goes, and `resume` settles it later."""
    messages = messages_of_a_run(tmp_path / "count", database, "APPEND")
    begins = commit_begins(messages)
    kinds = [kind for kind, _ in messages["client"]]
    last = len(kinds) - 1 - kinds[::-1].index("S")  # until then the server may wait for more
    seen = []
    for number in (begins, last - 1, last):
        cut = Cut("client", number, delivered=True, for_good=True)
        old_table(database)
        folder = tmp_path / str(number)
        with proxied(cut) as proxy:
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
    tmp_path: Path, database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lockgate.destinations.postgres_commit.LONGEST_ANSWER", 0.2)
    messages = messages_of_a_run(tmp_path / "count", database, "APPEND")
    replied = max(n for n, (kind, body) in enumerate(messages["server"]) if kind == "C" and b"COMMIT" in body)
    old_table(database)
    with proxied(Cut("server", replied, silent=True)) as proxy:
        profile = through(proxy.port, database)
        unknown = attempt(tmp_path / "run", profile, "APPEND")
        assert isinstance(unknown, lockgate.OutcomeUnknown), unknown
        assert "the server has not answered within 0.2 seconds" in unknown.render()
        assert unknown.exit_code == 3
        proxy.revive()
        monkeypatch.undo()
        assert counts(finished(tmp_path / "run", profile).exports[0]) == COUNTS["APPEND"]
    assert content(database) == NEW["APPEND"]
