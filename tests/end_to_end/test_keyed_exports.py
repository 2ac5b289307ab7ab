"""EXPORT … MODE UPSERT and its like into Parquet folders, from text to merged files."""

from __future__ import annotations

import json
import subprocess
import sys
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lockgate
from lockgate.destinations import keyed_engine
from lockgate.modes import KEYED_MODES
from lockgate.running.pipeline import PipelineRun
from support.arrow_run import snapshot
from support.leftovers import leftovers
from support.merge_reading import data_files, values


def select(*rows: str, columns: str = "id, v") -> str:
    return f"SELECT * FROM VALUES {', '.join(rows)} AS t({columns})"


def pairs(by_id: dict[int, str]) -> str:
    return select(*(f"({key}, '{value}')" for key, value in by_id.items()))


def export(query: str, mode: str = "UPSERT KEY (id)", to: str = "lake", **options: Any) -> str:
    return f'EXPORT {query} TO "{to}" TYPE PARQUET OPTIONS {json.dumps(options)} MODE {mode};\n'


def old_rows(project: Path) -> None:
    """Two files of the types that Spark gives to whole numbers and texts in VALUES."""
    (project / "lake").mkdir()
    for number, ids in enumerate(([1, 2], [3])):
        table = pa.table({"id": pa.array(ids, pa.int32()), "v": ["old"] * len(ids)})
        pq.write_table(table, project / "lake" / f"{number}.parquet")


def done(result: Any) -> list[tuple[int, int, int]]:
    return [(e.inserted, e.updated, e.deleted) for e in result.exports]


MODES = {
    "UPSERT KEY (id)": ((1, 1, 0), {1: "old", 2: "new", 3: "old", 9: "new"}, (1, 1, 1)),
    "INSERT KEY (id)": ((1, 0, 0), {1: "old", 2: "old", 3: "old", 9: "new"}, (0, 1, 2)),
    "UPDATE KEY (id)": ((0, 1, 0), {1: "old", 2: "new", 3: "old"}, (1, 0, 1)),
    "FULL_MERGE KEY (id)": ((1, 1, 2), {2: "new", 9: "new"}, (1, 1, 0)),
    "DEDUPLICATE KEY (id) ORDER BY v": ((1, 1, 0), {1: "old", 2: "new", 3: "old", 9: "new"}, (1, 1, 1)),
}


@pytest.mark.parametrize(
    ("mode", "engine"), [("UPSERT KEY (id)", "auto"), *product(MODES, ("arrow", "DuckDB", "spark"))]
)
def test_every_mode_counts_what_it_did(run_sql, project, mode, engine):
    counts, rows, files = MODES[mode]
    old_rows(project)
    rows_given = ["(2, 'new')", "(9, 'new')"] + ["(2, 'zzz')"] * mode.startswith("DEDUPLICATE")
    result = run_sql(export(select(*rows_given), mode, engine=engine))
    assert done(result) == [counts]
    assert values(project / "lake", "id", "v") == rows
    [merged] = result.exports
    assert merged.rows == len(rows_given)
    assert tuple(merged.files.values()) == files
    assert merged.engine == ("arrow" if engine == "auto" else engine.lower())
    assert leftovers(project) == []


@pytest.mark.parametrize("mode", KEYED_MODES)
def test_a_dataset_that_is_not_there_yet(run_sql, project, mode):
    result = run_sql(export(pairs({1: "new"}), f"{mode} KEY (id)", "new/lake"))
    if mode == "UPDATE":
        assert done(result) == [(0, 0, 0)]
        assert not (project / "new").exists()
    else:
        assert done(result) == [(1, 0, 0)]
        assert values(project / "new/lake", "id", "v") == {1: "new"}


def test_a_pipeline_that_builds_on_its_own_result(run_sql, project):
    """The folder is read as a source, merged into, appended to and replaced, in one layout after the other."""
    text = """
        SOURCE before TYPE PARQUET PARAMS {"path": "lake"};
        LOAD before FROM before;
        EXPORT SELECT id, v || '+' AS v FROM before TO "lake" TYPE PARQUET MODE UPSERT KEY (id);
    """
    run_sql(export(pairs({1: "a", 2: "b"}), "REPLACE"))
    assert done(run_sql(text)) == [(0, 2, 0)]
    run_sql(export(pairs({3: "c"}), "APPEND"))
    run_sql(export(pairs({4: "d"}), "INSERT KEY (id)"))
    run_sql(export(pairs({5: "e"}), "APPEND"))
    assert done(run_sql(text)) == [(0, 5, 0)]
    assert values(project / "lake", "id", "v") == {1: "a++", 2: "b++", 3: "c+", 4: "d+", 5: "e+"}


