"""A merge by a real cluster, a master with two workers on loopback: a worker dies in the middle, or the driver."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import lockgate
from support.spark_cluster import Cluster, standalone_cluster

DRIVER = """
import json, sys
from pathlib import Path
from lockgate.config import SparkSettings
from lockgate.running.session import open_session
import lockgate

master, root, scratch, way, slow, rows = sys.argv[1:]
rows = int(rows)
conf = {
    "spark.sql.shuffle.partitions": "4",
    "spark.executor.memory": "512m",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.task.maxFailures": "8",
}
spark = open_session(SparkSettings(master=master, conf=conf), name="merge", scratch=Path(scratch))
ids = spark.range(0, 2 * rows, 20).selectExpr("id", "'new' AS x", "id * 2 AS n")
from lockgate.engines import spark_computed, spark_spread_worker, spark_tasks, spark_worker
spark_tasks._LEAST_ROWS_A_TASK = 1
if way == "joined":
    spark_computed.ROWS_BROUGHT = 0
if slow == "slow":
    # Each file takes a while, so that there is a middle to be killed in.
    joined, spread = spark_worker.rewrite, spark_spread_worker.rewrite
    def joined_slowly(*given):
        work = joined(*given)
        def step(key, table):
            import time
            time.sleep(0.7)
            return work(key, table)
        return step
    def spread_slowly(*given):
        work = spread(*given)
        def step(batches):
            import time
            for written in work(batches):
                time.sleep(0.7)
                yield written
        return step
    spark_worker.rewrite, spark_spread_worker.rewrite = joined_slowly, spread_slowly
print("ready", flush=True)
result = lockgate.merge(ids, root, strategy="upsert", key_columns="id")
print(json.dumps(result.to_json()), flush=True)
spark.stop()
"""


@pytest.fixture
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """One for each test, since one of its workers is killed."""
    with standalone_cluster(tmp_path_factory.mktemp("cluster")) as started:
        yield started


@dataclass(frozen=True)
class Lake:
    """Keys in order in files by range; the source has every twentieth of them, and as many that are new."""

    root: Path
    files: int
    rows: int
    way: str  # of merging
    slowly: str  # whether files are written slowly, so that there is a middle to be killed in

    @property
    def changed(self) -> int:
        return self.rows // 20


@pytest.fixture(params=["spread", pytest.param("joined", marks=pytest.mark.slow)])
def way(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=["small", pytest.param("large", marks=pytest.mark.slow)])
def lake(request: pytest.FixtureRequest, tmp_path: Path, way: str) -> Lake:
    files, size, slowly = (20, 5_000, "slow") if request.param == "small" else (200, 100_000, "")
    folder = tmp_path / "lake"
    folder.mkdir()
    for i in range(files):
        ids = pa.arange(i * size, (i + 1) * size)
        table = pa.table({"id": ids, "x": pa.repeat("old", size), "n": ids})
        pq.write_table(table, folder / f"part-{i:03}.parquet")
    return Lake(folder, files, files * size, way, slowly)


def driver(cluster: Cluster, lake: Lake, tmp_path: Path, slowly: str) -> subprocess.Popen[str]:
    (tmp_path / "driver.py").write_text(DRIVER)
    arguments = [cluster.url, str(lake.root), str(tmp_path / "scratch"), lake.way, slowly, str(lake.rows)]
    return subprocess.Popen(
        [sys.executable, "driver.py", *arguments],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=(tmp_path / "driver.log").open("w"),
        text=True,
    )


def check_merged(lake: Lake) -> None:
    table = pq.read_table(lake.root)
    assert table.num_rows == lake.rows + lake.changed
    assert pc.count_distinct(table["id"]).as_py() == table.num_rows
    new = table.filter(pc.equal(table["x"], "new"))
    assert sorted(new["id"].to_pylist()) == list(range(0, 2 * lake.rows, 20))
    assert pc.all(pc.equal(new["n"], pc.multiply(new["id"], 2))).as_py()


def staged_files(root: Path) -> list[Path]:
    return list(root.glob(".staging_*/old-*"))


def wait_until_half_is_staged(root: Path, process: subprocess.Popen[str]) -> None:
    while len(staged_files(root)) < 4:
        assert process.poll() is None, "the driver ended before it could be disturbed"
        time.sleep(0.02)


def test_a_worker_dies_in_the_middle(cluster: Cluster, lake: Lake, tmp_path: Path) -> None:
    root = lake.root
    process = driver(cluster, lake, tmp_path, lake.slowly)
    try:
        wait_until_half_is_staged(root, process)
        cluster.workers[0].stop()
        out, _ = process.communicate(timeout=240)
    finally:
        process.kill()
    assert process.returncode == 0, (tmp_path / "driver.log").read_text()[-3000:]
    result = json.loads(out.splitlines()[-1])
    assert (result["engine"], result["updated"], result["inserted"]) == ("spark", lake.changed, lake.changed)
    assert len(result["rewritten_files"]) == lake.files
    check_merged(lake)
    assert not list(root.glob(".staging*"))


@pytest.mark.slow
def test_the_driver_dies_in_the_middle(cluster: Cluster, lake: Lake, tmp_path: Path) -> None:
    root = lake.root
    before = {path.name: path.read_bytes() for path in root.glob("*.parquet")}
    process = driver(cluster, lake, tmp_path, lake.slowly)
    try:
        wait_until_half_is_staged(root, process)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    finally:
        process.kill()
    assert {path.name: path.read_bytes() for path in root.glob("*.parquet")} == before
    lockgate.recover(root)
    assert {path.name: path.read_bytes() for path in root.glob("*.parquet")} == before
    again = driver(cluster, lake, tmp_path, "")
    out, _ = again.communicate(timeout=240)
    assert again.returncode == 0, (tmp_path / "driver.log").read_text()[-3000:]
    assert json.loads(out.splitlines()[-1])["updated"] == lake.changed
    check_merged(lake)
    assert not list(root.glob(".staging*"))
