"""Pipelines with Delta tables as destinations and as sources, on Spark."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import deltalake
import pytest

import lockgate
from lockgate.config import load_project
from lockgate.running.entry import make_preview
from lockgate.running.result import RunResult

Run = Callable[..., RunResult]

DAY = """
SOURCE given TYPE CSV PARAMS {{"path": "in/{day}.csv", "schema": "id BIGINT, city STRING, amount DECIMAL(10,2), day DATE"}};
LOAD rows FROM given;
EXPORT rows TO "sales.orders" TYPE DELTA OPTIONS {{"partition_by": ["day"]}} MODE APPEND;
EXPORT SELECT city, sum(amount) AS amount FROM rows WHERE city IS NOT NULL GROUP BY city TO "sales.cities" TYPE DELTA MODE UPSERT KEY (city);
"""  # noqa: E501


def given(project: Path, day: str, *rows: str) -> None:
    (project / "in").mkdir(exist_ok=True)
    (project / f"in/{day}.csv").write_text("\n".join(["id,city,amount,day", *rows]) + "\n")


def test_two_exports_are_one_transaction_and_a_source_reads_any_version(run_sql: Run, project: Path) -> None:
    given(project, "1", "1,Köln,1.50,2026-01-01", "2,a/b %,2.00,2026-01-01", "3,,3.00,")
    given(project, "2", "4,Köln,9.00,2026-01-02")
    first = run_sql(DAY.format(day="1"))
    second = run_sql(DAY.format(day="2"))
    assert [(e.inserted, e.updated, e.version) for e in first.exports] == [(3, 0, 0), (2, 0, 0)]
    assert [(e.inserted, e.updated, e.version) for e in second.exports] == [(1, 0, 1), (0, 1, 1)]
    with lockgate.open_table("sales.orders") as orders, lockgate.open_table("sales.cities") as cities:
        assert orders.history()[0].txn_id == cities.history()[0].txn_id
        assert not any(Path(orders.location).rglob(".staging*"))
        rows = {(r["city"], str(r["amount"])) for r in cities.to_arrow().to_pylist()}
        assert rows == {("Köln", "9.00"), ("a/b %", "2.00")}
        theirs = deltalake.DeltaTable(orders.location).to_pyarrow_table().sort_by("id")
        assert theirs.to_pylist() == orders.to_arrow().sort_by("id").to_pylist()
    read = """
    SOURCE now TYPE DELTA PARAMS {"table": "sales.orders"};
    SOURCE before TYPE DELTA PARAMS {"table": "sales.orders", "version": 0};
    LOAD new FROM now; LOAD old FROM before;
    EXPORT SELECT n.id, n.city, n.amount, n.day FROM new n LEFT ANTI JOIN old o ON n.id = o.id
      TO "sales.added" TYPE DELTA MODE REPLACE;
    EXPORT SELECT * FROM old WHERE day IS NULL TO "sales.undated" TYPE DELTA MODE REPLACE;
    """
    assert [e.rows for e in run_sql(read).exports] == [1, 1]
    with lockgate.open_table("sales.added") as added:
        assert added.to_arrow().column("id").to_pylist() == [4]


def test_a_failing_check_leaves_both_tables_as_they_were(run_sql: Run, project: Path) -> None:
    given(project, "1", "1,Köln,1.50,2026-01-01")
    with pytest.raises(lockgate.CheckFailed):
        run_sql(DAY.format(day="1") + 'CHECK "none" AS SELECT * FROM rows;')
    with pytest.raises(lockgate.TableNotFound):
        lockgate.open_table("sales.orders")
    assert not (project / "warehouse").exists()


@pytest.mark.usefixtures("project")
def test_a_frame_prunes_partitions_and_reads_what_arrow_reads(spark: Any) -> None:
    import pyarrow as pa

    schema = pa.schema({"id": pa.int64(), "p": pa.string(), "at": pa.timestamp("us", "UTC")})
    values = ["a b", "x/y", "50%", "ünï", "007", None]
    with lockgate.create_table("t.parts", schema, partition_by=["p"]) as table:
        table.append([{"id": n, "p": p, "at": None} for n, p in enumerate(values)])
        frame = table.to_spark(spark)
        assert sorted(map(tuple, frame.collect())) == sorted(
            [(n, p, None) for n, p in enumerate(values)], key=lambda r: r[0]
        )
        for p in values[:-1]:
            assert frame.filter(frame.p == p).count() == 1
        assert frame.filter(frame.p.isNull()).count() == 1
        assert frame.schema["p"].dataType.simpleString() == "string"


def test_a_preview_says_what_the_run_then_does(spark: Any, run_sql: Run, project: Path) -> None:
    (project / "in").mkdir()
    text = """
    SOURCE given TYPE CSV PARAMS {"path": "in/1.csv", "schema": "id BIGINT, x STRING"};
    LOAD rows FROM given;
    EXPORT rows TO "t.state" TYPE DELTA OPTIONS {"engine": "arrow"} MODE UPSERT KEY (id);
    """
    for lines in (["1,a", "2,b"], ["2,B", "3,c", "4,d"]):
        (project / "in/1.csv").write_text("\n".join(["id,x", *lines]) + "\n")
        (project / "pipeline.sql").write_text(text)
        there = {p for p in project.rglob("*") if "warehouse" in p.parts}
        numbers = make_preview("pipeline.sql", load_project(), spark=spark).execute().exports[0]
        assert {p for p in project.rglob("*") if "warehouse" in p.parts} == there
        done = run_sql(text).exports[0]
        assert (numbers.inserted, numbers.updated, numbers.deleted) == (done.inserted, done.updated, done.deleted)
        assert numbers.files["rewritten"] == done.files["rewritten"]


def test_the_example_runs_twice(spark: Any, project: Path) -> None:
    shutil.copytree(Path(__file__).parents[2] / "examples/lake", project, dirs_exist_ok=True)
    assert lockgate.run("pipeline.sql", spark=spark).ok
    result = lockgate.run("pipeline.sql", spark=spark, variables={"day": "2"})
    assert [(e.inserted, e.updated, e.version) for e in result.exports] == [(1, 1, 1), (1, 1, 1)]
