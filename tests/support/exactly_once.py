"""A pipeline with an incremental source, three DELTA exports and a PostgreSQL export, whose runs are killed; and a
reader that looks at the three tables all the while. The rows are the numbers from 1 on."""

from __future__ import annotations

import json
import os
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from functools import lru_cache
from itertools import count
from pathlib import Path
from typing import Any

import deltalake
import psycopg
import pyarrow as pa
import pyarrow.parquet as pq

from lockgate.config import Connection, Profile, Project
from lockgate.language.statements import SourceStep
from lockgate.plan.steps import Plan, Step
from lockgate.running.log_watermarks import with_those_of_the_log
from lockgate.running.state import RunState
from lockgate.sources.watermark import PendingWatermark, StoredWatermark, Watermark
from support import merge_processes as processes
from support.arrow_run import ArrowRun, export
from support.kill_points import Passed, Point, watch
from support.leftovers import leftovers

PIPELINE, SOURCE = "p.sql", "events"
TABLES = ("sales.a", "sales.b", "c")


@dataclass(frozen=True)
class Place:
    """Where a pipeline writes: a project, a database and the log."""

    folder: Path
    server: str = ""  # none: the Delta tables alone
    log: str = "sqlite:///.lockgate/log.db"
    warehouse: str = "warehouse"
    tables: tuple[str, ...] = TABLES

    @property
    def profile(self) -> Profile:
        connections = {"pg": Connection("pg", "postgres", {"url": self.server})}
        return Profile(log=self.log, warehouse=self.warehouse, connections=connections)

    @property
    def plan(self) -> Plan:
        exports = [export(name, "DELTA", "APPEND") for name in self.tables]
        if self.server:
            exports.append(export("public.t", "POSTGRES", "APPEND", connection="pg"))
        source = SourceStep(name=SOURCE, connector_type="CSV", params={"cursor": "id"})
        steps = [Step(SOURCE, "source", source), *(Step(step.label, "export", step) for step in exports)]
        return Plan(PIPELINE, tuple(steps))


class IncrementalRun(ArrowRun):
    """Takes what is beyond the watermark when it reads: after earlier runs are settled, as a real one."""

    upto = 0
    takes: Callable[[int], bool] = staticmethod(lambda _: True)  # which rows its queries let through

    def _stage_and_check(self) -> None:
        recorded = self.state.watermarks(PIPELINE, self.project.profile.name)
        known = with_those_of_the_log(self.plan, self.project, recorded)
        if known != recorded:
            self.state.adopt_watermarks(PIPELINE, self.project.profile.name, known)
        stored = known.get(SOURCE, StoredWatermark())
        read = int(stored.watermark.value) if stored.watermark else 0
        ids = pa.array([n for n in range(read + 1, self.upto + 1) if self.takes(n)], pa.int64())
        wide = pa.table({"id": ids, "x": pa.array([f"x{n}" for n in ids.to_pylist()], pa.string())})
        self.tables = [wide.select(["id"]) if number == 1 else wide for number in range(len(self._exports))]
        mark = Watermark("id", "number", str(self.upto), str(self.upto))
        self._watermarks = {SOURCE: PendingWatermark(stored.version, mark)}
        super()._stage_and_check()


def ready(place: Place, run: int, upto: int, takes: Callable[[int], bool] = lambda _: True) -> IncrementalRun:
    """A run that brings the rows up to a number, or those of them that it takes."""
    project = Project(place.folder, place.profile)
    made = IncrementalRun(
        plan=place.plan,
        project=project,
        run=f"2026-01-{run:02}T00-00-00-aaaa",
        open_session=lambda: None,  # type: ignore[arg-type,return-value]
        state=RunState(project.state),
    )
    made.upto, made.takes = upto, takes  # type: ignore[method-assign]
    return made


def execute(place: Place, run: int, upto: int) -> None:
    ready(place, run, upto).execute()


def _watched(place: Place, run: int, upto: int, at: Point | None) -> None:
    passed = Passed(at)
    watch(passed)
    execute(place, run, upto)
    (place.folder / "passed.json").write_text(json.dumps(passed.points))


def points_of(place: Place, run: int, upto: int) -> list[Point]:
    """The points that a run passes, which comes to its end."""
    assert processes.run(_watched, place, run, upto, None) == 0
    told = place.folder / "passed.json"
    points = [(what, number) for what, number in json.loads(told.read_text())]
    told.unlink()
    return points


def kill(place: Place, run: int, upto: int, at: Point) -> None:
    code = processes.run(_watched, place, run, upto, at)
    assert processes.was_killed(code), f"the point {at} was not reached: {code}"


