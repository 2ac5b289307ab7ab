"""`lockgate plan --preview`: the numbers of a run, without one."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lockgate
from lockgate.cli.app import app
from lockgate.cli.plan import preview_lines
from lockgate.config import load_project
from lockgate.destinations import registry
from lockgate.destinations.keyed_engine import engine_in_words
from lockgate.destinations.parquet import ParquetDestination
from lockgate.running.entry import make_preview
from lockgate.running.preview import PreviewResult
from lockgate.storage.local import LocalStorage
from lockgate.targets.journal import Change
from lockgate.targets.journal import write as write_journal
from support.spark_cluster import connect_server

Look = Callable[..., PreviewResult]


def tree(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Everything below a folder: names, times and bytes."""
    return {
        str(p.relative_to(folder)): (p.stat().st_mtime_ns, p.read_bytes() if p.is_file() else b"")
        for p in [folder, *folder.rglob("*")]
    }


@pytest.fixture
def look(project: Path, spark: Any) -> Look:
    """Preview a pipeline given as text on the shared session; whatever comes of it, the project is as it was."""

    def look(text: str, **options: Any) -> PreviewResult:
        (project / "pipeline.sql").write_text(text)
        before = tree(project)
        try:
            return make_preview("pipeline.sql", load_project(), spark=spark, **options).execute()
        finally:
            assert tree(project) == before

    return look


def select(*rows: str, columns: str = "id, v") -> str:
    return f"SELECT * FROM VALUES {', '.join(rows)} AS t({columns})"


def export(query: str, mode: str = "UPSERT KEY (id)", to: str = "lake", **options: Any) -> str:
    return f'EXPORT {query} TO "{to}" TYPE PARQUET OPTIONS {json.dumps(options)} MODE {mode};\n'


def old_rows(project: Path) -> None:
    (project / "lake").mkdir()
    for number, ids in enumerate(([1, 2], [3])):
        table = pa.table({"id": pa.array(ids, pa.int32()), "v": ["old"] * len(ids)})
        pq.write_table(table, project / "lake" / f"{number}.parquet")


NEW = select("(2, 'new')", "(9, 'new')")
MODES = {
    "UPSERT KEY (id)": ((1, 1, 0), {"rewritten": 1, "added": None, "preserved": 1}, [0], []),
    "INSERT KEY (id)": ((1, 0, 0), {"rewritten": 0, "added": None, "preserved": 2}, [], []),
    "UPDATE KEY (id)": ((0, 1, 0), {"rewritten": 1, "added": 0, "preserved": 1}, [0], []),
    "FULL_MERGE KEY (id)": ((1, 1, 2), {"rewritten": 1, "added": None, "preserved": 0}, [0], [1]),
    "DEDUPLICATE KEY (id) ORDER BY v": ((1, 1, 0), {"rewritten": 1, "added": None, "preserved": 1}, [0], []),
}


@pytest.mark.parametrize(("mode", "engine"), [*product(MODES, ("auto", "arrow")), ("UPSERT KEY (id)", "duckdb")])
def test_a_keyed_export_is_predicted_as_a_run_does_it(look, run_sql, project, mode, engine):
    counts, files, rewritten, removed = MODES[mode]
    old_rows(project)
    text = export(NEW, mode, engine=engine)
    result = look(text)
    [numbers] = result.exports
    assert numbers.status == "planned"
    assert (numbers.inserted, numbers.updated, numbers.deleted) == counts
    assert numbers.rows == 2
    assert numbers.files == files
    assert numbers.rewritten_files == [f"lake/{n}.parquet" for n in rewritten]
    assert numbers.removed_files == [f"lake/{n}.parquet" for n in removed]
    [told] = result.to_json()["exports"]
    assert (told["destination"], told["keys"], told["engine"]) == ("lake", ["id"], engine)
    [done] = run_sql(text).exports
    assert (done.inserted, done.updated, done.deleted, done.rows) == (*counts, 2)
    assert {**done.files, **{name: n for name, n in files.items() if n is not None}} == done.files


@pytest.mark.parametrize(("mode", "inserted", "added"), [("UPSERT", 2, None), ("UPDATE", 0, 0)])
def test_a_dataset_that_is_not_there_is_not_made(look, project, mode, inserted, added):
    [numbers] = look(export(NEW, f"{mode} KEY (id)", "new/lake")).exports
    assert (numbers.inserted, numbers.updated, numbers.deleted) == (inserted, 0, 0)
    assert numbers.files == {"rewritten": 0, "added": added, "preserved": 0}
    assert not (project / "new").exists()


