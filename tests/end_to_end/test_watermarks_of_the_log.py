"""Incremental sources into Delta tables: the watermark is in the transaction that brings the rows."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import lockgate
from lockgate.errors import LockgateError
from lockgate.running.pipeline import PipelineRun
from lockgate.running.result import RunResult
from lockgate.running.state import RunState

TEXT = """SOURCE events TYPE CSV PARAMS {"path": "events.csv", "schema": "id INT, x STRING", "cursor": "id"};
LOAD new FROM events;
EXPORT new TO "a" TYPE DELTA MODE APPEND;
EXPORT SELECT id FROM new TO "b" TYPE DELTA MODE APPEND;
EXPORT new TO "out.csv" TYPE CSV MODE REPLACE;
"""


def bring(project: Path, ids: range) -> None:
    (project / "events.csv").write_text("id,x\n" + "".join(f"{i},x{i}\n" for i in ids))


def ids(table: str) -> list[int]:
    return sorted(lockgate.open_table(table).to_arrow(columns=["id"]).column("id").to_pylist())


def test_a_project_that_lost_its_record_goes_on_where_the_log_is(
    project: Path, run_sql: Callable[..., RunResult]
) -> None:
    bring(project, range(3))
    run_sql(TEXT)
    (project / ".lockgate/state.db").unlink()
    bring(project, range(5))
    run_sql(TEXT)
    shutil.rmtree(project / ".lockgate/locks")
    (project / ".lockgate/state.db").unlink()
    bring(project, range(6))
    run_sql(TEXT)
    assert ids("a") == ids("b") == list(range(6))


def test_a_run_that_dies_between_the_log_and_its_record(
    project: Path, run_sql: Callable[..., RunResult], monkeypatch: pytest.MonkeyPatch
) -> None:
    bring(project, range(3))
    before = RunState.export_published

    def die(*_: object) -> None:
        raise SystemError("power cut")

    monkeypatch.setattr(RunState, "export_published", die)
    with pytest.raises(LockgateError):
        run_sql(TEXT)
    monkeypatch.setattr(RunState, "export_published", before)
    assert ids("a") == [0, 1, 2]
    bring(project, range(4))
    run_sql(TEXT)  # settles the first one, and takes only what is new
    assert ids("a") == ids("b") == [0, 1, 2, 3]


def test_two_machines_do_not_publish_the_same_rows(
    project: Path, run_sql: Callable[..., RunResult], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another one, with a record of its own and the same log, is faster between reading and publishing."""
    bring(project, range(3))
    publish, mine = PipelineRun._publish, project / ".lockgate/state.db"

    def after_another(self: PipelineRun) -> None:
        monkeypatch.setattr(PipelineRun, "_publish", publish)
        mine.rename(project / "mine.db")
        run_sql(TEXT)
        (project / "mine.db").replace(mine)
        publish(self)

    monkeypatch.setattr(PipelineRun, "_publish", after_another)
    with pytest.raises(LockgateError, match="another run has published the rows of the source events"):
        run_sql(TEXT)
    assert ids("a") == ids("b") == [0, 1, 2]
