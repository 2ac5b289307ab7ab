"""The suite and the random merges on Spark once more, over Spark Connect, to a server whose Python has no lockgate."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from support.spark_cluster import connect_server

FOLDER = Path(__file__).parent
MODEL = FOLDER.parents[1] / "model/test_merge_model.py"


@pytest.mark.slow
def test_the_suite_over_connect(tmp_path: Path) -> None:
    with connect_server(tmp_path) as address:
        ended = subprocess.run(
            [
                sys.executable,
                "-m",
                "pytest",
                "-p",
                "no:cacheprovider",
                "-k",
                "spark and not connect",
                str(FOLDER),
                str(MODEL),
            ],
            env={**os.environ, "LOCKGATE_TEST_SPARK_REMOTE": address},
            cwd=FOLDER.parents[2],
            capture_output=True,
            text=True,
        )
    assert ended.returncode == 0, ended.stdout[-5000:]
    passed = re.search(r"(\d+) passed", ended.stdout)
    assert passed, ended.stdout[-2000:]
    assert int(passed[1]) > 25
