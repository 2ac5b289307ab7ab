"""The connection is cut at each message of the protocol: never a row twice, never a false report."""

from __future__ import annotations

from collections.abc import Iterator
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


def cuts(messages: dict[str, list[tuple[str, bytes]]]) -> list[Cut]:
    """Every message around the commit, and some before: most of a server's describe its types, one message each."""
    begins = commit_begins(messages)
    replies = len(messages["server"]) - 12
    found = []
    for side, near, every in (("client", begins - 4, 41), ("server", replies, 701)):
        for number in range(len(messages[side])):
            if number >= near or number % every == 3:
                found += [Cut(side, number), Cut(side, number, delivered=True)]
    return found


@pytest.mark.parametrize("mode", ["APPEND", "UPSERT"])
def test_cut_at_each_message(tmp_path: Path, database, mode: str) -> None:
    seen = set()
    for number, cut in enumerate(cuts(messages_of_a_run(tmp_path / "count", database, mode))):
        old_table(database)
        folder = tmp_path / str(number)
        with proxied(cut) as proxy:
            profile = through(proxy.port, database)
            try:
                result = run_of(folder, profile, mode).execute()
            except lockgate.LockgateError as error:
                assert error.exit_code == 1, (cut, error.render())  # noqa: PT017
                assert content(database) == OLD, cut
                assert error.result.exports[0].status in ("failed", "skipped"), cut  # noqa: PT017
                seen.add("failed")
            else:
                assert content(database) == NEW[mode], cut
                assert counts(result.exports[0]) == COUNTS[mode], cut
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
            try:
                result = run_of(folder, profile, "APPEND").execute()
            except lockgate.LockgateError as error:
                unknown = error
            else:
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
