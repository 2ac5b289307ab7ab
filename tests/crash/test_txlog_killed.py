"""kill -9 at every step of a commit and of publishing: no gap, no loss, no double; the next operation heals it."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from lockgate.txlog.log_files import LocalLogFiles
from lockgate.txlog.publisher import Publisher
from support import merge_processes as processes
from support.faults import FaultyStorage
from support.txlogs import TABLE, Place, add, adds, paths, place

STEPS = [(moment, call) for call in ("lock", "write", "commit") for moment in ("before", "after")]
WHOLE = [("before", "append"), ("after", "append")]  # in one statement, which PostgreSQL alone does


@pytest.fixture(params=["sqlite", "postgres"])
def somewhere(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    server = request.getfixturevalue("postgres") if request.param == "postgres" else None
    return place(tmp_path, request.param, server)


def commit_and_die(url: str, moment: str, call: str, count: int) -> None:
    """Commit, and die at a step of the transaction."""
    from lockgate.txlog.postgres_store import PostgresStore, PostgresTransaction
    from lockgate.txlog.sqlite_store import SqliteTransaction
    from lockgate.txlog.writer import TxnLogWriter

    def deadly(real: Any) -> Any:
        def die(self: Any, *given: Any) -> Any:
            if moment == "before":
                os.kill(os.getpid(), signal.SIGKILL)
            real(self, *given)
            os.kill(os.getpid(), signal.SIGKILL)

        return die

    PostgresStore.appends = call == "append"
    for kind in (PostgresStore,) if call == "append" else (PostgresTransaction, SqliteTransaction):
        setattr(kind, call, deadly(getattr(kind, call)))
    with TxnLogWriter.open(url) as log:
        log.commit(TABLE, None, adds(f"f{n}" for n in range(count)), txn_id="the one")


@pytest.mark.parametrize("count", [1, 30])
def test_a_writer_that_is_killed_at_every_step_of_a_commit(somewhere: Place, count: int) -> None:
    wanted = sorted(f"f{n}" for n in range(count))
    with somewhere.open() as log:
        somewhere.table(log, publish=True)
    for moment, call in STEPS[:-1] + WHOLE if "postgresql" in somewhere.url else STEPS:
        assert processes.was_killed(processes.run(commit_and_die, somewhere.url, moment, call, count))
        with somewhere.open(publish=False) as log:
            went_through = (moment, call) in (("after", "commit"), ("after", "append"))
            found = log.find_transaction("the one")  # PostgreSQL may still be rolling back; nothing of it is seen
            assert found == ({TABLE: 1} if went_through else {}), (moment, call)
            assert paths(log) == (wanted if went_through else [])
    with somewhere.open(publish=False) as log:
        assert log.commit(TABLE, None, adds(wanted), txn_id="the one") == 1
        assert log.commit(TABLE, None, [add("next")]) == 2
        assert log.publish() == {TABLE: 2}
    check_published(somewhere, 3)


def check_published(somewhere: Place, versions: int) -> None:
    """Every version has its file, with the very actions of the log, and nothing else is there."""
    folder = Path(somewhere.location) / "_delta_log"
    names = sorted(path.name for path in folder.iterdir() if not path.name.startswith("."))
    assert [name for name in names if name.endswith(".json")] == [f"{n:020}.json" for n in range(versions)]
    with somewhere.open(publish=False) as log:
        for changes in log.changes(TABLE, 0):
            lines = (folder / f"{changes.version:020}.json").read_text(encoding="utf-8").splitlines()
            assert json.loads(lines[0])["commitInfo"]["txnId"] == changes.txn_id
            assert len(lines) == len(changes.actions)
        assert log.table(TABLE).published_version == versions - 1


def publish_with_fault(url: str, at: int, fault: str, only: tuple[str, ...]) -> None:
    from lockgate.txlog.writer import TxnLogWriter

    storage = FaultyStorage(at, fault, only)  # type: ignore[arg-type]
    with TxnLogWriter.open(url, publish=False) as log:
        log.publisher = Publisher(
            log.store, background=False, files_at=lambda location: LocalLogFiles(Path(location), storage)
        )
        log.publisher.try_publish(TABLE)


@pytest.mark.parametrize("fault", ["kill before", "kill after", "EIO", "ENOSPC"])
def test_publishing_that_fails_at_every_step(tmp_path: Path, fault: str) -> None:
    """Eleven versions and a checkpoint; whatever step fails, publishing again completes the folder."""
    at = 0
    while True:
        somewhere = place(tmp_path / f"{at}", "sqlite", None)
        somewhere.folder.mkdir()
        with somewhere.open(publish=False) as log:
            somewhere.table(log, publish=True)
            for n in range(10):
                log.commit(TABLE, None, [add(f"f{n}")])
        code = processes.run(publish_with_fault, somewhere.url, at, fault, ())
        folder = Path(somewhere.location) / "_delta_log"
        there = sorted(path.name for path in folder.glob("*.json")) if folder.exists() else []
        assert there == [f"{n:020}.json" for n in range(len(there))]  # no gap, at any moment
        with somewhere.open(publish=False) as log:
            assert log.table(TABLE).published_version < len(there)
            log.commit(TABLE, None, [add("next")])
            log.publish(TABLE)
            finished = not processes.was_killed(code) and at >= 50 if "kill" in fault else at >= 60
        check_published(somewhere, 12)
        if finished:
            break
        at += 1 if at < 8 else 7
    assert at > 30


def test_a_commit_file_of_somebody_else_is_found_before_the_commit(somewhere: Place) -> None:
    import lockgate

    with somewhere.open(publish=False) as log:
        somewhere.table(log, publish=True)
        log.commit(TABLE, None, [add("a")])
        log.publish()
        folder = Path(somewhere.location) / "_delta_log"
        theirs = folder / f"{2:020}.json"
        theirs.write_text('{"commitInfo":{"operation":"WRITE","engineInfo":"another"}}\n')
        with pytest.raises(lockgate.ForeignCommit, match=r"version 2 of sales\.orders .*WRITE by another") as found:
            log.commit(TABLE, None, [add("b")])
        assert found.value.in_place == "nothing was committed"
        assert log.current_version(TABLE) == 1
        theirs.unlink()
        assert log.commit(TABLE, None, [add("b")]) == 2
        theirs.write_text("no JSON at all")
        with pytest.raises(lockgate.ForeignCommit) as unpublished:
            log.publish()
        assert unpublished.value.in_place == "the commit is in the log and is not published"
        assert theirs.read_text() == "no JSON at all"


def test_a_folder_of_somebody_else_is_not_taken(somewhere: Place) -> None:
    import lockgate

    folder = Path(somewhere.location) / "_delta_log"
    folder.mkdir(parents=True)
    (folder / f"{0:020}.json").write_text("{}\n")
    with somewhere.open() as log, pytest.raises(lockgate.ForeignCommit, match="a Delta table already"):
        log.create_table(TABLE, somewhere.location)


def test_a_failure_to_publish_is_a_warning(somewhere: Place, caplog: pytest.LogCaptureFixture) -> None:
    with somewhere.open() as log:
        somewhere.table(log, publish=True)
        log.publisher.close()
    folder = Path(somewhere.location) / "_delta_log"
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()
    folder.write_text("in the way")
    with somewhere.open() as log:
        assert log.commit(TABLE, None, [add("a")]) == 1
    assert "could not be published" in caplog.text
    with somewhere.open() as log:
        assert paths(log) == ["a"]
