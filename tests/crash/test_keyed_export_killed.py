"""kill -9 and disk errors at every step of publishing keyed exports, alone and with another writer at work."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lockgate
from lockgate.destinations.protocol import Surroundings
from lockgate.errors import LockgateError, ResumeError
from lockgate.running.progress import Silent
from lockgate.running.settle import resume
from lockgate.running.state import RunState
from lockgate.storage.local import LocalStorage
from support import merge_processes
from support.arrow_run import arrow_run, export, snapshot
from support.faults import Fault
from support.keyed_runs import (
    ALL_NEW,
    ALL_OLD,
    COUNTS,
    OURS_FIRST,
    RUN,
    THEIRS_ALONE,
    THEIRS_FIRST,
    content,
    counts,
    execute,
    keyed_run,
    old_data,
    publishing_begins,
    rows,
    somebody_else_merges,
    steps_of_a_run,
)
from support.leftovers import leftovers
from support.merge_faults import NumberedSteps
from support.merge_places import fast_folder

# One step later, or another word of the error: the second fault of each pair differs little from the first.
KILLS = ["kill before", pytest.param("kill after", marks=pytest.mark.slow)]


@pytest.fixture
def place() -> Iterator[Path]:
    with fast_folder() as folder:
        yield folder


def clock() -> datetime:
    return datetime(2026, 1, 1, tzinfo=UTC)


def finish(folder: Path):
    return resume(RUN, RunState(folder / ".lockgate"), Surroundings(LocalStorage()), Silent(), clock)


def killed_at(folder: Path, at: int, fault: Fault, *, with_somebody_else: bool = False) -> None:
    old_data(folder)
    code = merge_processes.run(execute, str(folder), at, fault, with_somebody_else)
    assert merge_processes.was_killed(code), f"step {at} was not reached: {code}"


def assert_finished(folder: Path, at: int) -> None:
    assert leftovers(folder) == [], at
    assert (folder / "out/b/README.txt").read_text() == "not data"
    before = snapshot(folder)
    assert finish(folder).exit_code == 0
    assert snapshot(folder) == before, "a second resume changed something"


@pytest.mark.parametrize("fault", KILLS)
def test_killed_at_every_step_then_resumed(place: Path, fault: Fault) -> None:
    steps = steps_of_a_run(place / "count")
    begin = publishing_begins(steps)
    assert 20 < begin < len(steps) - 20
    resumed = 0
    for at in [*range(0, begin, 5), *range(begin, len(steps))]:
        folder = place / str(at)
        killed_at(folder, at, fault)
        try:
            result = finish(folder)
        except ResumeError:
            assert at <= begin
            assert content(folder) == ALL_OLD, at
            continue
        assert content(folder) == ALL_NEW, at
        assert counts(result) == COUNTS, at
        assert [e.engine for e in result.exports] == ["arrow"] * 3
        assert result.exports[0].files == {"rewritten": 1, "added": 1, "preserved": 2}
        assert_finished(folder, at)
        resumed += 1
    assert resumed >= len(steps) - begin


@pytest.mark.parametrize("fault", KILLS)
def test_somebody_else_merges_between_the_kill_and_resume(place: Path, fault: Fault) -> None:
    """Neither update is lost, and the counts are those of the order in which the two came."""
    steps = steps_of_a_run(place / "count")
    seen = []
    for at in range(publishing_begins(steps), len(steps)):
        folder = place / str(at)
        killed_at(folder, at, fault)
        somebody_else_merges(folder)
        result = finish(folder)
        found = (content(folder)["a"], counts(result)[0])
        assert found in (OURS_FIRST, THEIRS_FIRST), at
        assert counts(result)[1:] == COUNTS[1:], at
        assert_finished(folder, at)
        seen.append(found)
    assert THEIRS_FIRST in seen
    assert seen == sorted(seen, key=lambda found: found == OURS_FIRST), "once decided, it stays decided"
    assert OURS_FIRST in seen


@pytest.mark.parametrize("fault", KILLS)
def test_killed_while_merging_again(place: Path, fault: Fault) -> None:
    """Somebody else has merged between staging and publishing; the kill comes at every step from there on."""
    steps = steps_of_a_run(place / "count", with_somebody_else=True)
    assert ("remove_tree", place / "count/out/a" / f".staging_{RUN}-1/merge") in steps, "it was not merged again"
    for at in range(publishing_begins(steps), len(steps)):
        folder = place / str(at)
        killed_at(folder, at, fault, with_somebody_else=True)
        result = finish(folder)
        assert (content(folder)["a"], counts(result)[0]) == THEIRS_FIRST, at
        assert content(folder)["b"] == ALL_NEW["b"], at
        assert_finished(folder, at)


@pytest.mark.parametrize("fault", ["EIO", pytest.param("ENOSPC", marks=pytest.mark.slow)])
@pytest.mark.parametrize("with_somebody_else", [False, True])
def test_a_failing_disk_at_every_step(place: Path, fault: Fault, with_somebody_else: bool) -> None:
    total = len(steps_of_a_run(place / "count", with_somebody_else))
    expected = THEIRS_FIRST if with_somebody_else else (ALL_NEW["a"], COUNTS[0])
    untouched = partial = 0
    for at in range(total):
        folder = place / str(at)
        old_data(folder)
        storage = NumberedSteps(at, fault)
        between = (lambda folder=folder: somebody_else_merges(folder)) if with_somebody_else else None
        try:
            result = keyed_run(folder, storage, between).execute()
        except LockgateError as error:
            caught = error
        else:
            # Only tidying up after a published export may fail without failing the run.
            step, path = storage.steps[at]
            assert step in ("remove_tree", "rmdir") or path.name == "sealed", at
            assert (content(folder)["a"], counts(result)[0]) == expected, at
            continue
        assert caught.exit_code in (1, 3), at
        if caught.exit_code == 1:
            now = content(folder)
            assert now["a"] in ((ALL_OLD["a"], THEIRS_ALONE) if with_somebody_else else (ALL_OLD["a"],)), at
            assert (now["b"], now["c"]) == (ALL_OLD["b"], ALL_OLD["c"]), at
            untouched += 1
        else:
            assert f"lockgate resume {RUN}" in caught.render(), at
            result = finish(folder)
            assert (content(folder)["a"], counts(result)[0]) == expected, at
            assert content(folder)["b"] == ALL_NEW["b"], at
            partial += 1
        assert leftovers(folder) == [], at
    assert untouched > 10
    assert partial > 10


def test_what_is_swapped_in_was_synced_before_and_the_mark_with_it(place: Path) -> None:
    """kill -9 cannot show a missing fsync, so the order of the calls is checked."""
    steps = steps_of_a_run(place / "count")
    root = place / "count/out/a"
    area = root / f".staging_{RUN}-1"
    sealed = steps.index(("create", area / "sealed"))
    for part in ("part-00000-x.parquet", "part-00001-x.parquet"):
        assert ("fsync", area / "rows" / part) in steps[:sealed], "the rows that a second merge would need"
    assert ("fsync_folder", area / "rows") in steps[:sealed]
    decided = steps.index(("replace", root / ".lockgate_journal"))
    staged = [path for step, path in steps[:decided] if step == "fsync" and path.parent == area / "merge"]
    assert len(staged) == 2
    assert ("fsync_folder", area / "merge") in steps[:sealed]
    draft = steps.index(("fsync", area / "merged.draft"))
    assert draft < steps.index(("fsync_folder", area), draft) < decided
    swaps = [i for i, (step, path) in enumerate(steps) if step == "replace" and path.parent == root and i > decided]
    marked = steps.index(("replace", area / "merged"))
    ended = steps.index(("remove", root / ".lockgate_journal"))
    assert decided < min(swaps) <= max(swaps) < marked < ended
    assert ("fsync_folder", area) in steps[marked:ended]


def test_a_writer_in_the_middle_of_its_swap_is_no_fault_of_the_rows(place: Path, monkeypatch) -> None:
    """Read between two renames, the dataset seems to refuse the rows; with the lock held it takes them."""
    from lockgate.destinations import keyed_merge

    old_data(place)
    merging = keyed_merge.stage_merge
    tries = []

    def disturbed(*given):
        tries.append(1)
        if len(tries) == 1:
            somebody_else_merges(place)
            raise lockgate.SchemaMismatchError("half of the files are of tomorrow")
        return merging(*given)

    monkeypatch.setattr(keyed_merge, "stage_merge", disturbed)
    result = keyed_run(place).execute()
    assert (content(place)["a"], counts(result)[0]) == THEIRS_FIRST
    assert leftovers(place) == []


def test_a_superseding_run_finishes_what_was_decided(place: Path) -> None:
    """The journal names files of the area: to discard the area first would leave a folder that nobody can open."""
    steps = steps_of_a_run(place / "count")
    decided = steps.index(("replace", place / "count/out/a/.lockgate_journal"))
    folder = place / "torn"
    killed_at(folder, decided, "kill after")
    only = [(export("out/a", "PARQUET", "UPSERT", ["id"]), rows(_50="new"))]
    arrow_run(folder, only, run="2026-01-02T00-00-00-bbbb", supersede=True).execute()
    assert content(folder) == {**ALL_OLD, "a": {**ALL_NEW["a"], 50: "new"}}
    assert leftovers(folder) == []


def test_a_replaced_folder_that_was_decided_is_finished_by_a_superseding_run_too(place: Path) -> None:
    class KilledOnceDecided(NumberedSteps):
        def _do(self, step, path, action):
            done = super()._do(step, path, action)
            if step == "fsync_folder" and (path / ".lockgate_journal").exists():
                raise OSError(5, "died here")
            return done

    one, two = pa.table({"id": [1]}), pa.table({"id": [2]})
    with pytest.raises(lockgate.PartialPublish):
        arrow_run(place, [(export("out", "PARQUET"), one)], storage=KilledOnceDecided()).execute()
    arrow_run(place, [(export("out", "PARQUET", "APPEND"), two)], run="2026-01-02", supersede=True).execute()
    assert sorted(pq.read_table(place / "out")["id"].to_pylist()) == [1, 2]
    assert leftovers(place) == []


def test_two_exports_of_one_run_into_one_folder_follow_each_other(place: Path) -> None:
    """Both are staged on the dataset as it was; the second finds it changed, by the first, and merges again."""
    old_data(place)
    both = [
        (export("out/a", "PARQUET", "UPSERT", ["id"]), rows(_40="first", _2="first")),
        (export("out/a", "PARQUET", "UPSERT", ["id"]), rows(_40="second")),
    ]
    result = arrow_run(place, both, run=RUN).execute()
    assert content(place)["a"] == {1: "old", 2: "first", 3: "old", 40: "second"}
    assert counts(result) == [(1, 1, 0), (0, 1, 0)]


def test_staged_files_that_were_lost_are_made_again_from_the_staged_rows(place: Path) -> None:
    old_data(place)

    def lose() -> None:
        for staged in (place / "out/a" / f".staging_{RUN}-1/merge").iterdir():
            staged.unlink()

    assert counts(keyed_run(place, between=lose).execute()) == COUNTS
    assert content(place) == ALL_NEW
