"""Watermarks in the record of runs, and what they make of late and equal values. No Spark."""

from __future__ import annotations

import sqlite3
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from importlib.resources import files
from pathlib import Path

import pytest

from lockgate.errors import WatermarkMoved
from lockgate.running.state import RunState
from lockgate.sources.watermark import (
    PendingWatermark,
    Watermark,
    looked_back,
    moved,
    parse_value,
    read_from,
    text_of,
)


def mark(value: str, since: str | None = None) -> Watermark:
    return Watermark("id", "number", value, since or value, (("id", '"long"'),), {"ab": 2})


def begun(state: RunState, run: str, profile: str = "dev") -> str:
    state.begin(run, "p.sql", profile, "2026-01-01T00:00:00")
    return run


def finish(state: RunState, run: str, status: str) -> None:
    state.finish(run, status, finished="2026-01-01T00:00:01", exit_code=0, error=None, result=None)


def test_it_moves_with_the_record_that_the_run_is_published(tmp_path: Path) -> None:
    state = RunState(tmp_path)
    run = begun(state, "1")
    state.publishing(run, {}, {}, {"s": PendingWatermark(0, mark("7"))})
    assert state.watermarks("p.sql", "dev") == {}
    assert state.pending_watermarks(run) == {"s": PendingWatermark(0, mark("7"))}
    finish(state, run, "partial")
    assert state.watermarks("p.sql", "dev") == {}
    finish(state, run, "published")
    finish(state, run, "published")  # as a second resume would
    (stored,) = state.watermarks("p.sql", "dev").values()
    assert (stored.version, stored.watermark) == (1, mark("7"))
    assert state.watermarks("p.sql", "prod") == {}
    assert state.watermarks("q.sql", "dev") == {}


@pytest.mark.parametrize("ending", ["published", "partial", "publishing", "failed", "superseded"])
def test_two_runs_that_have_read_the_same_rows(tmp_path: Path, ending: str) -> None:
    """The later one publishes only where the earlier one published nothing, and never will."""
    state = RunState(tmp_path)
    first, second, elsewhere = begun(state, "1"), begun(state, "2"), begun(state, "3", "prod")
    state.publishing(first, {}, {}, {"s": PendingWatermark(0, mark("7"))})
    if ending == "superseded":
        state.supersede(first, "2")
    elif ending != "publishing":
        finish(state, first, ending)
    state.publishing(elsewhere, {}, {}, {"s": PendingWatermark(0, mark("6"))})
    if ending in ("failed", "superseded"):
        state.publishing(second, {}, {}, {"s": PendingWatermark(0, mark("8"))})
        finish(state, second, "published")
        assert state.watermarks("p.sql", "dev")["s"].watermark == mark("8")
        return
    with pytest.raises(WatermarkMoved, match="run 1"):
        state.publishing(second, {}, {}, {"s": PendingWatermark(0, mark("8"))})
    record = state.run(second)
    assert record is not None
    assert (record.status, record.watermarks) == ("running", {})
    state.publishing(second, {}, {}, {"other": PendingWatermark(0, mark("8"))})


def test_a_record_of_the_first_version_is_brought_up(tmp_path: Path) -> None:
    database = sqlite3.connect(tmp_path / "state.db")
    database.executescript(files("lockgate.running").joinpath("state.sql").read_text())
    database.execute(
        "INSERT INTO runs (id, pipeline, profile, started, status) VALUES ('1', 'p', 'dev', 't', 'failed')"
    )
    database.execute("PRAGMA user_version = 1")
    database.commit()
    database.close()
    state = RunState(tmp_path)
    record = state.run("1")
    assert record is not None
    assert record.watermarks == {}
    run = begun(state, "2")
    state.publishing(run, {}, {}, {"s": PendingWatermark(0, mark("7"))})
    finish(state, run, "published")
    assert RunState(tmp_path).watermarks("p.sql", "dev")["s"].version == 1


def test_values() -> None:
    moment = datetime(2026, 1, 31, 12, 0, 0, 1, tzinfo=UTC)
    for value, kind in (
        (Decimal("99999999999999999999999999999999999999"), "number"),
        (Decimal("1E+3"), "number"),
        (date(2026, 1, 31), "date"),
        (moment, "timestamp"),
        (moment.replace(tzinfo=None), "timestamp_ntz"),
        ("it's", "string"),
    ):
        assert parse_value(text_of(value), kind) == value
    for text, kind in (("NaN", "number"), ("x", "number"), ("x", "date"), ("2026-01-01T00:00Z", "timestamp_ntz")):
        with pytest.raises(ValueError):
            parse_value(text, kind)
    assert looked_back(Decimal("1" + "0" * 36 + "1"), Decimal(1)) == Decimal("1" + "0" * 37)
    assert looked_back(date(2026, 1, 31), timedelta(hours=1)) == date(2026, 1, 30)
    assert looked_back(datetime(1, 1, 1, tzinfo=UTC), timedelta(days=1)) == datetime(1, 1, 1, tzinfo=UTC)


def test_a_watermark_never_goes_back_and_never_remembers_more_than_it_does() -> None:
    before = mark("100", "90")
    assert moved(before, Decimal(95), "number", Decimal(10)) == (100, 90)
    assert moved(before, Decimal(103), "number", Decimal(50)) == (103, 90)
    assert moved(before, Decimal(200), "number", Decimal(50)) == (200, 150)
    assert moved(None, Decimal(200), "number", None) == (200, 200)
    assert read_from(before, "number", Decimal(50)) == 90
    assert read_from(before, "number", Decimal(5)) == 95
    assert read_from(before, "number", None) == 100
