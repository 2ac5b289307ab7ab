"""What a run tells of its keyed steps: which one failed, when, and what each did."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

import lockgate
from lockgate.config import load_project
from lockgate.running.entry import make_run
from lockgate.running.frames import Frames
from lockgate.running.progress import Silent
from support.arrow_run import arrow_run, export

OUT = 'EXPORT t TO "out/t.parquet" TYPE PARQUET MODE REPLACE;\n'


class Lines(Silent):
    def __init__(self) -> None:
        self.lines: list[tuple[str, ...]] = []

    def done(self, what: str, detail: str = "") -> None:
        self.lines.append(("done", what, detail))

    def failed(self, what: str, detail: str) -> None:
        self.lines.append(("failed", what, detail))


@pytest.mark.parametrize(
    ("query", "kind", "said"),
    [
        ("SELECT id % 2 AS id FROM range(3)", lockgate.DuplicateKeyError, "its rows cannot be merged"),
        ("SELECT CAST('x' || id AS INT) AS id FROM range(3)", lockgate.QueryError, "its rows cannot be computed"),
    ],
)
def test_the_step_whose_rows_are_refused_is_the_one_that_failed(spark, project, monkeypatch, query, kind, said):
    clock = [0.0]
    check = Frames.check_rows

    def slow(frames: Frames, number: int) -> None:
        clock[0] += 60.0
        check(frames, number)

    monkeypatch.setattr(Frames, "check_rows", slow)
    monkeypatch.setattr("lockgate.running.pipeline.time", SimpleNamespace(perf_counter=lambda: clock[0]))
    (project / "p.sql").write_text(
        f"""CREATE TABLE t MODE INSERT KEY (id) AS SELECT 1 AS id;
            CREATE TABLE t MODE UPSERT KEY (id) AS {query};
            CREATE TABLE u AS SELECT * FROM t;
            {OUT}"""
    )
    told = Lines()
    with pytest.raises(kind) as caught:
        make_run("p.sql", load_project(), spark=spark, progress=told).execute()
    steps = [(s.name, s.status, s.seconds) for s in caught.value.result.steps]
    assert steps == [
        ("t", "ready", 60.0),
        ("t", "failed", 60.0),
        ("u", "ready", 0.0),
        ("out/t.parquet", "pending", 0.0),
    ]
    assert told.lines == [("done", "t", "its rows can be merged"), ("failed", "t", said)]


@pytest.mark.parametrize(
    ("clause", "said"),
    [
        ("UPSERT KEY (idd, v)", 'the query has no key column "idd"; its columns are "id", "v"\n'),
        ("UPSERT KEY (ID)", 'the query has no key column "ID"; its columns are "id", "v"\n'),
        (
            "DEDUPLICATE KEY (id) ORDER BY when DESC",
            'the query has no ORDER BY column "when"; its columns are "id", "v"\n',
        ),
    ],
)
def test_a_column_that_is_not_there_is_found_before_any_row_is_computed(run_sql, project, clause, said):
    fails = "SELECT id, raise_error('computed') AS v FROM range(2)"
    with pytest.raises(lockgate.SchemaMismatchError) as caught:
        run_sql(
            f"CREATE TABLE t MODE UPSERT KEY (id) AS {fails};\n{OUT}"
            f"EXPORT {fails} TO 'x.csv' TYPE CSV MODE REPLACE;\n"
            f"EXPORT {fails} TO 'lake' TYPE PARQUET MODE {clause};\n"
        )
    shown = caught.value.render()
    assert f"pipeline.sql:4:1: {said}" in shown
    assert "now: nothing was published; every destination is as it was" in shown
    assert [e.status for e in caught.value.result.exports] == ["skipped", "skipped", "failed"]
    assert [s.status for s in caught.value.result.steps] == ["ready", "pending", "pending", "failed"]
    assert sorted(p.name for p in project.iterdir()) == [".lockgate", "pipeline.sql"]


def test_runs_shows_what_a_keyed_export_did_and_by_which_engine(project):
    def table(*ids: int) -> Any:
        return pa.table({"id": list(ids), "v": ["x"] * len(ids)})

    lockgate.merge(table(1, 2, 3), project / "lake", strategy="insert", key_columns="id")
    merged = export("lake", "PARQUET", "FULL_MERGE", keys=["id"], engine="duckdb")
    ended = arrow_run(project, [(merged, table(2, 9)), (export("x.csv", "CSV"), table(1))]).execute()
    told = subprocess.run(
        [sys.executable, "-m", "lockgate", "runs", ended.run], cwd=project, capture_output=True, text=True, check=True
    ).stdout
    assert (
        "  PARQUET FULL_MERGE lake: published, "
        "rows inserted 1, updated 1, deleted 2; files rewritten 1, added 1, preserved 0; by duckdb\n"
    ) in told
    assert "  CSV REPLACE x.csv: published, rows 1\n" in told
