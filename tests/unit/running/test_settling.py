"""Runs that were interrupted: what the next run, `resume` and `--supersede` make of them."""

from __future__ import annotations

import os
import sqlite3
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest

from lockgate.destinations.protocol import Surroundings
from lockgate.errors import LockgateError, PartialPublish, PreviousRunUnfinished, ResumeError, StateError
from lockgate.running import settle
from lockgate.running.progress import Silent
from lockgate.running.settle import resume
from lockgate.running.state import RunState
from lockgate.storage.local import LocalStorage
from support.arrow_run import arrow_run, export, snapshot
from support.faults import FaultyStorage, run_in_child, was_killed
from support.leftovers import leftovers

FIRST, SECOND = "2026-01-01T00-00-00-aaaa", "2026-01-02T00-00-00-bbbb"
ONE = pa.table({"id": [1]})
TWO = pa.table({"id": [2]})


def clock() -> datetime:
    return datetime(2026, 1, 3, tzinfo=UTC)


def exports(table: pa.Table) -> list:
    return [(export("out/a.csv", "CSV"), table), (export("out/b.csv", "CSV"), table)]


def finish(project: Path, run: str = FIRST):
    return resume(run, RunState(project / ".lockgate"), Surroundings(LocalStorage()), Silent(), clock)


def block(project: Path, name: str) -> None:
    """Make publishing a file impossible: a folder that is not empty stands where it should go."""
    (project / "out" / name).mkdir(parents=True)
    (project / "out" / name / "x").write_text("")


def partly_published(project: Path) -> None:
    run = arrow_run(project, exports(ONE), run=FIRST)
    seal = run._publish

    def publish() -> None:
        block(project, "b.csv")  # appears after staging, as another program could make it appear
        seal()

    run._publish = publish  # type: ignore[method-assign]
    with pytest.raises(PartialPublish) as caught:
        run.execute()
    assert caught.value.exit_code == 3
    assert "published 1 of 2" in caught.value.render()
    assert f"lockgate resume {FIRST}" in caught.value.render()
    assert caught.value.result.status == "partial"
    assert [e.status for e in caught.value.result.exports] == ["published", "failed"]


def unblock(project: Path) -> None:
    (project / "out/b.csv/x").unlink()
    (project / "out/b.csv").rmdir()


def test_resume_finishes_once_the_reason_is_gone(tmp_path: Path) -> None:
    partly_published(tmp_path)
    with pytest.raises(PartialPublish):
        finish(tmp_path)
    unblock(tmp_path)
    result = finish(tmp_path)
    assert [e.status for e in result.exports] == ["published", "published"]
    assert (tmp_path / "out/b.csv").read_text() == "id\n1\n"
    assert leftovers(tmp_path) == []
    before = snapshot(tmp_path)
    assert finish(tmp_path).exit_code == 0
    assert snapshot(tmp_path) == before


def test_the_next_run_settles_the_interrupted_one_first(tmp_path: Path) -> None:
    partly_published(tmp_path)
    with pytest.raises(PreviousRunUnfinished, match="cannot be finished") as caught:
        arrow_run(tmp_path, exports(TWO), run=SECOND).execute()
    assert caught.value.exit_code == caught.value.result.exit_code == 3
    assert RunState(tmp_path / ".lockgate").run(SECOND).status == "failed"
    assert "the new run was not started" in caught.value.render()
    assert (tmp_path / "out/a.csv").read_text() == "id\n1\n"
    unblock(tmp_path)
    arrow_run(tmp_path, exports(TWO), run="2026-01-02T00-00-00-cccc").execute()
    assert RunState(tmp_path / ".lockgate").run(FIRST).status == "published"
    assert (tmp_path / "out/b.csv").read_text() == "id\n2\n"
    assert leftovers(tmp_path) == []


def test_a_superseded_run_says_so(tmp_path: Path) -> None:
    partly_published(tmp_path)
    unblock(tmp_path)
    arrow_run(tmp_path, exports(TWO), run=SECOND, supersede=True).execute()
    with pytest.raises(ResumeError, match=f"superseded by run {SECOND}") as caught:
        finish(tmp_path)
    assert caught.value.exit_code == 1
    assert leftovers(tmp_path) == []


def test_another_pipeline_does_not_touch_it(tmp_path: Path) -> None:
    partly_published(tmp_path)
    arrow_run(tmp_path, [(export("other/c.csv", "CSV"), TWO)], run=SECOND, pipeline="other.sql").execute()
    assert RunState(tmp_path / ".lockgate").run(FIRST).status == "partial"
    unblock(tmp_path)
    assert finish(tmp_path).exit_code == 0


