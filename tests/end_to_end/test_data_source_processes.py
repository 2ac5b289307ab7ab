"""`format("lockgate")` where processes matter: tries that fail, other writers, a driver that is killed, Connect."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lockgate
from support.leftovers import leftovers
from support.merge_reading import all_rows, values
from support.spark_cluster import SMALL_JAVA, connect_server

PATIENCE = 180.0

START = """
import os, sys, time
from pathlib import Path
from pyspark.sql import functions as F
import lockgate
from lockgate.config import SparkSettings
from lockgate.running.session import open_session

folder = Path(sys.argv[1])
settings = SparkSettings(master="local[2,4]", conf={"spark.driver.memory": "1g"})
spark = open_session(settings, name="processes", scratch=folder / "scratch")
lockgate.register(spark)
"""

FAILS_ONCE = """
tried = str(folder / "tried")

def fail_once(n):
    if n == 250_000:
        try:
            os.close(os.open(tried, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return n
        raise ValueError("the first try fails at its last rows")
    return n

rows = spark.range(0, 260_000, 1, 2).select(F.udf(fail_once, "long")("id").alias("id"))
rows.write.format("lockgate").mode("append").save(f"{folder}/data")
"""

WAITS = """
def wait_for(name):
    go = str(folder / name)

    def wait(n):
        while n == 3 and not os.path.exists(go):
            time.sleep(0.05)
        return n

    return F.udf(wait, "long")

for name in ("go", "never"):
    rows = spark.range(0, 4, 1, 2).select(wait_for(name)("id").alias("id"))
    rows.write.format("lockgate").mode("append").options(strategy="upsert", keys="id").save(f"{folder}/data")
    (folder / "written").touch()
"""


def environment() -> dict[str, str]:
    ours = {k: v for k, v in os.environ.items() if not k.startswith(("SPARK_", "PYSPARK_", "LOCKGATE_"))}
    return ours | {"SPARK_LOCAL_IP": "127.0.0.1", "JDK_JAVA_OPTIONS": SMALL_JAVA}


def run_script(code: str, *arguments: str) -> str:
    ended = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env=environment(), capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr[-4000:]
    return ended.stdout


@contextmanager
def running(code: str, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """The script in a group of its own, which is killed at the end with the Spark it started."""
    process = subprocess.Popen([sys.executable, "-c", code, str(folder)], env=environment(), start_new_session=True)
    try:
        yield process
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def wait_until(happened: Callable[[], object], process: subprocess.Popen[bytes] | None = None) -> None:
    give_up = time.monotonic() + PATIENCE
    while not happened():
        assert time.monotonic() < give_up
        assert process is None or process.poll() is None, "the script has ended"
        time.sleep(0.05)


@pytest.mark.slow
def test_a_task_that_is_tried_again_adds_its_rows_once(tmp_path: Path) -> None:
    run_script(START + FAILS_ONCE, str(tmp_path))
    assert (tmp_path / "tried").exists()
    assert sorted(pq.read_table(tmp_path / "data")["id"].to_pylist()) == list(range(260_000))
    assert leftovers(tmp_path) == []


def test_staged_rows_survive_other_writers_but_not_the_driver(tmp_path: Path) -> None:
    data = tmp_path / "data"

    def staged() -> list[Path]:
        return [file for file in data.glob(".staging-new_*/*.parquet") if file.stat().st_size]

    with running(START + WAITS, tmp_path) as script:
        wait_until(staged, script)
        lockgate.merge(pa.table({"id": [10]}), data, strategy="upsert", key_columns="id")
        assert staged()
        assert sorted(values(data, "id", "id")) == [10]
        (tmp_path / "go").touch()
        wait_until((tmp_path / "written").exists, script)
        assert sorted(values(data, "id", "id")) == [0, 1, 2, 3, 10]
        wait_until(staged, script)
        before = all_rows(data)
    wait_until(lambda: lockgate.recover(data).staging_swept)  # as soon as what is left of Spark has ended
    assert leftovers(data) == []
    assert all_rows(data) == before


OVER_CONNECT = """
import json, sys
import lockgate
from pyspark.sql import SparkSession

spark = SparkSession.builder.remote(sys.argv[1]).getOrCreate()
lockgate.register(spark)
rows = spark.range(0, 100, 1, 3).selectExpr("id", "timestamp'2024-01-01 12:00:00.000001Z' AS at")

def save(frame, mode="append", **options):
    frame.write.format("lockgate").mode(mode).options(**options).save(sys.argv[2])

save(rows)
save(rows.selectExpr("id + 50 AS id", "at"), strategy="upsert", keys="id")
try:
    save(rows.union(rows), strategy="upsert", keys="id")
except Exception as error:
    print(json.dumps([type(error).__name__, str(error)]))
"""


def test_over_spark_connect(tmp_path: Path) -> None:
    data = tmp_path / "data"
    (tmp_path / "server").mkdir()
    with connect_server(tmp_path / "server", with_lockgate=True) as address:
        kind, said = json.loads(run_script(OVER_CONNECT, address, str(data)))
    assert kind == "AnalysisException"
    assert "lockgate.errors.DuplicateKeyError: 100 of 200 source rows repeat a key" in said
    assert "now: nothing was written\ndo: " in said
    found = pq.read_table(data)
    assert sorted(found["id"].to_pylist()) == list(range(150))
    assert found.schema.field("at").type == pa.timestamp("us", "UTC")
    assert leftovers(data) == []