def test_options_of_the_merge_count(look, project):
    old_rows(project)
    [numbers] = look(export(select("(1, 'old')", "(3, 'new')"), skip_unchanged=True)).exports
    assert (numbers.updated, numbers.rewritten_files) == (1, ["lake/1.parquet"])
    wider = select("(1, 'old', 5)", columns="id, v, w")
    with pytest.raises(lockgate.SchemaMismatchError):
        look(export(wider))
    assert look(export(wider, schema="evolve")).exports[0].updated == 1


def test_replace_and_append_are_counted(look, project):
    old_rows(project)
    (project / "data.csv").write_text("id,name\n1,a\n2,b\n3,c\n")
    (project / "functions").mkdir()
    (project / "functions/f.py").write_text(
        "import lockgate\n\n@lockgate.function(returns='int')\ndef twice(x):\n    return 2 * x\n"
    )
    result = look(
        """SOURCE s TYPE CSV PARAMS {"path": "data.csv"};
        LOAD t FROM s;
        CREATE TABLE t MODE UPSERT KEY (id) AS SELECT 4 AS id, 'd' AS name;
        EXPORT SELECT twice(id) AS id, name FROM t TO "out/t.csv" TYPE CSV MODE REPLACE;
        EXPORT t TO "out/t.json" TYPE JSON MODE APPEND;
        EXPORT SELECT id, 'x' AS v FROM range(0) TO "lake" TYPE PARQUET MODE REPLACE;
        """
    )
    assert [(e.rows, e.inserted, e.updated, e.deleted) for e in result.exports] == [
        (4, 4, 0, None),
        (4, 4, 0, 0),
        (0, 0, 0, None),
    ]
    assert [e.rewritten_files for e in result.exports] == [None, [], None]
    assert [e.files["rewritten"] for e in result.exports] == [None, 0, None]
    assert not (project / ".lockgate").exists()


def test_every_value_is_computed_also_where_rows_are_only_counted(look):
    with pytest.raises(lockgate.QueryError, match="CAST_INVALID_INPUT") as caught:
        look("EXPORT SELECT 1 AS id,\n  CAST(w AS INT) AS n FROM VALUES ('two') AS v(w) TO 'x.csv' TYPE CSV;")
    assert "pipeline.sql:2:3: error[spark]" in caught.value.render()
    assert caught.value.in_place == "nothing was written"


def test_all_checks_are_reported(look, project):
    old_rows(project)
    checks = "CHECK good AS SELECT 1 WHERE false;\nCHECK bad AS SELECT id FROM range(7);\n"
    result = look(export(NEW) + checks)
    assert [(c.name, c.passed, c.failing_rows) for c in result.checks] == [("good", True, 0), ("bad", False, 7)]
    assert isinstance(result.failure, lockgate.CheckFailed)
    assert result.failure.in_place == "nothing was written"
    told = result.to_json()
    assert (told["status"], told["exit_code"]) == ("check_failed", 4)
    assert told["exports"][0]["updated"] == 1
    assert 'CHECK "bad" found 7 rows' in told["error"]


WRONG = {
    "NULL in the key": export(select("(1, 'x')", "(NULL, 'y')")),
    "a key twice": export(select("(1, 'x')", "(1, 'y')")),
    "a key twice, by Arrow": export(select("(1, 'x')", "(1, 'y')"), engine="arrow"),
    "no such key": export(NEW, "UPSERT KEY (idd)"),
    "no such order": export(NEW, "DEDUPLICATE KEY (id) ORDER BY w"),
    "a value that is lost": export(select("(1.5, 'x')")),
    "a column too many": export(select("(1, 'x', 2)", columns="id, v, w")),
    "a query that fails": export("SELECT CAST(v AS INT) AS id, v FROM VALUES ('x') AS t(v)"),
    "rows of a table": "CREATE TABLE t MODE UPSERT KEY (id) AS SELECT id % 2 AS id FROM range(3);\n"
    + export("SELECT id, 'x' AS v FROM t"),
    "a name twice": export("SELECT 1 AS id, 2 AS id, 'x' AS v"),
    "a missing file": 'SOURCE s TYPE CSV PARAMS {"path": "no.csv"};\nLOAD t FROM s;\n' + export("SELECT * FROM t"),
}


@pytest.mark.parametrize("text", WRONG.values(), ids=WRONG.keys())
def test_what_stops_a_run_stops_a_preview_in_the_same_words(look, run_sql, project, text):
    old_rows(project)
    text = 'EXPORT SELECT 1 AS x TO "first.csv" TYPE CSV MODE REPLACE;\n' + text
    with pytest.raises(lockgate.LockgateError) as seen:
        look(text)
    assert seen.value.exit_code == 1
    assert seen.value.in_place == "nothing was written"
    told = seen.value.result.to_json()
    assert (told["status"], told["exit_code"], told["error"]) == ("failed", 1, seen.value.render())
    with pytest.raises(type(seen.value)) as caught:
        run_sql(text)
    assert (seen.value.message, seen.value.hint) == (caught.value.message, caught.value.hint)