def test_a_run_that_died_while_staging_is_swept_and_cannot_be_resumed(tmp_path: Path) -> None:
    status = run_in_child(
        lambda: arrow_run(tmp_path, exports(ONE), run=FIRST, storage=FaultyStorage(12, "kill before")).execute()
    )
    assert was_killed(status)
    assert leftovers(tmp_path) != []
    with pytest.raises(ResumeError, match="never finished staging") as caught:
        finish(tmp_path)
    assert "lockgate run p.sql" in caught.value.render()
    assert leftovers(tmp_path) == []
    assert not (tmp_path / "out").exists()
    with pytest.raises(ResumeError):
        finish(tmp_path)


def test_a_run_at_work_cannot_be_resumed_nor_swept(tmp_path: Path) -> None:
    state = RunState(tmp_path / ".lockgate")
    state.begin(FIRST, "p.sql", "dev", "2026-01-01")
    with state.run_lock(FIRST) as lock:
        assert lock.try_acquire()
        with pytest.raises(ResumeError, match="still at work"):
            finish(tmp_path)
        arrow_run(tmp_path, exports(TWO), run=SECOND).execute()
        assert state.run(FIRST).status == "running"


def test_an_unknown_run(tmp_path: Path) -> None:
    with pytest.raises(ResumeError, match="there is no run nope"):
        finish(tmp_path, "nope")


def test_staged_data_that_was_deleted_is_said(tmp_path: Path) -> None:
    partly_published(tmp_path)
    unblock(tmp_path)
    import shutil

    shutil.rmtree(next((tmp_path / "out").glob(".staging_*")))
    with pytest.raises(PartialPublish, match="is gone"):
        finish(tmp_path)


def test_the_record_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    state = RunState(tmp_path / ".lockgate")
    state.begin(FIRST, "p.sql", "dev", "2026-01-01")
    with sqlite3.connect(tmp_path / ".lockgate/state.db") as db:
        db.execute("PRAGMA user_version = 99")
    with pytest.raises(StateError, match="newer Lockgate"):
        state.runs()


def test_a_damaged_record_is_an_error_and_not_a_crash(tmp_path: Path) -> None:
    (tmp_path / ".lockgate").mkdir()
    (tmp_path / ".lockgate/state.db").write_bytes(os.urandom(4096))
    with pytest.raises(StateError, match="cannot be used"):
        arrow_run(tmp_path, exports(ONE)).execute()
    assert not (tmp_path / "out").exists()


def test_no_value_of_a_variable_is_stored(tmp_path: Path) -> None:
    arrow_run(tmp_path, exports(ONE), run=FIRST).execute()
    stored = (tmp_path / ".lockgate/state.db").read_bytes()
    assert os.environ.get("PATH", "/").encode() not in stored


def test_a_run_killed_while_it_discards_is_not_published_by_resume(tmp_path: Path) -> None:
    """Its first export could not be published, so it gave up; dying then must not turn into success."""
    (tmp_path / "out").mkdir()

    def work() -> None:
        class KilledAtTheFirstRemoval(FaultyStorage):
            def _do(self, step, path, action):
                if step == "remove_tree":
                    self.at, self.fault = len(self.steps), "kill before"
                return super()._do(step, path, action)

        run = arrow_run(tmp_path, exports(ONE), run=FIRST, storage=KilledAtTheFirstRemoval())
        publish = run._publish
        run._publish = lambda: (block(tmp_path, "a.csv"), publish())  # type: ignore[method-assign,assign]
        run.execute()

    assert was_killed(run_in_child(work))
    with pytest.raises(ResumeError, match="failed before anything was published"):
        finish(tmp_path)
    assert not (tmp_path / "out/b.csv").exists()
    arrow_run(tmp_path, [(export("out/c.csv", "CSV"), TWO)], run=SECOND).execute()
    assert leftovers(tmp_path) == []


def test_a_superseding_run_killed_in_the_middle_does_not_publish_the_old_one(tmp_path: Path) -> None:
    partly_published(tmp_path)
    unblock(tmp_path)

    def work() -> None:
        run = arrow_run(tmp_path, exports(TWO), run=SECOND, supersede=True, storage=FaultyStorage(0, "kill before"))
        run.execute()

    assert was_killed(run_in_child(work))
    with pytest.raises(ResumeError, match="superseded"):
        finish(tmp_path)
    assert not (tmp_path / "out/b.csv").exists()


