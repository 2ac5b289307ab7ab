"""Merges over Spark Connect. The server's Python has no lockgate: the engine brings the package along."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.leftovers import leftovers
from support.merge_reading import all_rows, values
from support.spark_cluster import connect_server

STRATEGIES = ("insert", "update", "upsert", "full_merge", "deduplicate")

# One client does all the merges; each case has a dataset of its own.
CLIENT = """
import json, sys
from pathlib import Path
import lockgate
from lockgate.errors import LockgateError
from pyspark.sql import SparkSession

address, root = sys.argv[1], Path(sys.argv[2])
spark = SparkSession.builder.remote(address).getOrCreate()
spark.conf.set("spark.sql.shuffle.partitions", "2")
said = {}

def merge(case, query, strategy="upsert", key="id", times=1, **options):
    frame = spark.sql(query) if isinstance(query, str) else query
    for time in range(times):
        try:
            result = lockgate.merge(frame, root / case, strategy=strategy, key_columns=key, **options)
            told = result.to_json()
        except LockgateError as error:
            told = {"error": type(error).__name__, "said": error.render(), "files": list(getattr(error, "files", ()))}
        except Exception as error:
            told = {"error": type(error).__name__, "said": str(error), "files": []}
        said[case if time == 0 else f"{case} again"] = told
        print(case, told, file=sys.stderr, flush=True)

SOURCE = "SELECT id, concat('new ', id) AS x FROM VALUES (2L), (3L), (7L) AS t(id)"
for strategy in ("insert", "update", "upsert", "full_merge"):
    merge(strategy, SOURCE, strategy)
merge("deduplicate", f"SELECT *, 1 AS n FROM ({SOURCE}) UNION ALL SELECT 7L, 'best', 2", "deduplicate",
      order_by=["n DESC"], schema="evolve")
merge("partitioned", "SELECT id, concat('new ', id) AS x, if(id < 5, 'a b', 'c/d') AS day FROM range(4, 7)",
      partition_by="day")