@pytest.mark.parametrize(
    ("query", "clause", "error", "said"),
    [
        (select("(1, 'x')", "(NULL, 'y')"), "KEY (id)", lockgate.NullKeyError, "is NULL in 1 of 2"),
        (select("(1, 'x')", "(1, 'y')"), "KEY (id)", lockgate.DuplicateKeyError, "MODE DEDUPLICATE"),
        (select("(1, 'x')"), "KEY (idd)", lockgate.SchemaMismatchError, 'did you mean "id"'),
        (select("(1.5, 'x')"), "KEY (id)", lockgate.SchemaMismatchError, "1.5"),
        (select("(1, 'x', 2)", columns="id, v, w"), "KEY (id)", lockgate.SchemaMismatchError, "evolve"),
        (select("(1)", columns="id"), "KEY (id)", lockgate.SchemaMismatchError, 'no column "v"'),
        (select("(array(1), 'x')"), "KEY (id)", lockgate.SchemaMismatchError, "cannot be a key"),
    ],
)
def test_what_cannot_be_merged_is_refused_before_anything_is_published(run_sql, project, query, clause, error, said):
    old_rows(project)
    before = snapshot(project)
    with pytest.raises(error) as caught:
        run_sql(
            'EXPORT SELECT 1 AS x TO "out/first.csv" TYPE CSV MODE REPLACE;\n'
            + export(pairs({7: "x"}), to="new")
            + export(query, f"UPSERT {clause}")
        )
    shown = caught.value.render()
    assert said in shown
    assert "pipeline.sql:3:" in shown
    assert "nothing was published; every destination is as it was" in shown
    assert caught.value.exit_code == 1
    assert [e.status for e in caught.value.result.exports] == ["skipped", "skipped", "failed"]
    (project / "pipeline.sql").unlink()
    assert snapshot(project) == before
    assert sorted(p.name for p in project.iterdir()) == [".lockgate", "lake"]


def test_a_partitioned_dataset(run_sql, project):
    day = "DATE '2026-01-0{}'"
    first = select(*(f"({n}, 'old', {day.format(n)})" for n in (1, 2, 3)), columns="id, v, day")
    result = run_sql(export(first, partition_by=["day"]))
    assert result.exports[0].files == {"rewritten": 0, "added": 3, "preserved": 0}
    untouched = {p: p.stat().st_mtime_ns for p in data_files(project / "lake") if "day=2026-01-02" not in str(p)}
    assert len(untouched) == 2
    second = select(f"(2, 'new', {day.format(2)})", f"(4, 'new', {day.format(2)})", columns="id, v, day")
    result = run_sql(export(second))  # as the dataset is
    assert done(result) == [(1, 1, 0)]
    assert result.exports[0].files == {"rewritten": 1, "added": 1, "preserved": 2}
    assert {p: p.stat().st_mtime_ns for p in untouched} == untouched
    assert values(project / "lake", "id", "day")[4] == "2026-01-02"
    moved = select(f"(1, 'new', {day.format(3)})", columns="id, v, day")
    with pytest.raises(lockgate.PartitionMoveError, match="id=1") as caught:
        run_sql(export(moved, partition_by=["day"]))
    assert '"allow_partition_moves": true' in caught.value.render()
    result = run_sql(export(moved, allow_partition_moves=True))
    assert done(result) == [(0, 1, 0)]
    assert values(project / "lake", "id", "day")[1] == "2026-01-03"
    with pytest.raises(lockgate.SchemaMismatchError, match="is partitioned by day"):
        run_sql(export(moved, partition_by=["v"]))


