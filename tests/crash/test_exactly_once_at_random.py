"""The command line with a Spark of its own, killed with -9 at random moments and run again."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from support.exactly_once import TABLES, Place, Reader, assert_each_row_once

PIPELINE = """SOURCE events TYPE CSV PARAMS {"path": "events.csv", "schema": "id BIGINT, x STRING", "cursor": "id"};
LOAD new FROM events;
CREATE TABLE known AS SELECT id, upper(x) AS x FROM new WHERE id > 0;
CHECK "no text is missing" AS SELECT * FROM known WHERE x IS NULL;
EXPORT known TO "sales.a" TYPE DELTA MODE APPEND;
EXPORT SELECT id FROM known TO "sales.b" TYPE DELTA MODE APPEND;
EXPORT known TO "c" TYPE DELTA MODE APPEND;
EXPORT known TO "public.t" TYPE POSTGRES OPTIONS {"connection": "pg"} MODE APPEND;
"""
KILLS = 12
PHASES = ("plan", "stage", "check", "publish")


def bring(project: Path, upto: int) -> None:
    rows = "".join(f"{n},x{n}\n" for n in range(1, upto + 1))
    (project / "events.csv").write_text(f"id,x\n{rows}")


def started(project: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "lockgate", "run", "p.sql"]
    return subprocess.Popen(command, cwd=project, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def killed_at_random(project: Path, chance: random.Random) -> bool:
    """Kill it some time after it says that it has come to a phase; False if it was through before."""
    process, wanted = started(project), chance.choice(PHASES)
    assert process.stdout is not None
    with process.stdout:
        for line in process.stdout:
            if line.strip().startswith(wanted):
                break
        try:
            process.wait(timeout=chance.uniform(0, 0.3 if wanted == "publish" else 3))
        except subprocess.TimeoutExpired:
            process.kill()
    return process.wait() == -signal.SIGKILL


@pytest.mark.slow
@pytest.mark.timeout(3600)  # two dozen starts of Spark
def test_a_dozen_kills_at_random_moments(tmp_path: Path, database: Any) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "p.sql").write_text(PIPELINE)
    (project / "lockgate.toml").write_text(
        '[profile.dev.spark]\nmaster = "local[2]"\n'
        'conf = { "spark.driver.extraJavaOptions" = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC" }\n'
        f'[profile.dev.connections.pg]\ntype = "postgres"\nurl = "{database.url}"\n'
    )
    at = Place(project, database.url)
    seed = random.randrange(2**32)
    chance = random.Random(seed)
    upto = kills = 0
    with Reader(tmp_path / "reader") as reader:
        reader.look_at(at)
        while kills < KILLS:
            upto += chance.randrange(1, 50)
            bring(project, upto)
            kills += killed_at_random(project, chance)
            if kills % 2:  # another one that may die while it settles this one
                upto += 1
                bring(project, upto)
                kills += killed_at_random(project, chance)
            again = started(project)
            told, _ = again.communicate()
            assert again.returncode == 0, (seed, told)
            assert_each_row_once(at, upto, seed)
    reads, wrong, _ = reader.findings()
    assert wrong == [], seed
    assert reads > KILLS
    assert len(TABLES) == 3
