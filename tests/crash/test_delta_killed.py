"""kill -9 at every step of publishing two Delta tables: both old or both new, and a resume brings both to their end."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest

import lockgate
from lockgate.destinations.protocol import Surroundings
from lockgate.errors import CommitStateUnknown, OutcomeUnknown, ResumeError
from lockgate.running.progress import Silent
from lockgate.running.settle import resume
from lockgate.running.state import RunState
from lockgate.storage.local import LocalStorage
from lockgate.txlog.writer import TxnLogWriter
from support.arrow_run import arrow_run, export
from support.faults import FaultyStorage, run_in_child, was_killed
from support.merge_places import fast_folder

RUN = "2026-01-02T00-00-00-bbbb"
OLD = pa.table({"id": [1, 2], "x": ["a", "b"]})
NEW = pa.table({"id": [2, 3], "x": ["B", "C"]})
BEFORE = {"s.log": [(1, "a"), (2, "b")], "s.state": [(1, "a"), (2, "b")]}
AFTER = {"s.log": [(1, "a"), (2, "B"), (2, "b"), (3, "C")], "s.state": [(1, "a"), (2, "B"), (3, "C")]}


@pytest.fixture
def place() -> Iterator[Path]:
    with fast_folder() as folder:
        yield folder


def exports(rows: pa.Table) -> list[Any]:
    return [
        (export("s.log", "DELTA", "APPEND"), rows),
        (export("s.state", "DELTA", "UPSERT", ["id"], engine="arrow"), rows),
    ]


def old_data(folder: Path) -> None:
    folder.mkdir(parents=True)
    arrow_run(folder, exports(OLD), run="2026-01-01T00-00-00-aaaa").execute()


def execute(folder: Path, storage: LocalStorage) -> None:
    arrow_run(folder, exports(NEW), run=RUN, storage=storage).execute()


def finish(folder: Path) -> Any:
    around = Surroundings(LocalStorage(), folder)
    return resume(RUN, RunState(folder / ".lockgate"), around, Silent(), lambda: datetime(2026, 1, 3, tzinfo=UTC))


def content(folder: Path) -> dict[str, list[tuple[Any, ...]]]:
    found = {}
    for name in BEFORE:
        with lockgate.open_table(name, log=f"sqlite:///{folder}/.lockgate/log.db") as table:
            found[name] = sorted(tuple(row.values()) for row in table.to_arrow().to_pylist())
    return found


def assert_finished(folder: Path) -> None:
    assert content(folder) == AFTER
    for name in AFTER:
        read = deltalake.DeltaTable(str(folder / "warehouse" / name.replace(".", "/")))
        assert read.version() == 1
        assert sorted(tuple(row.values()) for row in read.to_pyarrow_table().to_pylist()) == AFTER[name]
    assert list(folder.rglob(".staging*")) == []
    assert finish(folder).exit_code == 0
    assert content(folder) == AFTER, "a second resume changed something"


def settled(folder: Path, at: Any) -> bool:
    """Whether the run came as far as promising to publish."""
    assert content(folder) in (BEFORE, AFTER), at
    try:
        result = finish(folder)
    except ResumeError:
        assert content(folder) == BEFORE, at
        return False
    assert result.status == "published", at
    assert_finished(folder)
    return True


def test_killed_at_every_step_of_the_disk(place: Path) -> None:
    old_data(place / "count")
    counted = FaultyStorage()
    execute(place / "count", counted)
    steps = len(counted.steps)
    assert steps > 25
    published = 0
    for at in range(steps):
        folder = place / str(at)
        old_data(folder)
        status = run_in_child(lambda folder=folder, at=at: execute(folder, FaultyStorage(at, "kill before")))
        assert was_killed(status), at
        published += settled(folder, at)
    assert published >= 5


def killing(method: str, *, after: bool) -> Callable[[Path], None]:
    def run(folder: Path) -> None:
        real = getattr(TxnLogWriter, method)

        def killed(self: TxnLogWriter, *given: Any, **named: Any) -> Any:
            if after:
                real(self, *given, **named)
            os.kill(os.getpid(), signal.SIGKILL)

        setattr(TxnLogWriter, method, killed)
        execute(folder, LocalStorage())

    return run


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("method", ["commit_many", "publish"])
def test_killed_around_the_commit_and_its_publishing(place: Path, method: str, after: bool) -> None:
    folder = place / "p"
    old_data(folder)
    assert was_killed(run_in_child(lambda: killing(method, after=after)(folder)))
    assert content(folder) == (BEFORE if (method, after) == ("commit_many", False) else AFTER)
    assert settled(folder, method)


def test_a_lost_reply_is_settled_by_the_transaction(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = place / "p"
    old_data(folder)
    real = TxnLogWriter.commit_many

    def lost(self: TxnLogWriter, *given: Any, **named: Any) -> Any:
        real(self, *given, **named)
        raise CommitStateUnknown("the reply was lost", in_place="the commit went through whole, or not at all")

    monkeypatch.setattr(TxnLogWriter, "commit_many", lost)
    with pytest.raises(OutcomeUnknown) as caught:
        execute(folder, LocalStorage())
    assert caught.value.exit_code == 3
    monkeypatch.setattr(TxnLogWriter, "commit_many", real)
    assert settled(folder, "lost")


def test_a_commit_that_was_not_made_leaves_no_file(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = place / "p"
    old_data(folder)
    before = set((folder / "warehouse").rglob("*"))

    def down(*_: Any, **__: Any) -> Any:
        raise lockgate.DatabaseError("the log is down", in_place="nothing was committed")

    monkeypatch.setattr(TxnLogWriter, "commit_many", down)
    with pytest.raises(lockgate.PublishError) as caught:
        execute(folder, LocalStorage())
    assert caught.value.exit_code == 1
    assert set((folder / "warehouse").rglob("*")) == before
    assert content(folder) == BEFORE