def test_new_columns_with_evolve(run_sql, project, spark):
    """Also in files that Spark wrote, in whose footers it keeps a description of the columns of that time."""
    run_sql(export(pairs({1: "a", 2: "b"}), "REPLACE"))
    more = select("(1, 'A', 0.5D)", "(2, 'B', 1.5D)", "(3, 'C', NULL)", columns="id, v, w")
    result = run_sql(export(more, schema="evolve"))
    assert done(result) == [(1, 2, 0)]
    rows = spark.read.option("mergeSchema", "true").parquet(str(project / "lake")).orderBy("id").collect()
    assert [tuple(r) for r in rows] == [(1, "A", 0.5), (2, "B", 1.5), (3, "C", None)]


def test_wider_types_with_evolve(run_sql, project):
    run_sql(export(pairs({1: "a", 2: "b"}), "REPLACE"))
    wider = select("(2L, 'B')", "(5000000000L, 'C')")
    with pytest.raises(lockgate.SchemaMismatchError, match="5000000000"):
        run_sql(export(wider))
    assert done(run_sql(export(wider, schema="evolve"))) == [(1, 1, 0)]
    assert values(project / "lake", "id", "v") == {1: "a", 2: "B", 5000000000: "C"}


def test_rows_that_are_equal_already_are_left_alone(run_sql, project):
    old_rows(project)
    before = snapshot(project / "lake")
    same = pairs({1: "old", 3: "old"})
    result = run_sql(export(same, skip_unchanged=True))
    assert done(result) == [(0, 0, 0)]
    assert result.exports[0].files == {"rewritten": 0, "added": 0, "preserved": 2}
    assert snapshot(project / "lake") == before
    assert done(run_sql(export(same))) == [(0, 2, 0)]


def test_new_files_are_as_the_options_say(run_sql, project):
    run_sql(export("SELECT id FROM range(5)", "INSERT KEY (id)", compression="zstd", max_rows_per_file=2))
    files = [pq.read_metadata(p) for p in data_files(project / "lake")]
    assert sorted(f.num_rows for f in files) == [1, 2, 2]
    assert {f.row_group(0).column(0).compression for f in files} == {"ZSTD"}
    assert b"org.apache.spark.sql.parquet.row.metadata" not in (files[0].metadata or {})


def test_the_staged_rows_may_come_from_a_folder_of_the_profile(run_sql, project):
    (project / "lockgate.toml").write_text('[profile.dev]\nstaging = "scratch"\n')
    old_rows(project)
    result = run_sql(export(pairs({2: "new"}), "UPDATE KEY (id)"))
    assert done(result) == [(0, 1, 0)]
    assert leftovers(project) == []


def test_a_check_that_fails_merges_nothing(run_sql, project):
    old_rows(project)
    before = snapshot(project / "lake")
    with pytest.raises(lockgate.CheckFailed):
        run_sql(export(pairs({2: "new"})) + "CHECK c AS SELECT 1;")
    assert snapshot(project / "lake") == before
    assert leftovers(project) == []


def test_resume_on_the_command_line_says_what_was_merged(run_sql, project, monkeypatch):
    """The second export cannot be published at first; by the time it can, somebody else has merged."""
    old_rows(project)
    (project / "lake").rename(project / "lake2")
    old_rows(project)
    journal = project / "lake2/.lockgate_journal"
    publish = PipelineRun._publish

    def with_a_damaged_journal(run: PipelineRun) -> None:
        journal.write_text("{")
        publish(run)

    with monkeypatch.context() as patch:
        patch.setattr(PipelineRun, "_publish", with_a_damaged_journal)
        with pytest.raises(lockgate.PartialPublish) as caught:
            run_sql(export(pairs({2: "new"})) + export(pairs({2: "new", 4: "new"}), to="lake2"))
    run = caught.value.result.run
    assert [e.status for e in caught.value.result.exports] == ["published", "failed"]
    journal.unlink()
    theirs = pa.table({"id": pa.array([4], pa.int32()), "v": ["theirs"]})
    lockgate.merge(theirs, "lake2", strategy="insert", key_columns="id")
    command = [sys.executable, "-m", "lockgate", "resume", run]
    ended = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert "PARQUET UPSERT lake: rows inserted 0, updated 1, deleted 0; files rewritten 1" in ended.stdout
    assert "PARQUET UPSERT lake2: rows inserted 0, updated 2, deleted 0; files rewritten 2" in ended.stdout
    assert "by arrow" in ended.stdout
    told = json.loads(subprocess.run([*command, "--json"], cwd=project, capture_output=True, check=True).stdout)
    assert [e["updated"] for e in told["exports"]] == [1, 2]
    assert [e["engine"] for e in told["exports"]] == ["arrow", "arrow"]
    assert leftovers(project) == []


