"""One pipeline on two machines, each with a record of runs of its own: the log decides how far the source was read."""

from __future__ import annotations

from pathlib import Path

import pytest

import lockgate
from lockgate.errors import LockgateError
from lockgate.running.pipeline import PipelineRun
from lockgate.running.state import RunState
from support.exactly_once import TABLES, Place, execute, ready
from support.leftovers import leftovers

RUN = "2026-01-02T00-00-00-aaaa"


@pytest.fixture
def machines(tmp_path: Path) -> tuple[Place, Place]:
    (tmp_path / "shared").mkdir()
    found = []
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
        log = f"sqlite:///{tmp_path}/shared/log.db"
        found.append(Place(tmp_path / name, log=log, warehouse=str(tmp_path / "shared/warehouse")))
    return found[0], found[1]


def rows(place: Place) -> list[list[int]]:
    found = _content(place)
    return [found[name] for name in TABLES]


def _content(place: Place) -> dict[str, list[int]]:
    found = {}
    for name in TABLES:
        with lockgate.open_table(name, log=place.log) as table:
            found[name] = sorted(table.to_arrow()["id"].to_pylist())
    return found


def test_a_run_whose_rows_are_all_filtered_out_moves_the_watermark_of_the_log(machines: tuple[Place, Place]) -> None:
    here, there = machines
    execute(here, 1, 2)
    for run, upto in ((2, 3), (3, 4)):
        ready(here, run, upto, takes=lambda n: n > 4).execute()  # nothing for any table, twice
    execute(there, 4, 8)  # reads beyond 4, as the log says
    execute(here, 5, 10)
    assert rows(here) == [[1, 2, 5, 6, 7, 8, 9, 10]] * 3
    execute(there, 6, 10)
    assert rows(here) == [[1, 2, 5, 6, 7, 8, 9, 10]] * 3


def test_a_dead_run_whose_rows_another_machine_has_published_is_given_up(
    machines: tuple[Place, Place], monkeypatch: pytest.MonkeyPatch
) -> None:
    here, there = machines
    execute(here, 1, 2)
    publishing = RunState.publishing

    def power_cut(*given: object) -> None:
        publishing(*given)
        raise SystemError("power cut")

    monkeypatch.setattr(RunState, "publishing", power_cut)
    monkeypatch.setattr(PipelineRun, "_failed", lambda _, error: error)
    with pytest.raises((LockgateError, SystemError)):
        execute(here, 2, 5)
    monkeypatch.undo()
    execute(there, 3, 6)
    execute(here, 4, 8)  # the dead run has nothing to add: the other one has published all of its rows
    assert rows(here) == [[1, 2, 3, 4, 5, 6, 7, 8]] * 3
    assert leftovers(here.folder.parent) == []
    assert [run.status for run in RunState(here.folder / ".lockgate").runs()] == ["published", "failed", "published"]
    assert all(export.status == "discarded" for export in RunState(here.folder / ".lockgate").exports(RUN))