def test_a_partition_move_is_told_with_the_option_that_allows_it(look, run_sql):
    run_sql(export(select("(1, 'a')"), partition_by=["v"]))
    with pytest.raises(lockgate.PartitionMoveError) as caught:
        look(export(select("(1, 'b')")))
    assert '"allow_partition_moves": true' in caught.value.render()
    [numbers] = look(export(select("(1, 'b')"), allow_partition_moves=True)).exports
    assert (numbers.updated, numbers.files["added"]) == (1, None)


@pytest.mark.parametrize("reads", [True, False])
def test_an_interrupted_write_is_not_finished_by_a_preview(look, project, reads):
    old_rows(project)
    (project / "lake/.staging-x").mkdir()
    (project / "lake/1.parquet").rename(project / "lake/.staging-x/1")
    decided = Change("x", ".staging-x", moves=((".staging-x/1", "1.parquet"),), removes=())
    write_journal(LocalStorage(), project / "lake", decided)
    source = 'SOURCE s TYPE PARQUET PARAMS {"path": "lake"};\nLOAD t FROM s;\n' + export("t", "REPLACE", "new")
    with pytest.raises(lockgate.LockgateError) as caught:
        look(source if reads else export(NEW))
    assert caught.value.in_place == "nothing was written"
    assert "interrupted" in caught.value.message
    assert f"run `lockgate recover {project / 'lake'}`" in caught.value.render()
    lockgate.recover("lake")
    assert look(source if reads else export(NEW)).exports[0].inserted == (3 if reads else 1)


def test_a_file_in_the_place_of_a_dataset(look, project):
    (project / "lake").write_text("a file")
    with pytest.raises(lockgate.StageError, match=r"pipeline\.sql:1:1: .*lake' is a file") as caught:
        look(export(NEW))
    assert caught.value.exit_code == 1


class Elsewhere(ParquetDestination):
    """A destination of another package, which merges in its own way."""


def test_what_another_destination_would_merge_is_not_guessed(look, project, monkeypatch):
    old_rows(project)
    monkeypatch.setitem(registry.BUILT_IN, "ELSEWHERE", f"{__name__}:Elsewhere")
    try:
        result = look(export(NEW).replace("TYPE PARQUET", "TYPE ELSEWHERE"))
    finally:
        registry.find.cache_clear()
    [numbers] = result.exports
    assert (numbers.rows, numbers.inserted, numbers.updated, numbers.rewritten_files) == (2, None, None, None)
    assert next(preview_lines(result)) == "ELSEWHERE UPSERT lake: 2 rows, what they change is not known"


def test_the_session_is_as_it_was(look, spark, project):
    old_rows(project)
    before = spark.catalog.listTables(), spark.conf.get("spark.sql.variable.substitute", None)
    look("CREATE TABLE t AS SELECT 1 AS id, 'x' AS v;\n" + export("t"))
    assert (spark.catalog.listTables(), spark.conf.get("spark.sql.variable.substitute", None)) == before


def command(project: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "lockgate", "plan", *arguments],
        cwd=project, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip


def test_the_command(project, tmp_path_factory, monkeypatch):
    """A real one, with a Spark of its own, which leaves nothing in the project either."""
    temporary = tmp_path_factory.mktemp("temporary")
    monkeypatch.setenv("TMPDIR", str(temporary))
    old_rows(project)
    (project / "functions").mkdir()
    (project / "functions/f.py").write_text(
        "import lockgate\n\n@lockgate.function(returns='int')\ndef same(x):\n    return x\n"
    )
    (project / "p.sql").write_text(
        export("SELECT same(id) AS id, v FROM VALUES (2, 'new'), (9, 'new') AS t(id, v)")
        + "EXPORT SELECT 1 AS x TO 'out/x.csv' TYPE CSV MODE REPLACE;\nCHECK bad AS SELECT 1 AS found;\n"
    )
    before = tree(project)
    ended = command(project, "p.sql", "--preview", "--master", "local[1]")
    assert ended.returncode == 4, ended.stderr
    assert "PARQUET UPSERT lake: rows to insert 1, update 1, delete 0; files to rewrite 1, remove 0\n" in ended.stdout
    assert "CSV REPLACE out/x.csv: rows to insert 1, update 0\n" in ended.stdout
    assert "check bad: found 1 row\n" in ended.stdout
    assert "preview: nothing was written\n" in ended.stdout
    assert 'CHECK "bad" found 1 row' in ended.stderr
    assert "now: nothing was written" in ended.stderr
    assert tree(project) == before
    assert not list(temporary.glob("lockgate-*"))


