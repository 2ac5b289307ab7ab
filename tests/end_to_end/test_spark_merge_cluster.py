"""A merge by a real cluster, a master with two workers on loopback: a worker dies in the middle, or the driver."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import lockgate
from support.spark_cluster import Cluster, standalone_cluster

FILES, ROWS = 20, 5_000
DRIVER = """
import json, sys
from pathlib import Path
from lockgate.config import SparkSettings
from lockgate.running.session import open_session
import lockgate

master, root, scratch, slow = sys.argv[1:]
conf = {
    "spark.sql.shuffle.partitions": "4",
    "spark.executor.memory": "512m",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.task.maxFailures": "8",
}
spark = open_session(SparkSettings(master=master, conf=conf), name="merge", scratch=Path(scratch))
ids = spark.range(0, 200_000, 10).selectExpr("id", "'new' AS x", "id * 2 AS n")
if slow == "slow":
    # Each file takes a while, so that there is a middle to be killed in.
    from lockgate.engines import spark_worker
    quick = spark_worker.rewrite
    def slowly(*given):
        work = quick(*given)
        def step(key, table):
            import time
            time.sleep(0.7)
            return work(key, table)
        return step
    spark_worker.rewrite = slowly
print("ready", flush=True)
result = lockgate.merge(ids, root, strategy="upsert", key_columns="id")
print(json.dumps(result.to_json()), flush=True)
spark.stop()
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with standalone_cluster(tmp_path_factory.mktemp("cluster")) as started:
        yield started


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Keys 0 … 99,999 in files by range; the source has every tenth of them, and 10,000 that are new."""
    folder = tmp_path / "lake"
    folder.mkdir()
    for i in range(FILES):
        ids = pa.arange(i * ROWS, (i + 1) * ROWS)
        table = pa.table({"id": ids, "x": pa.repeat("old", ROWS), "n": ids})
        pq.write_table(table, folder / f"part-{i:02}.parquet")
    return folder


def driver(cluster: Cluster, root: Path, tmp_path: Path, slow: str = "") -> subprocess.Popen[str]:
    (tmp_path / "driver.py").write_text(DRIVER)
    return subprocess.Popen(
        [sys.executable, "driver.py", cluster.url, str(root), str(tmp_path / "scratch"), slow],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=(tmp_path / "driver.log").open("w"),
        text=True,
    )


def check_merged(root: Path) -> None:
    table = pq.read_table(root)
    assert table.num_rows == FILES * ROWS + 10_000
    assert pc.count_distinct(table["id"]).as_py() == table.num_rows
    new = table.filter(pc.equal(table["x"], "new"))
    assert sorted(new["id"].to_pylist()) == list(range(0, 200_000, 10))
    assert pc.all(pc.equal(new["n"], pc.multiply(new["id"], 2))).as_py()


def staged_files(root: Path) -> list[Path]:
    return list(root.glob(".staging_*/old-*"))


def wait_until_half_is_staged(root: Path, process: subprocess.Popen[str]) -> None:
    while len(staged_files(root)) < 4:
        assert process.poll() is None, "the driver ended before it could be disturbed"
        time.sleep(0.02)


def test_a_worker_dies_in_the_middle(cluster: Cluster, root: Path, tmp_path: Path) -> None:
    process = driver(cluster, root, tmp_path, "slow")
    try:
        wait_until_half_is_staged(root, process)
        cluster.workers[0].stop()
        out, _ = process.communicate(timeout=240)
    finally:
        process.kill()
    assert process.returncode == 0, (tmp_path / "driver.log").read_text()[-3000:]
    result = json.loads(out.splitlines()[-1])
    assert (result["engine"], result["updated"], result["inserted"]) == ("spark", 10_000, 10_000)
    assert len(result["rewritten_files"]) == FILES
    check_merged(root)
    assert not list(root.glob(".staging*"))


def test_the_driver_dies_in_the_middle(cluster: Cluster, root: Path, tmp_path: Path) -> None:
    before = {path.name: path.read_bytes() for path in root.glob("*.parquet")}
    process = driver(cluster, root, tmp_path, "slow")
    try:
        wait_until_half_is_staged(root, process)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    finally:
        process.kill()
    assert {path.name: path.read_bytes() for path in root.glob("*.parquet")} == before
    lockgate.recover(root)
    assert {path.name: path.read_bytes() for path in root.glob("*.parquet")} == before
    again = driver(cluster, root, tmp_path)
    out, _ = again.communicate(timeout=240)
    assert again.returncode == 0, (tmp_path / "driver.log").read_text()[-3000:]
    assert json.loads(out.splitlines()[-1])["updated"] == 10_000
    check_merged(root)
    assert not list(root.glob(".staging*"))