def assert_each_row_once(place: Place, upto: int, told: Any = None) -> None:
    """In every table, as the log, other readers of Delta tables and the server have it; and nothing left over."""
    ids = list(range(1, upto + 1))
    assert on_the_server(place) == ids, told
    found, mark = of_the_log(place)
    assert found == dict.fromkeys(TABLES, ids), told
    assert mark == upto, told
    assert int(RunState(place.folder / ".lockgate").watermarks(PIPELINE, "dev")[SOURCE].watermark.value) == upto
    for name in TABLES:
        folder = place.folder / "warehouse" / name.replace(".", "/")
        read = deltalake.DeltaTable(str(folder))
        assert sorted(read.to_pyarrow_table()["id"].to_pylist()) == ids, (told, name)
        # A draft of a killed publisher has a hidden name, and is no commit to any reader.
        commits = sorted(p.name for p in (folder / "_delta_log").iterdir() if not p.name.startswith("."))
        assert commits == [f"{number:020}.json" for number in range(read.version() + 1)], (told, name)
        live = {Path(file).name for file in read.file_uris()}
        assert live <= {p.name for p in folder.glob("*.parquet")}, (told, name)
    assert leftovers(place.folder) == [], told


def on_the_server(place: Place) -> list[int]:
    with psycopg.connect(place.server) as connection:
        if connection.execute("SELECT to_regclass(%s)", ("public.t",)).fetchall() == [(None,)]:
            return []
        return [row[0] for row in connection.execute("SELECT id FROM public.t ORDER BY id").fetchall()]


_READ = (
    "SELECT t.name, t.location, a.path, (SELECT max(note) FROM dl_notes) FROM dl_tables t LEFT JOIN dl_add_files a"
    " ON a.table_id = t.table_id AND a.removed_version = 9223372036854775807 WHERE t.current_version >= 0"
)


def of_the_log(place: Place) -> tuple[dict[str, list[int]], int]:
    """The rows of each table and the watermark, by one read of the log."""
    if place.log.startswith("postgresql"):
        found = _asked(place.log)
    else:
        address = f"file:{place.folder / '.lockgate/log.db'}?mode=rw"
        try:
            with closing(sqlite3.connect(address, uri=True, timeout=30)) as file:
                found = file.execute(_READ).fetchall()
        except sqlite3.OperationalError as error:
            if "unable to open" in str(error) or "no such table" in str(error):  # not made yet
                return {}, 0
            raise
    rows: dict[str, list[int]] = {}
    mark = 0
    for name, location, path, note in found:
        rows.setdefault(name, [])
        if path is not None:
            rows[name] += pq.read_table(Path(location, path), partitioning=None)["id"].to_pylist()
        mark = int(json.loads(note)["value"]) if note else 0
    return {name: sorted(ids) for name, ids in rows.items()}, mark


@lru_cache(maxsize=1)
def _connected(url: str) -> psycopg.Connection[Any]:
    return psycopg.connect(url, autocommit=True)


def _asked(url: str) -> list[Any]:
    """A server makes a process for each connection, which a reader in a loop must not ask for each time."""
    there = _connected(url).execute("SELECT to_regclass('dl_notes') IS NOT NULL").fetchall() == [(True,)]
    return _connected(url).execute(_READ.encode()).fetchall() if there else []


class Reader:
    """A process that reads the three tables over and over, and tells when they are at odds."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process: Any = None

    def __enter__(self) -> Reader:
        self._folder.mkdir()
        self._say(None)
        self._process = processes.start(_read_on, self._folder)
        return self

    def look_at(self, place: Place | None) -> None:
        """At this place from now on; None: at none, so that what it has may go."""
        self._say(place and {"folder": str(place.folder), "server": place.server, "log": place.log})

    def __exit__(self, *_: object) -> None:
        self._say("stop")
        assert processes.end_of(self._process) == 0

    def findings(self) -> tuple[int, list[str], int]:
        """How often it has read, what it found wrong, and how many different states it saw."""
        told = json.loads((self._folder / "found").read_text())
        return told["reads"], told["wrong"], told["states"]

    def _say(self, what: Any) -> None:
        draft = self._folder / "draft"
        draft.write_text(json.dumps(what))
        os.replace(draft, self._folder / "orders")


def _read_on(folder: Path) -> None:
    wrong: list[str] = []
    states: set[tuple[str, int]] = set()
    for reads in count():
        time.sleep(0.003)  # leave the processors to those it watches
        orders = (folder / "orders").read_text()
        told = json.loads(orders)
        if told == "stop":
            (folder / "found").write_text(json.dumps({"reads": reads, "wrong": wrong, "states": len(states)}))
            return
        if told is None:
            continue
        place = Place(**{**told, "folder": Path(told["folder"])})
        try:
            found, mark = of_the_log(place)
            ids = list(range(1, mark + 1))
            at_odds = found != (dict.fromkeys(TABLES, ids) if mark else {})
            what = f"{place.folder.name}: the watermark {mark}, and the rows {found}"
        except Exception as error:
            at_odds, what = True, f"{place.folder.name}: {error!r}"
        if not at_odds:
            states.add((orders, mark))
        elif (folder / "orders").read_text() == orders:  # else the place may be gone
            wrong.append(what)