def test_the_command_as_json(project, spark, monkeypatch, capsys):
    old_rows(project)
    (project / "p.sql").write_text(export(NEW))
    monkeypatch.setattr("lockgate.running.entry.open_session", lambda *_, **__: spark)
    monkeypatch.setattr(type(spark), "stop", lambda _: None)
    before = tree(project)
    app(["plan", "p.sql", "--preview", "--json"], standalone_mode=False)
    told = json.loads(capsys.readouterr().out)
    assert (told["pipeline"], told["status"], told["exit_code"], told["error"]) == ("p.sql", "planned", 0, None)
    assert [s["kind"] for s in told["steps"]] == ["export"]
    assert told["exports"] == [
        {
            "name": "lake", "destination": "lake", "type": "PARQUET", "mode": "UPSERT", "keys": ["id"],
            "status": "planned", "inserted": 1, "updated": 1, "deleted": 0, "rows": 2, "version": None,
            "files": {"rewritten": 1, "added": None, "preserved": 1}, "engine": "auto",
            "engine_reason": engine_in_words({}), "rewritten_files": ["lake/0.parquet"], "removed_files": [],
        }
    ]  # fmt: skip
    (project / "p.sql").write_text(export(select("(1, 'x')", "(1, 'y')")))
    with pytest.raises(SystemExit) as ended:
        app(["plan", "p.sql", "--preview", "--json"], standalone_mode=False)
    assert ended.value.code == 1
    printed = capsys.readouterr()
    told = json.loads(printed.out)
    assert (told["status"], told["exit_code"], told["exports"][0]["status"]) == ("failed", 1, "failed")
    assert "now: nothing was written" in printed.err
    (project / "p.sql").write_text(export(NEW))
    after = tree(project)
    assert {n: v[1] for n, v in after.items()} == {n: v[1] for n, v in before.items()}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--master", "local"], "go with --preview"),
        (["--preview", "--master", "local", "--remote", "sc://x"], "exclude each other"),
    ],
)
def test_options_that_do_not_go_together(project, options, said):
    (project / "p.sql").write_text(export(NEW))
    ended = command(project, "p.sql", *options)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert said in ended.stderr


def test_a_plan_without_preview_names_the_engine_and_needs_no_spark(project):
    (project / "p.sql").write_text(
        export(NEW, to="a") + export(NEW, to="b", engine="DuckDB") + export(NEW, "REPLACE", "c")
    )
    script = (
        "import sys; from lockgate.cli.app import app\n"
        "try: app(['plan', 'p.sql', '--json'])\n"
        "except SystemExit as end:\n"
        "    print(end.code, {'pyspark', 'duckdb', 'pyarrow'} & set(sys.modules), file=sys.stderr)"
    )
    ended = subprocess.run([sys.executable, "-c", script], cwd=project, capture_output=True, text=True, check=True)
    exports = json.loads(ended.stdout)["exports"]
    assert [e["engine"] for e in exports] == ["auto", "duckdb", "spark"]
    assert exports[0]["engine_reason"].startswith("by Arrow if there are less than 64 MB of rows")
    assert [e["engine_reason"] for e in exports[1:]] == ["by DuckDB, which its options ask for", None]
    assert ended.stderr.splitlines()[-1] == "0 set()"
    shown = command(project, "p.sql").stdout.splitlines()
    assert shown[-2].startswith("UPSERT a: by Arrow if")
    assert shown[-1] == "UPSERT b: by DuckDB, which its options ask for"


@pytest.mark.slow
def test_over_spark_connect(project, tmp_path_factory):
    old_rows(project)
    (project / "p.sql").write_text(
        "CREATE TABLE t MODE UPSERT KEY (id) AS " + NEW + ";\n"
        + export("t") + export("t", to="here", engine="arrow") + export("SELECT * FROM t WHERE id > 2", "REPLACE", "x")
    )  # fmt: skip
    before = tree(project)
    with connect_server(tmp_path_factory.mktemp("server")) as address:
        ended = command(project, "p.sql", "--preview", "--remote", address, "--json")
    assert ended.returncode == 0, ended.stderr
    told = json.loads(ended.stdout)["exports"]
    assert [(e["inserted"], e["updated"], e["deleted"]) for e in told] == [(1, 1, 0), (2, 0, 0), (1, 0, None)]
    assert told[0]["rewritten_files"] == ["lake/0.parquet"]
    assert tree(project) == before