merge("moves", "SELECT 1L AS id, 'new 1' AS x, 'c/d' AS day", partition_by="day")
merge("nulls", "SELECT id, 'n' AS x FROM VALUES (1L), (NULL) AS t(id)")
merge("duplicates", "SELECT id, 'n' AS x FROM VALUES (1L), (1L), (2L) AS t(id)")
merge("skipped", "SELECT id, concat('old ', id) AS x FROM VALUES (1L), (2L) AS t(id)", skip_unchanged=True)
merge("dry", SOURCE, dry_run=True)
TIMES = "timestamp'0001-01-01 00:00:00.000001Z' AS at, timestamp_ntz'2026-01-01' AS wall"
merge("made", f"SELECT id, {TIMES} FROM range(3)", key=["id", "at"], times=2)
merge("damaged", SOURCE)
merge("lossy", "SELECT id, 5000000000 AS n FROM range(3)")
import pyarrow as pa
merge("table", pa.table({"id": [2, 9], "x": ["new 2", "new 9"]}), engine="spark", spark=spark)
print(json.dumps(said))
spark.stop()
"""


def rows(*numbers: int) -> pa.Table:
    return pa.table({"id": pa.array(numbers, pa.int64()), "x": [f"old {n}" for n in numbers]})


def make_datasets(root: Path) -> None:
    for case in (*STRATEGIES, "nulls", "duplicates", "skipped", "dry", "damaged", "table"):
        (root / case).mkdir(parents=True)
        pq.write_table(rows(1, 2, 3), root / case / "a.parquet", compression="none", use_dictionary=False)
        pq.write_table(rows(50, 51), root / case / "b.parquet")
    for case in ("partitioned", "moves"):
        for folder, numbers in (("day=a b", (1, 4)), ("day=c%2Fd", (5,))):
            (root / case / folder).mkdir(parents=True)
            pq.write_table(rows(*numbers), root / case / folder / "a.parquet")
    (root / "lossy").mkdir()
    pq.write_table(pa.table({"id": [1], "n": pa.array([1], pa.int32())}), root / "lossy" / "a.parquet")
    damaged = root / "damaged" / "a.parquet"
    content = bytearray(damaged.read_bytes())
    at = pq.read_metadata(damaged).row_group(0).column(1).data_page_offset
    content[at : at + 12] = b"\xff" * 12
    damaged.write_bytes(content)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("connect") / "lake"


@pytest.fixture(scope="module")
def files_before(root: Path) -> dict[str, tuple[bytes, int]]:
    make_datasets(root)
    return {str(p): (p.read_bytes(), p.stat().st_mtime_ns) for p in root.rglob("*.parquet")}


@pytest.fixture(scope="module")
def said(root: Path, files_before: Any, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the client told of each merge."""
    assert files_before
    ours = {k: v for k, v in os.environ.items() if not k.startswith(("SPARK_", "PYSPARK_", "LOCKGATE_"))}
    with connect_server(tmp_path_factory.mktemp("server")) as address:
        done = subprocess.run(
            [sys.executable, "-c", CLIENT, address, str(root)],
            env=ours, capture_output=True, text=True, timeout=400, check=False,
        )  # fmt: skip
    assert done.returncode == 0, done.stderr[-6000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def counts(told: dict[str, Any]) -> tuple[int, int, int]:
    assert "error" not in told, told
    assert told["engine"] == "spark"
    return told["inserted"], told["updated"], told["deleted"]


def untouched(folder: Path, files_before: dict[str, tuple[bytes, int]]) -> bool:
    before = {path: what for path, what in files_before.items() if path.startswith(f"{folder}/")}
    return {str(p): (p.read_bytes(), p.stat().st_mtime_ns) for p in folder.rglob("*.parquet")} == before


OLD = {1: "old 1", 2: "old 2", 3: "old 3", 50: "old 50", 51: "old 51"}
NEW = {2: "new 2", 3: "new 3", 7: "new 7"}
EXPECTED = {
    "insert": ({**NEW, **OLD}, (1, 0, 0)),
    "update": (OLD | {2: "new 2", 3: "new 3"}, (0, 2, 0)),
    "upsert": (OLD | NEW, (1, 2, 0)),
    "full_merge": (NEW, (1, 2, 3)),
    "deduplicate": (OLD | NEW | {7: "best"}, (1, 2, 0)),
}


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_each_strategy(strategy: str, said: dict[str, Any], root: Path) -> None:
    expected, numbers = EXPECTED[strategy]
    assert counts(said[strategy]) == numbers
    assert said[strategy]["deduplicated"] == (strategy == "deduplicate")
    assert values(root / strategy, "id", "x") == expected
    assert leftovers(root / strategy) == []


def test_a_partitioned_dataset(said: dict[str, Any], root: Path) -> None:
    assert counts(said["partitioned"]) == (1, 2, 0)
    assert values(root / "partitioned", "id", "x") == {1: "old 1", 4: "new 4", 5: "new 5", 6: "new 6"}
    assert values(root / "partitioned", "id", "day") == {1: "a b", 4: "a b", 5: "c/d", 6: "c/d"}
    assert {p.name for p in (root / "partitioned").iterdir() if p.is_dir()} == {"day=a b", "day=c%2Fd"}


@pytest.mark.parametrize(
    ("case", "error", "text"),
    [
        ("nulls", "NullKeyError", 'key column "id" is NULL in 1 of 2 source rows'),
        ("duplicates", "DuplicateKeyError", "1 of 3 source rows repeats a key: id=1"),
        ("moves", "PartitionMoveError", "id=1"),
        ("damaged", "DatasetMergeError", "a.parquet"),
        ("lossy", "SchemaMismatchError", 'column "n"'),
    ],
)
def test_a_merge_that_is_refused(
    case: str, error: str, text: str, said: dict[str, Any], root: Path, files_before: dict[str, tuple[bytes, int]]
) -> None:
    assert said[case].get("error") == error, said[case]
    assert text in said[case]["said"]
    assert "now: nothing was written" in said[case]["said"]
    assert untouched(root / case, files_before)
    assert leftovers(root / case) == []


@pytest.mark.parametrize(("case", "expected"), [("skipped", (0, 0, 0)), ("dry", (1, 2, 0))])
def test_a_merge_that_writes_nothing(
    case: str, expected: Any, said: dict[str, Any], root: Path, files_before: dict[str, tuple[bytes, int]]
) -> None:
    assert counts(said[case]) == expected
    assert untouched(root / case, files_before)
    assert leftovers(root / case) == []


def test_a_dataset_that_is_made(said: dict[str, Any], root: Path) -> None:
    """The server lives in another time zone."""
    assert (counts(said["made"]), counts(said["made again"])) == ((3, 0, 0), (0, 3, 0))
    found = pq.read_table(root / "made")
    assert found["at"].cast(pa.int64()).unique().to_pylist() == [-62135596800000000 + 1]
    assert found["wall"].type == pa.timestamp("us")
    assert sum(all_rows(root / "made").values()) == 3


def test_a_table_as_the_source(said: dict[str, Any], root: Path) -> None:
    assert counts(said["table"]) == (1, 1, 0)
    assert values(root / "table", "id", "x") == OLD | {2: "new 2", 9: "new 9"}
