"""kill -9 and disk errors at every step of a run that publishes three exports."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lockgate.destinations.protocol import Surroundings
from lockgate.errors import LockgateError, ResumeError
from lockgate.running.progress import Silent
from lockgate.running.settle import resume
from lockgate.running.state import RunState
from lockgate.storage.local import LocalStorage
from support.arrow_run import arrow_run, export, snapshot
from support.faults import FaultyStorage, run_in_child, was_killed

RUN = "2026-01-01T00-00-00-aaaa"
OLD = pa.table({"id": [1, 2, 3]})
NEW = pa.table({"id": [10, 20, 30, 40]})


def clock() -> datetime:
    return datetime(2026, 1, 1, tzinfo=UTC)


def exports(table: pa.Table) -> list:
    return [
        (export("out/a.csv", "CSV"), table),
        (export("out/b.parquet", "PARQUET"), table),
        (export("out/c", "PARQUET"), table),
        (export("out/d", "PARQUET", "APPEND"), table),
    ]


def project_with_old_data(folder: Path) -> None:
    arrow_run(folder, exports(OLD), run="2025-01-01T00-00-00-0000", pipeline="earlier.sql").execute()
    (folder / "out/c/README.txt").write_text("not data")


def rows(folder: Path) -> dict[str, list[int]]:
    return {
        "a": [int(x) for x in (folder / "out/a.csv").read_text().split()[1:]],
        "b": pq.read_table(folder / "out/b.parquet")["id"].to_pylist(),
        "c": sorted(x for f in (folder / "out/c").glob("*.parquet") for x in pq.read_table(f)["id"].to_pylist()),
        "d": sorted(x for f in (folder / "out/d").glob("*.parquet") for x in pq.read_table(f)["id"].to_pylist()),
    }


ALL_OLD = {"a": [1, 2, 3], "b": [1, 2, 3], "c": [1, 2, 3], "d": [1, 2, 3]}
ALL_NEW = {
    "a": [10, 20, 30, 40],
    "b": [10, 20, 30, 40],
    "c": [10, 20, 30, 40],
    "d": [1, 2, 3, 10, 20, 30, 40],
}


def steps_of_a_run(place: Path) -> list[tuple[str, Path]]:
    folder = place / "count"
    project_with_old_data(folder)
    storage = FaultyStorage()
    arrow_run(folder, exports(NEW), run=RUN, storage=storage).execute()
    return storage.steps


def leftovers(folder: Path) -> list[str]:
    return [n for n in snapshot(folder) if ".staging" in n or "journal" in n]


@pytest.mark.parametrize("fault", ["kill before", "kill after"])
def test_killed_at_every_step_then_resumed(place: Path, fault: str) -> None:
    total = len(steps_of_a_run(place))
    assert total > 50
    resumed = swept = 0
    for at in range(total):
        folder = place / f"{at}"
        project_with_old_data(folder)
        status = run_in_child(
            lambda folder=folder, at=at: arrow_run(
                folder, exports(NEW), run=RUN, storage=FaultyStorage(at, fault)
            ).execute()
        )
        assert was_killed(status), f"step {at} was not reached"
        state = RunState(folder / ".lockgate")
        record = state.run(RUN)
        try:
            result = resume(RUN, state, Surroundings(LocalStorage()), Silent(), clock)
        except ResumeError:
            assert record is None or record.status == "running"
            assert rows(folder) == ALL_OLD, at
            swept += 1
        else:
            assert result.exit_code == 0
            assert rows(folder) == ALL_NEW, at
            before = snapshot(folder)
            assert resume(RUN, state, Surroundings(LocalStorage()), Silent(), clock).exit_code == 0
            assert snapshot(folder) == before, "a second resume changed something"
            resumed += 1
        if record is not None:
            assert leftovers(folder) == [], at
        assert (folder / "out/c/README.txt").read_text() == "not data"
    assert resumed > 10
    assert swept > 10


@pytest.mark.parametrize("fault", ["kill before", pytest.param("kill after", marks=pytest.mark.slow)])
def test_killed_at_every_step_then_run_again(place: Path, fault: str) -> None:
    """The next run of the pipeline settles the dead one first: APPEND repeats nothing and loses nothing."""
    total = len(steps_of_a_run(place))
    for at in range(0, total, 3):
        folder = place / f"{at}"
        project_with_old_data(folder)
        status = run_in_child(
            lambda folder=folder, at=at: arrow_run(
                folder, exports(NEW), run=RUN, storage=FaultyStorage(at, fault)
            ).execute()
        )
        assert was_killed(status)
        before = RunState(folder / ".lockgate").run(RUN)
        was_publishing = before is not None and before.status != "running"
        third = pa.table({"id": [7]})
        arrow_run(folder, exports(third), run="2026-01-02T00-00-00-bbbb").execute()
        expected = [1, 2, 3, 7] + ([10, 20, 30, 40] if was_publishing else [])
        assert rows(folder) == {"a": [7], "b": [7], "c": [7], "d": sorted(expected)}, at
        assert leftovers(folder) == [], at


@pytest.mark.parametrize("fault", ["EIO", "ENOSPC"])
def test_a_failing_disk_at_every_step(place: Path, fault: str) -> None:
    """Every failure is an error with a message; before publishing all is old, after it resume makes all new."""
    total = len(steps_of_a_run(place))
    untouched = partial = 0
    for at in range(total):
        folder = place / f"{at}"
        project_with_old_data(folder)
        storage = FaultyStorage(at, fault)
        state = RunState(folder / ".lockgate")
        try:
            arrow_run(folder, exports(NEW), run=RUN, storage=storage).execute()
        except LockgateError as error:
            caught = error
        else:
            # Only tidying up after a published export may fail without failing the run.
            step, path = storage.steps[at]
            assert step in ("remove_tree", "rmdir") or path.name == "sealed", at
            assert rows(folder) == ALL_NEW, at
            continue
        assert caught.exit_code in (1, 3), at
        if caught.exit_code == 1:
            assert rows(folder) == ALL_OLD, at
            untouched += 1
        else:
            assert f"lockgate resume {RUN}" in caught.render(), at
            assert resume(RUN, state, Surroundings(LocalStorage()), Silent(), clock).exit_code == 0
            assert rows(folder) == ALL_NEW, at
            partial += 1
        assert leftovers(folder) == [], at
    assert untouched > 10
    assert partial > 10


def test_what_is_swapped_in_was_synced_before_and_its_folder_after(place: Path) -> None:
    """kill -9 cannot show a missing fsync, so the order of the calls is checked."""
    steps = steps_of_a_run(place)
    out = place / "count" / "out"
    for final in (out / "a.csv", out / "b.parquet"):
        swap = steps.index(("replace", final))
        staged = [p for s, p in steps[:swap] if s == "fsync" and p.name == "result" and p.parent.parent == out]
        assert staged, final
        assert ("fsync_folder", out) in steps[swap:], final
    journal = steps.index(("replace", out / "c" / ".lockgate_journal"))
    moved = [i for i, (s, p) in enumerate(steps) if s == "replace" and p.parent == out / "c" and p.suffix == ".parquet"]
    assert moved
    assert min(moved) > journal, "a file was moved before the journal was on disk"
    assert steps[journal + 1] == ("fsync_folder", out / "c")
    ended = steps.index(("remove", out / "c" / ".lockgate_journal"))
    assert ("fsync_folder", out / "c") in steps[max(moved) : ended], "the journal ended before the moves were durable"
