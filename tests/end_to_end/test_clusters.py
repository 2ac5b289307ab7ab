"""One pipeline file on local Spark, on a standalone master with two workers, and over Spark Connect: equal results."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from support.leftovers import leftovers
from support.spark_cluster import SMALL_JAVA, Cluster, connect_server, standalone_cluster

ORDERS = 400
SMALLEST = Decimal("5.00")

PIPELINE = """
SOURCE people TYPE CSV PARAMS {"path": "data/people.csv",
    "schema": "id INT, name STRING, country STRING, seen TIMESTAMP, note STRING"};
SOURCE orders TYPE JSON PARAMS {"path": ["data/orders-1.jsonl", "data/orders-2.jsonl"],
    "schema": "id BIGINT, person INT, amount DECIMAL(12,2), at TIMESTAMP"};
SOURCE rates TYPE PARQUET PARAMS {"path": "data/rates.parquet"};
LOAD people_raw FROM people;
LOAD orders_raw FROM orders;
LOAD rates_raw FROM rates;

CREATE TABLE sales AS
  SELECT o.id, initials(p.name) AS who, p.country, o.amount, o.amount * r.rate AS tax,
         rounded(CAST(o.amount AS DOUBLE), p.country) AS price, o.at, p.seen, p.note
  FROM orders_raw o
  JOIN people_raw p ON p.id = o.person
  LEFT JOIN rates_raw r ON r.country = p.country;
CREATE OR REPLACE TABLE sales AS SELECT * FROM sales WHERE amount >= :smallest;
CREATE OR REPLACE TABLE sales AS SELECT *, row_number() OVER (PARTITION BY country ORDER BY at) AS place FROM sales;

-- Another token for a row each time it is computed: the two exports of it show that once was enough.
CREATE TABLE marked AS SELECT id, uuid() AS token FROM sales;

CHECK "every order is large enough" AS SELECT * FROM sales WHERE amount < :smallest;
CHECK "every order has its place"   AS SELECT country, place FROM sales GROUP BY ALL HAVING count(*) > 1;

EXPORT SELECT * FROM sales ORDER BY at DESC, id TO "out/sales.csv" TYPE CSV MODE REPLACE;
EXPORT SELECT country, count(*) AS orders, sum(amount) AS amount, sum(tax) AS tax, max(at) AS latest, min(note) AS note
  FROM sales GROUP BY country ORDER BY country NULLS FIRST
  TO "out/countries.json" TYPE JSON MODE REPLACE;
EXPORT SELECT * FROM sales ORDER BY amount, id TO "out/sales.parquet" TYPE PARQUET MODE REPLACE;
EXPORT sales TO "out/sales" TYPE PARQUET OPTIONS {"partition_by": ["country"]} MODE REPLACE AS by_country;
EXPORT marked TO "out/marked" TYPE PARQUET MODE REPLACE;
EXPORT SELECT * FROM marked ORDER BY id TO "out/marked.parquet" TYPE PARQUET MODE REPLACE;
"""

FUNCTIONS = """
import pyarrow as pa
import pyarrow.compute as pc

import lockgate

DIGITS = {"JP": 0, "DE": 1}


@lockgate.function(returns="string")
def letter(word):
    return word[:1].upper()


@lockgate.function(returns="string")
def initials(name):
    return None if name is None else "".join(letter(word) for word in name.split())


@lockgate.function(returns="double", vectorized=True)
def rounded(amount: pa.Array, country: pa.Array) -> pa.Array:
    digits = [DIGITS.get(code, 2) for code in country.to_pylist()]
    return pa.array([round(value, n) for value, n in zip(pc.add(amount, 0.5).to_pylist(), digits)], pa.float64())
