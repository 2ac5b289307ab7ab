"""Whole processes with a Spark of their own: killed, interrupted, and without any Java on the machine."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import lockgate
from lockgate.cli.init import make_project
from support.arrow_run import snapshot
from support.leftovers import leftovers

ROOT = Path(__file__).parents[2]

KILLED = """
import sys
from support.faults import FaultyStorage
from lockgate.config import load_project
from lockgate.running.entry import make_run

class KilledAtTheSecondSwap(FaultyStorage):
    def _do(self, step, path, action):
        if step == "replace" and path.name == "b.csv":
            self.at, self.fault = len(self.steps), "kill before"
        return super()._do(step, path, action)

run = make_run("p.sql", load_project())
run.storage = KilledAtTheSecondSwap()
print(run.run, flush=True)
run.execute()
"""


@pytest.fixture
def no_java(tmp_path: Path) -> dict[str, str]:
    """An environment as on a machine with Python alone."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for folder in ("/usr/bin", "/bin"):
        for program in Path(folder).iterdir():
            if not program.name.startswith("java") and not (programs / program.name).is_symlink():
                (programs / program.name).symlink_to(program)
    kept = {k: v for k, v in os.environ.items() if k not in ("JAVA_HOME", "PATH", "SPARK_HOME", "PYSPARK_PYTHON")}
    return {**kept, "PATH": str(programs), "PYTHONPATH": str(ROOT / "tests")}


def test_killed_while_publishing_without_java_on_the_machine_then_resumed(tmp_path: Path, no_java) -> None:
    assert shutil.which("java", path=no_java["PATH"]) is None
    (tmp_path / "p.sql").write_text(
        "CREATE TABLE t AS SELECT id FROM range(3);\n"
        + "".join(f'EXPORT SELECT * FROM t ORDER BY id TO "out/{n}.csv" TYPE CSV MODE REPLACE;\n' for n in "abc")
    )
    (tmp_path / "out").mkdir()
    for name in "abc":
        (tmp_path / f"out/{name}.csv").write_text("old\n")
    killed = subprocess.run(
        [sys.executable, "-c", KILLED],
        cwd=tmp_path,
        env=no_java,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert [(tmp_path / f"out/{n}.csv").read_text() for n in "abc"] == ["id\n0\n1\n2\n", "old\n", "old\n"]
    run = killed.stdout.strip()

    def resume() -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "lockgate", "resume", run, "--json"],
            cwd=tmp_path, env=no_java, capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip

    first = resume()
    assert first.returncode == 0, first.stderr
    result = json.loads(first.stdout)
    assert [e["status"] for e in result["exports"]] == ["published"] * 3
    assert [e["rows"] for e in result["exports"]] == [3, 3, 3]
    assert {(tmp_path / f"out/{n}.csv").read_text() for n in "abc"} == {"id\n0\n1\n2\n"}
    assert leftovers(tmp_path) == []
    before = snapshot(tmp_path / "out")
    assert resume().returncode == 0
    assert snapshot(tmp_path / "out") == before


def test_an_interrupted_run_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "functions").mkdir()
    (tmp_path / "functions/slow.py").write_text(
        "import time\nfrom pathlib import Path\nimport lockgate\n\n"
        f"@lockgate.function(returns='int')\ndef slow(x):\n    Path({str(tmp_path / 'at work')!r}).touch()\n"
        "    time.sleep(120)\n    return 1\n"
    )
    (tmp_path / "p.sql").write_text('EXPORT SELECT slow(1) AS x TO "out/a.csv" TYPE CSV MODE REPLACE;')
    process = subprocess.Popen(
        [sys.executable, "-m", "lockgate", "run", "p.sql"],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    while not (tmp_path / "at work").exists():
        assert process.poll() is None, process.communicate()
        signal.sigtimedwait([], 0.05)
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 1, (out, err)
    assert "interrupted" in err
    assert "nothing was published" in err
    assert "Traceback" not in err
    assert "published" not in out
    assert leftovers(tmp_path) == []
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("example", ["shop", "cleaning", "reports"])
def test_the_examples_run(project: Path, spark, example: str) -> None:
    shutil.copytree(ROOT / "examples" / example, project, dirs_exist_ok=True)
    result = lockgate.run("pipeline.sql", spark=spark)
    assert result.ok
    assert all(e.status == "published" for e in result.exports)
    assert leftovers(project) == []


def test_the_project_that_init_makes_runs(project: Path, spark) -> None:
    make_project(project)
    assert lockgate.run("pipeline.sql", spark=spark).ok
    assert (
        (project / "out/daily.csv").read_text().startswith("day,country,orders,amount,currency,grade\n2026-01-01,GB,")
    )


def test_bad_data_in_the_shop_is_stopped(project: Path, spark) -> None:
    shutil.copytree(ROOT / "examples/shop", project, dirs_exist_ok=True)
    with pytest.raises(lockgate.CheckFailed) as caught:
        lockgate.run("pipeline.sql", spark=spark, variables={"batch": "broken"})
    assert "sofa" in caught.value.message
    assert not (project / "out").exists()
