"""`lockgate merge --engine spark` as a user runs it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest


@pytest.mark.slow
def test_it_starts_the_profiles_spark(tmp_path: Path) -> None:
    (tmp_path / "lake").mkdir()
    pq.write_table(pa.table({"id": [1, 2], "x": ["a", "b"]}), tmp_path / "lake" / "a.parquet")
    (tmp_path / "new.csv").write_text("id,x\n2,B\n3,C\n")
    command = "merge new.csv lake --strategy upsert --key id --engine spark --json"
    ended = subprocess.run(
        [sys.executable, "-m", "lockgate", *command.split()],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert ended.returncode == 0, ended.stderr
    found = json.loads(ended.stdout)
    assert (found["engine"], found["inserted"], found["updated"]) == ("spark", 1, 1)
    assert sorted(pq.read_table(tmp_path / "lake")["x"].to_pylist()) == ["B", "C", "a"]