def test_check_refuses_what_can_be_known_before_a_run(project):
    (project / "p.sql").write_text(
        """CREATE TABLE t AS SELECT 1 AS id;
EXPORT t TO "a" TYPE PARQUET OPTIONS {"engine": "pandas"} MODE UPSERT KEY (id);
EXPORT t TO "b" TYPE PARQUET OPTIONS {"schema": "loose", "skip_unchanged": 1} MODE UPSERT KEY (id);
EXPORT t TO "c" TYPE PARQUET OPTIONS {"allow_partition_moves": "no", "partition_by": ["id", "ID"]} MODE UPDATE KEY (id);
EXPORT t TO "d" TYPE PARQUET OPTIONS {"engine": "arrow"} MODE APPEND;
EXPORT t TO "e" TYPE PARQUET MODE DEDUPLICATE KEY (id) ORDER BY length(v) DESC;
EXPORT t TO "f.parquet" TYPE PARQUET MODE UPSERT KEY (id);
EXPORT t TO "g" TYPE PARQUET MODE UPSERT KEY (id);
EXPORT t TO "g" TYPE PARQUET MODE FULL_MERGE KEY (id);
"""
    )
    command = [sys.executable, "-m", "lockgate", "check", "p.sql", "--json"]
    ended = subprocess.run(command, cwd=project, capture_output=True, check=False)
    assert ended.returncode == 2
    found = [(e["line"], e["column"], e["code"]) for e in json.loads(ended.stdout)["errors"]]
    assert found == [
        (2, 39, "bad-option"),
        (3, 39, "bad-option"),
        (3, 58, "bad-option"),
        (4, 39, "bad-option"),
        (4, 70, "bad-option"),
        (5, 39, "unknown-option"),
        (6, 35, "mode"),
        (7, 43, "mode-unsupported"),
        (9, 13, "duplicate"),
    ]


def test_check_needs_neither_arrow_nor_an_engine(project):
    (project / "p.sql").write_text(
        'EXPORT SELECT 1 AS id TO \'lake\' TYPE PARQUET OPTIONS {"engine": "duckdb"} '
        "MODE DEDUPLICATE KEY (id) ORDER BY id DESC;"
    )
    script = (
        "import sys; from lockgate.cli.app import app\n"
        "try: app(['check', 'p.sql'])\n"
        "except SystemExit as end: print(end.code, {'pyarrow', 'duckdb', 'pyspark'} & set(sys.modules))"
    )
    ended = subprocess.run([sys.executable, "-c", script], cwd=project, capture_output=True, text=True, check=True)
    assert ended.stdout.splitlines()[-1] == "0 set()"


def test_many_rows_are_merged_by_spark(run_sql, monkeypatch, caplog):
    monkeypatch.setattr(keyed_engine, "SMALL", 1)
    run_sql(export(pairs({1: "a", 2: "b"})))
    with caplog.at_level("INFO", "lockgate.merge"):
        (merged,) = run_sql(export(pairs({2: "B", 3: "c"}))).exports
    assert (merged.engine, merged.inserted, merged.updated) == ("spark", 1, 1)
    assert "auto: the Spark engine, because the rows to merge are many" in caplog.text


@pytest.mark.parametrize(("most", "engine", "reason"), [(1, "spark", "the dataset is large"), (
    2**30, "arrow", "the rows to merge are few")])  # fmt: skip
def test_on_a_cluster_the_size_of_the_dataset_counts(run_sql, monkeypatch, caplog, most, engine, reason):
    run_sql(export(pairs({1: "a", 2: "b"})))
    monkeypatch.setattr(keyed_engine, "SMALL_DATASET", most)
    monkeypatch.setattr("lockgate.engines.spark_session.is_local", lambda _: False)
    with caplog.at_level("INFO", "lockgate.merge"):
        (merged,) = run_sql(export(pairs({2: "B", 3: "c"}))).exports
    assert (merged.engine, merged.inserted, merged.updated) == (engine, 1, 1)
    assert f"auto: the {engine.capitalize()} engine, because {reason}" in caplog.text