"""

# The data is tiny; compiling for it is what would take long.
CONF = """
"spark.sql.shuffle.partitions" = "2"
"spark.sql.codegen.wholeStage" = "false"
"""

# The second has no zone of its own and is in that of the session; the third is in one.
PEOPLE = """id,name,country,seen,note
1,Ada Lovelace,GB,2024-03-31T01:59:59.123456Z,"said ""so"", twice"
2,Émilie du Châtelet,FR,2024-03-31 02:30:00.000001,""
3,,DE,2024-10-27T02:30:00.999999+02:00,
4,Kurt Gödel,,0001-01-01T00:00:00Z,"two
lines"
5,Takebe Katahiro,JP,,plain
"""


@dataclass
class Ran:
    """A run of the pipeline by the command line, and what it left."""

    folder: Path
    result: dict[str, Any]

    def text(self, name: str) -> bytes:
        return (self.folder / "out" / name).read_bytes()

    def rows(self, name: str) -> list[dict[str, Any]]:
        partitioning = ds.partitioning(pa.schema([("country", pa.string())]), flavor="hive")
        files = [str(p) for p in sorted((self.folder / "out" / name).rglob("*.parquet"))]
        root = str(self.folder / "out" / name)
        table = ds.dataset(files, partitioning=partitioning, partition_base_dir=root).to_table()
        return sorted(table.select(sorted(table.column_names)).to_pylist(), key=lambda row: row["id"])


def make_project(folder: Path) -> Path:
    (folder / "data").mkdir(parents=True)
    (folder / "functions").mkdir()
    (folder / "lockgate.toml").write_text(f"[profile.dev.spark.conf]\n{CONF}")
    (folder / "pipeline.sql").write_text(PIPELINE)
    (folder / "functions" / "names.py").write_text(FUNCTIONS)
    (folder / "data" / "people.csv").write_text(PEOPLE)
    first = datetime(2024, 1, 1, 0, 0, 0, 1, tzinfo=UTC)
    lines = [
        json.dumps(
            {
                "id": n,
                "person": 1 + n * 7 % 5,
                "amount": f"{Decimal(n * 37 % 9973) / 100:.2f}" if n % 11 else None,
                "at": (first + n * timedelta(hours=7, microseconds=n)).isoformat(timespec="microseconds"),
            }
        )
        for n in range(ORDERS)
    ]
    for number, part in enumerate((lines[: ORDERS // 2], lines[ORDERS // 2 :]), start=1):
        (folder / "data" / f"orders-{number}.jsonl").write_text("\n".join(part) + "\n")
    rates = [("GB", Decimal("0.2000")), ("FR", Decimal("0.2000")), ("DE", Decimal("0.1900")), ("JP", None)]
    schema = pa.schema([("country", pa.string()), ("rate", pa.decimal128(10, 4))])
    table = pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rates], schema)
    pq.write_table(table, folder / "data" / "rates.parquet")
    return folder


def lockgate_run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("SPARK_", "PYSPARK_", "LOCKGATE_"))}
    environment |= {"SPARK_LOCAL_IP": "127.0.0.1", "JDK_JAVA_OPTIONS": SMALL_JAVA}
    return subprocess.run(
        [sys.executable, "-m", "lockgate", "run", "pipeline.sql", *arguments, "--json"],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def run_at(folder: Path, *where: str) -> Ran:
    make_project(folder)
    ended = lockgate_run(folder, *where, "--var", f"smallest:decimal={SMALLEST}")
    assert ended.returncode == 0, ended.stderr + ended.stdout
    assert leftovers(folder) == []
    return Ran(folder, json.loads(ended.stdout))


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    return run_at(tmp_path_factory.mktemp("here") / "project", "--master", "local[2]")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with standalone_cluster(tmp_path_factory.mktemp("cluster")) as running:
        yield running


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with connect_server(tmp_path_factory.mktemp("connect")) as address:
        yield address


def test_the_local_run_is_right(here: Ran) -> None:
    """What the others are compared with: checked against the data itself, so that equal is not equally wrong."""
    text = here.text("sales.csv").decode()
    assert text.startswith("id,who,country,amount,tax,price,at,seen,note,place\n399,KG,,47.90,,48.4,2024-04-26T09:00")
    one = '393,ÉDC,FR,45.68,9.136000,46.18,2024-04-24T15:00:00.154450Z,2024-03-31T02:30:00.000001Z,"",66'
    assert f"\n{one}\n" in text
    assert '"two\nlines"' in text
    rows = here.rows("sales")
    amounts = {n: Decimal(n * 37 % 9973) / 100 for n in range(ORDERS) if n % 11}
    assert {row["id"]: row["amount"] for row in rows} == {n: a for n, a in amounts.items() if a >= SMALLEST}
    assert {row["country"] for row in rows} == {"GB", "FR", "DE", "JP", None}
    assert {row["who"] for row in rows} == {"AL", "ÉDC", None, "KG", "TK"}
    assert {row["seen"] for row in rows if row["country"] == "DE"} == {datetime(2024, 10, 27, 0, 30, 0, 999999, UTC)}
    assert here.result["status"] == "published"
    assert [check["passed"] for check in here.result["checks"]] == [True, True]


def test_a_standalone_cluster_gives_the_same(here: Ran, cluster: Cluster, tmp_path: Path) -> None:
    there = run_at(tmp_path / "project", "--master", cluster.url)
    assert_same(there, here)
    for worker in cluster.workers:
        assert "Asked to launch executor" in worker.said()


def test_spark_connect_gives_the_same(here: Ran, server: str, tmp_path: Path) -> None:
    there = run_at(tmp_path / "project", "--remote", server)
    assert_same(there, here)
    assert not (tmp_path / "project/.lockgate/spark.log").exists(), "a Spark was started here"


def assert_same(there: Ran, here: Ran) -> None:
    assert there.text("sales.csv") == here.text("sales.csv")
    assert there.text("countries.json") == here.text("countries.json")
    ours, theirs = (pq.read_table(ran.folder / "out/sales.parquet") for ran in (here, there))
    assert theirs.schema == ours.schema
    assert theirs.to_pylist() == ours.to_pylist()
    assert there.rows("sales") == here.rows("sales")
    for ran in (here, there):
        marked = pq.read_table(ran.folder / "out/marked.parquet").to_pylist()
        assert sorted(pq.read_table(ran.folder / "out/marked").to_pylist(), key=lambda row: row["id"]) == marked
    assert counts(there.result) == counts(here.result)


def counts(result: dict[str, Any]) -> dict[str, Any]:
    """All of a result that is not a time, an id or a number of files, which depends on the cores."""
    steps = [{k: v for k, v in step.items() if k != "seconds"} for step in result["steps"]]
    exports = [{k: v for k, v in export.items() if k not in ("files", "paths")} for export in result["exports"]]
    return {**{k: v for k, v in result.items() if k != "run"}, "steps": steps, "exports": exports}


@pytest.mark.parametrize(
    ("pipeline", "place", "said"),
    [
        pytest.param(
            'CREATE TABLE t AS SELECT 1 AS id;\nEXPORT SELECT\n  id + array(1) AS x FROM t TO "a.csv" TYPE CSV;\n',
            "pipeline.sql:3:3: error[spark]",
            "DATATYPE_MISMATCH",
            id="when the query is analysed",
        ),
        pytest.param(
            "CREATE TABLE t AS SELECT * FROM VALUES ('x') AS t(word);\n"
            'EXPORT SELECT word,\n   CAST(word AS INT) AS x FROM t TO "a.csv" TYPE CSV;\n',
            "pipeline.sql:3:4: error[spark]",
            "CAST_INVALID_INPUT",
            id="when it is computed",
        ),
    ],
)
def test_a_type_error_over_connect_has_our_place(server: str, tmp_path: Path, pipeline: str, place: str, said: str):
    (tmp_path / "pipeline.sql").write_text(pipeline)
    ended = lockgate_run(tmp_path, "--remote", server)
    assert ended.returncode == 1
    assert place in ended.stderr
    assert said in ended.stderr
    assert "nothing was published" in ended.stderr
    assert_no_trace(ended.stderr)
    assert json.loads(ended.stdout)["status"] == "failed"
    assert not (tmp_path / "a.csv").exists()
    assert leftovers(tmp_path) == []


def test_an_address_where_nothing_listens_is_an_error(tmp_path: Path) -> None:
    """Spark's client on its own would go on trying for ten minutes."""
    (tmp_path / "pipeline.sql").write_text('EXPORT SELECT 1 AS id TO "a.csv" TYPE CSV;')
    ended = lockgate_run(tmp_path, "--remote", "sc://127.0.0.1:1")
    assert ended.returncode == 1
    assert "sc://127.0.0.1:1" in ended.stderr
    assert "nothing was run" in ended.stderr
    assert len(ended.stderr.splitlines()) <= 4
    assert_no_trace(ended.stderr)
    assert json.loads(ended.stdout)["status"] == "failed"
    assert leftovers(tmp_path) == []


def assert_no_trace(text: str) -> None:
    for mark in ("Traceback", "\tat ", "JVM stacktrace", "grpc._channel"):
        assert mark not in text
