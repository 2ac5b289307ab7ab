"""Long tests, for `make soak`: real runs killed at random moments, and many more texts for the parser."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lockgate.language import Variables, parse
from support.leftovers import leftovers

pytestmark = pytest.mark.slow

EXPORTS = 'EXPORT SELECT {n} AS n, id FROM range(20000) TO "out/{name}" TYPE {kind} MODE {mode};\n'


FORMS = [
    ("a.csv", "CSV", "REPLACE"),
    ("b", "PARQUET", "REPLACE"),
    ("c.json", "JSON", "REPLACE"),
    ("d", "PARQUET", "APPEND"),
]


def pipeline(number: int) -> str:
    return "".join(EXPORTS.format(n=number, name=n, kind=k, mode=m) for n, k, m in FORMS)


def generations(project: Path) -> tuple[set[int], set[int], set[int], list[int]]:
    import pyarrow.parquet as pq

    a = {int(x.split(",")[0]) for x in (project / "out/a.csv").read_text().split()[1:]}
    b = {x for f in (project / "out/b").glob("*.parquet") for x in pq.read_table(f)["n"].to_pylist()}
    c = {json.loads(x)["n"] for x in (project / "out/c.json").read_text().splitlines()}
    d = [x for f in (project / "out/d").glob("*.parquet") for x in pq.read_table(f)["n"].to_pylist()]
    return a, b, c, d


def test_real_runs_killed_at_random_moments_and_settled(tmp_path: Path) -> None:
    seed = random.randrange(2**32)
    moments = random.Random(seed)
    command = [sys.executable, "-m", "lockgate"]
    (tmp_path / "p.sql").write_text(pipeline(0))
    began = time.monotonic()
    subprocess.run([*command, "run", "p.sql"], cwd=tmp_path, check=True, capture_output=True)
    usual = time.monotonic() - began
    appended = {0}
    for number in range(1, 21):
        (tmp_path / "p.sql").write_text(pipeline(number))
        process = subprocess.Popen([*command, "run", "p.sql"], cwd=tmp_path, stdout=-3, stderr=-3)
        try:
            process.wait(timeout=moments.uniform(usual * 0.5, usual * 1.05))
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
        process.wait()
        (last, *_) = json.loads(
            subprocess.run([*command, "runs", "--json"], cwd=tmp_path, capture_output=True, check=True).stdout
        )["runs"]
        resumed = subprocess.run([*command, "resume", last["run"]], cwd=tmp_path, capture_output=True, check=False)
        a, b, c, d = generations(tmp_path)
        assert len(a) == len(b) == len(c) == 1, (seed, number)
        assert a == b == c, (seed, number)
        if resumed.returncode == 0:
            assert a == {number}, (seed, number)
            appended.add(number)
        assert sorted(d) == sorted(n for n in appended for _ in range(20000)), (seed, number)
        assert leftovers(tmp_path) == [], (seed, number)


@settings(max_examples=20_000, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.text(max_size=400), st.dictionaries(st.sampled_from("xy"), st.text(max_size=20)))
def test_no_text_crashes_the_parser(text: str, values: dict[str, str]) -> None:
    parse(text, variables=Variables(command_line=values))
