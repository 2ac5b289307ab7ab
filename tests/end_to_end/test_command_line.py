"""The command line as a user types it, where no Spark is needed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from support.arrow_run import arrow_run, export
from support.faults import FaultyStorage, run_in_child, was_killed
from support.leftovers import leftovers

GOOD = 'SOURCE s TYPE CSV PARAMS {"path": "a.csv"};\nLOAD t FROM s;\nEXPORT t TO "out/a.csv" TYPE CSV MODE REPLACE;\n'


def lockgate(
    project: Path, *arguments: str, environment: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "lockgate", *arguments],
        cwd=project,
        env={**os.environ, **(environment or {})},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_five_mistakes_give_five_errors_with_places(tmp_path: Path) -> None:
    (tmp_path / "p.sql").write_text(
        'SOURCE a TYPE CVS PARAMS {"path": "a.csv"};\n'
        'SOURCE b TYPE CSV PARAMS {"path": "b.csv",};\n'
        "CREATE TABLE t AS SELECT * FROM nowhere;\n"
        'EXPORT t TO "out/a.csv" TYPE CSV MODE UPSERT;\n'
        "EXPROT t;\n"
    )
    said = lockgate(tmp_path, "check", "p.sql")
    assert said.returncode == 2
    for place in ("p.sql:1:15:", "p.sql:2:", "p.sql:3:33:", "p.sql:4:39:", "p.sql:5:1:"):
        assert place in said.stderr, said.stderr
    assert "UPSERT mode requires the KEY clause to be specified." in said.stderr
    assert "did you mean EXPORT?" in said.stderr
    assert "did you mean CSV?" in said.stderr
    assert "Traceback" not in said.stderr
    found = json.loads(lockgate(tmp_path, "check", "p.sql", "--json").stdout)["errors"]
    assert [e["line"] for e in found][:1] == [1]
    assert {e["line"] for e in found} == {1, 2, 3, 4, 5}
    assert set(found[0]) == {"file", "line", "column", "code", "message", "hint"}


def test_check_and_plan(tmp_path: Path) -> None:
    (tmp_path / "p.sql").write_text(GOOD)
    said = lockgate(tmp_path, "check", "p.sql")
    assert (said.returncode, said.stdout) == (0, "p.sql: no errors\n")
    assert json.loads(lockgate(tmp_path, "check", "p.sql", "--json").stdout) == {"errors": []}
    shown = lockgate(tmp_path, "plan", "p.sql")
    assert shown.returncode == 0
    assert "out/a.csv" in shown.stdout
    plan = json.loads(lockgate(tmp_path, "plan", "p.sql", "--json").stdout)
    assert [s["kind"] for s in plan["steps"]] == ["source", "load", "export"]
    assert plan["exports"][0]["mode"] == "REPLACE"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["run", "missing.sql"], "there is no pipeline missing.sql"),
        (["check", "missing.sql"], "there is no pipeline missing.sql"),
        (["run", "p.sql", "--var", "x"], "is not NAME=VALUE"),
        (["run", "p.sql", "--var", "x:int=seven"], "'seven' is not a int"),
        (["run", "p.sql", "--master", "local", "--remote", "sc://x"], "exclude each other"),
        (["run", "p.sql", "--profile", "nope"], "no profile 'nope'"),
        (["run"], "Missing argument"),
        (["frobnicate"], "No such command"),
        (["runs", "nope"], "there is no run nope"),
        (["recover", "a/b/c"], "there is nothing at"),
    ],
)
def test_a_wrong_command_line_exits_with_2(tmp_path: Path, arguments: list[str], said: str) -> None:
    (tmp_path / "p.sql").write_text(GOOD)
    ended = lockgate(tmp_path, *arguments)
    assert ended.returncode == 2, ended
    assert said in ended.stderr
    assert "Traceback" not in ended.stderr
    assert ended.stdout == ""


def test_an_invalid_pipeline_as_json(tmp_path: Path) -> None:
    (tmp_path / "p.sql").write_text("EXPROT x;")
    ended = lockgate(tmp_path, "run", "p.sql", "--json")
    assert ended.returncode == 2
    result = json.loads(ended.stdout)
    assert (result["status"], result["exit_code"]) == ("invalid", 2)
    assert "EXPROT" in result["error"]


def test_a_missing_source_file_is_found_before_spark_is_started(tmp_path: Path) -> None:
    (tmp_path / "p.sql").write_text(GOOD)
    (tmp_path / "b.csv").write_text("id\n1\n")
    ended = lockgate(tmp_path, "run", "p.sql")
    assert ended.returncode == 1
    assert "a.csv, which does not exist" in ended.stderr
    assert "did you mean b.csv?" in ended.stderr
    assert "p.sql:1:" in ended.stderr
    assert not (tmp_path / "out").exists()
    assert not (tmp_path / ".lockgate/spark.log").exists()
    assert "failed" in lockgate(tmp_path, "runs").stdout


def test_a_run_killed_while_publishing_is_shown_and_resumed(tmp_path: Path) -> None:
    exports = [(export(f"out/{n}.csv", "CSV"), pa.table({"id": [n]})) for n in (1, 2, 3)]
    counting = FaultyStorage()
    arrow_run(tmp_path / "count", exports, storage=counting).execute()
    swaps = [i for i, (s, p) in enumerate(counting.steps) if s == "replace" and p.suffix == ".csv"]
    status = run_in_child(lambda: arrow_run(tmp_path, exports, storage=FaultyStorage(swaps[1], "kill after")).execute())
    assert was_killed(status)
    run = "2026-01-01T00-00-00-aaaa"
    assert "died while publishing" in lockgate(tmp_path, "runs").stdout
    shown = lockgate(tmp_path, "runs", run)
    assert f"lockgate resume {run}" in shown.stdout
    done = lockgate(tmp_path, "resume", run)
    assert done.returncode == 0, done.stderr
    assert [(tmp_path / f"out/{n}.csv").read_text() for n in (1, 2, 3)] == ["id\n1\n", "id\n2\n", "id\n3\n"]
    again = lockgate(tmp_path, "resume", run)
    assert again.returncode == 0
    assert "nothing was changed" in again.stdout
    assert json.loads(lockgate(tmp_path, "resume", run, "--json").stdout)["status"] == "published"
    assert leftovers(tmp_path) == []
    assert lockgate(tmp_path, "resume", "nope").returncode == 1


def test_recover_says_what_it_did(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    ended = lockgate(tmp_path, "recover", "data")
    assert ended.returncode == 0
    assert "nothing to recover" in ended.stdout
    assert json.loads(lockgate(tmp_path, "recover", "data", "--json").stdout)["finished"] is None


def test_init_makes_a_project_and_overwrites_nothing(tmp_path: Path) -> None:
    made = lockgate(tmp_path, "init", "new")
    assert made.returncode == 0, made.stderr
    assert lockgate(tmp_path / "new", "check", "pipeline.sql").returncode == 0
    assert (tmp_path / "new/.gitignore").exists()
    (tmp_path / "new/pipeline.sql").write_text("mine")
    again = lockgate(tmp_path, "init", "new")
    assert again.returncode == 2
    assert "there already" in again.stderr
    assert (tmp_path / "new/pipeline.sql").read_text() == "mine"


def test_a_folder_without_permission(tmp_path: Path) -> None:
    """As a user who is not root: the message names the folder, nothing is written, exit 1."""
    (tmp_path / "p.sql").write_text('EXPORT SELECT 1 AS x TO "locked/a.csv" TYPE CSV MODE REPLACE;')
    (tmp_path / "locked").mkdir(mode=0o555)
    tmp_path.chmod(0o777)
    for parent in tmp_path.parents:
        if parent.name.startswith("pytest"):
            parent.chmod(0o755)
    code = (
        "import os\nfrom lockgate.cli.app import app\nimport lockgate.cli.progress, lockgate.running.entry\n"
        # Loads all that is loaded late: as another user, the interpreter's own files may be out of reach.
        "from pathlib import Path\nlockgate.running.entry.RunState(Path('other')).begin('r', 'p', 'dev', '')\n"
        "try:\n    app(['check', 'p.sql'])\nexcept SystemExit:\n    pass\n"
        "if os.geteuid() == 0:\n    os.setgid(65534)\n    os.setuid(65534)\n"
        "app(['run', 'p.sql'])"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
    )
    assert ended.returncode == 1, ended.stderr
    assert "Permission denied" in ended.stderr
    assert "locked" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert list((tmp_path / "locked").iterdir()) == []


@pytest.mark.parametrize("value", ["../../evil", "/tmp/evil", "a/../../b"])
def test_a_variable_cannot_lead_a_path_out(tmp_path: Path, value: str) -> None:
    (tmp_path / "p.sql").write_text('EXPORT SELECT 1 AS x TO "${out}/a.csv" TYPE CSV MODE REPLACE;')
    ended = lockgate(tmp_path, "check", "p.sql", "--var", f"out={value}")
    assert ended.returncode == 2
    assert "path-escape" in ended.stderr
    assert lockgate(tmp_path, "check", "p.sql", environment={"out": value}).returncode == 2
    assert lockgate(tmp_path, "check", "p.sql", "--var", "out=fine").returncode == 0


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ('"out/b.parquet" TYPE PARQUET', '"out" TYPE PARQUET'),
        ('"out" TYPE PARQUET', '"out/sub" TYPE PARQUET'),
        ('"a.csv" TYPE CSV', '"./x/../a.csv" TYPE CSV'),
        ('"a.csv" TYPE CSV', '"{here}/a.csv" TYPE CSV'),
        ('"same" TYPE CSV', '"same" TYPE JSON'),
    ],
)
def test_exports_that_would_destroy_each_other_are_refused(tmp_path: Path, one: str, other: str) -> None:
    text = f"EXPORT SELECT 1 AS x TO {one} MODE REPLACE;\nEXPORT SELECT 1 AS x TO {other} MODE REPLACE;"
    (tmp_path / "p.sql").write_text(text.replace("{here}", str(tmp_path)))
    ended = lockgate(tmp_path, "check", "p.sql")
    assert ended.returncode == 2
    assert "error[duplicate]" in ended.stderr


def test_a_secret_in_the_address_of_a_server_is_not_shown() -> None:
    from lockgate.config import SparkSettings

    settings = SparkSettings(remote="sc://127.0.0.1:1/;token=hunter2;user_id=me")
    assert "hunter2" not in settings.address + repr(settings)


def test_a_closed_terminal_does_not_end_a_run(tmp_path: Path) -> None:
    exports = [(export(f"out/{n}.csv", "CSV"), pa.table({"id": [n]})) for n in (1, 2)]
    counting = FaultyStorage()
    arrow_run(tmp_path / "count", exports, storage=counting).execute()
    swap = next(i for i, (s, p) in enumerate(counting.steps) if s == "replace" and p.suffix == ".csv")
    assert was_killed(
        run_in_child(lambda: arrow_run(tmp_path, exports, storage=FaultyStorage(swap, "kill before")).execute())
    )
    reader, writer = os.pipe()
    os.close(reader)
    ended = subprocess.run(
        [sys.executable, "-m", "lockgate", "resume", "2026-01-01T00-00-00-aaaa"],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=writer, check=False,
        env={k: v for k, v in os.environ.items() if k != "PYTHONUNBUFFERED"},
    )  # fmt: skip
    os.close(writer)
    assert ended.returncode == 0
    assert (tmp_path / "out/2.csv").exists()