def test_settling_goes_by_the_record_as_it_is_under_the_lock(tmp_path: Path) -> None:
    """Between listing the runs and locking one, it may have begun to publish and died."""
    partly_published(tmp_path)
    unblock(tmp_path)
    run = arrow_run(tmp_path, exports(TWO), run=SECOND)
    stale = [replace(r, status="running") for r in run.state.unsettled()]
    run.state.unsettled = lambda: stale  # type: ignore[method-assign]
    run.execute()
    assert run.state.run(FIRST).status == "published"
    assert (tmp_path / "out/b.csv").read_text() == "id\n2\n"


def test_a_new_run_waits_for_an_older_one_that_is_being_finished(tmp_path: Path, monkeypatch) -> None:
    partly_published(tmp_path)
    unblock(tmp_path)
    state = RunState(tmp_path / ".lockgate")
    monkeypatch.setattr(settle, "_TURN", 0.05)
    with state.run_lock(FIRST) as lock:
        assert lock.try_acquire()
        with pytest.raises(PreviousRunUnfinished, match="another process is still publishing it"):
            arrow_run(tmp_path, exports(TWO), run=SECOND).execute()
    assert (tmp_path / "out/a.csv").read_text() == "id\n1\n"


def test_two_runs_with_one_id_do_not_touch_each_other(tmp_path: Path) -> None:
    partly_published(tmp_path)
    before = snapshot(tmp_path)
    with pytest.raises(StateError):
        arrow_run(tmp_path, exports(TWO), run=FIRST).execute()
    with RunState(tmp_path / ".lockgate").run_lock(FIRST) as lock:
        assert lock.try_acquire()
        with pytest.raises(StateError, match="another run has the id"):
            arrow_run(tmp_path, exports(TWO), run=FIRST).execute()
    assert snapshot(tmp_path) == before
    unblock(tmp_path)
    assert finish(tmp_path).exit_code == 0


@pytest.mark.parametrize(("failing", "published"), [("export_published", 0), ("finish", 2)])
def test_a_record_that_cannot_be_written_while_publishing_is_exit_3(
    tmp_path: Path, failing: str, published: int
) -> None:
    run = arrow_run(tmp_path, exports(ONE), run=FIRST)

    def broken(*_: object, **__: object) -> None:
        raise StateError("database is locked")

    setattr(run.state, failing, broken)
    with pytest.raises(PartialPublish, match="database is locked") as caught:
        run.execute()
    assert caught.value.exit_code == 3
    assert f"published {published} of 2" in caught.value.render()
    assert f"lockgate resume {FIRST}" in caught.value.render()
    assert finish(tmp_path).exit_code == 0
    assert [(tmp_path / f"out/{n}.csv").read_text() for n in "ab"] == ["id\n1\n", "id\n1\n"]
    assert leftovers(tmp_path) == []


def test_an_interrupt_says_what_is_in_place(tmp_path: Path) -> None:
    run = arrow_run(tmp_path, exports(ONE), run=FIRST)

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    run.state.export_published = interrupted  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        run.execute()
    assert isinstance(run.ending, PartialPublish)
    assert finish(tmp_path).exit_code == 0


def test_what_cannot_be_removed_does_not_keep_the_rest_nor_another_pipeline(tmp_path: Path) -> None:
    class Stuck(FaultyStorage):
        def _do(self, step, path, action):
            if step == "remove_tree" and path.name.endswith("-2"):
                self.at, self.fault = len(self.steps), "EIO"
            return super()._do(step, path, action)

    status = run_in_child(
        lambda: arrow_run(tmp_path, exports(ONE), run=FIRST, storage=FaultyStorage(20, "kill before")).execute()
    )
    assert was_killed(status)
    other = [(export("other/c.csv", "CSV"), TWO)]
    arrow_run(tmp_path, other, run=SECOND, pipeline="other.sql", storage=Stuck()).execute()
    assert [p.name for p in (tmp_path / "out").iterdir()] == [f".staging_{FIRST}-2"]
    arrow_run(tmp_path, other, run="2026-01-03T00-00-00-cccc", pipeline="other.sql").execute()
    assert leftovers(tmp_path) == []


def test_a_project_that_cannot_hold_the_record_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / ".lockgate").write_text("a file")
    with pytest.raises(LockgateError, match=r"\.lockgate"):
        arrow_run(tmp_path, exports(ONE)).execute()
    assert not (tmp_path / "out").exists()
