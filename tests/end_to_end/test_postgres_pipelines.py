"""From PostgreSQL through Spark into PostgreSQL, run after run."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import lockgate
from support.postgres import Database

ROOT = Path(__file__).parents[2]
PIPELINE = """
SOURCE orders FROM "shop" OPTIONS {"table": "public.orders", "cursor": "updated_at", "partitions": 2};
LOAD arrived FROM orders;
CREATE TABLE newest AS
  SELECT customer, max(amount) AS amount, max(updated_at) AS updated_at FROM arrived GROUP BY customer;
CHECK "no negative amount" AS SELECT * FROM arrived WHERE amount < 0;

EXPORT newest TO "public.customers" TYPE POSTGRES OPTIONS {"connection": "shop"} MODE UPSERT KEY (customer);
EXPORT SELECT id, amount FROM arrived TO "public.Order Log" TYPE POSTGRES OPTIONS {"connection": "shop"} MODE APPEND;
EXPORT SELECT id FROM arrived ORDER BY id TO "out/arrived.csv" TYPE CSV OPTIONS {"header": true} MODE REPLACE;
"""


def know(project: Path, name: str, database: Database) -> None:
    (project / "lockgate.toml").write_text(
        f'[profile.dev.connections.{name}]\ntype = "postgres"\nurl = "{database.url}"\n', encoding="utf-8"
    )


def test_an_incremental_source_and_three_exports_run_after_run(
    project: Path, database: Database, run_sql: Callable[..., Any]
) -> None:
    know(project, "shop", database)
    database.run("CREATE TABLE orders (id int, customer text, amount numeric(10,2), updated_at timestamptz)")
    database.run("CREATE TABLE customers (customer text PRIMARY KEY, amount numeric(10,2), updated_at timestamptz, "
                 "note text DEFAULT 'none')")  # fmt: skip
    database.run("INSERT INTO customers VALUES ('ann', 1, '2025-01-01Z', 'kept')")
    add = "INSERT INTO orders VALUES (%s, %s, %s, %s)"
    database.run(add, 1, "ann", 10, "2026-01-01T10:00Z")
    database.run(add, 2, "bob", 20, "2026-01-01T11:00Z")

    first = run_sql(PIPELINE)
    assert [(e.inserted, e.updated, e.deleted) for e in first.exports[:2]] == [(1, 1, 0), (2, 0, 0)]
    customers = "SELECT customer, amount, note FROM customers ORDER BY customer"
    assert database.run(customers) == [("ann", Decimal(10), "kept"), ("bob", Decimal(20), "none")]
    assert (project / "out/arrived.csv").read_text().split() == ["id", "1", "2"]

    database.run(add, 3, "bob", 5, "2026-01-01T11:00Z")  # equal to the watermark
    database.run(add, 4, "cid", 7, "2026-01-02T00:00Z")
    second = run_sql(PIPELINE)
    assert [(e.inserted, e.updated, e.deleted) for e in second.exports[:2]] == [(1, 1, 0), (2, 0, 0)]
    expected = [("ann", Decimal(10), "kept"), ("bob", Decimal(5), "none"), ("cid", Decimal(7), "none")]
    assert database.run(customers) == expected
    assert database.run('SELECT id FROM "Order Log" ORDER BY id') == [(1,), (2,), (3,), (4,)]
    assert (project / "out/arrived.csv").read_text().split() == ["id", "3", "4"]

    database.run(add, 5, "dan", -1, "2026-01-03T00:00Z")
    with pytest.raises(lockgate.CheckFailed):
        run_sql(PIPELINE)
    assert database.run(customers) == expected
    assert database.run('SELECT count(*) FROM "Order Log"') == [(4,)]


def test_the_example_runs(project: Path, database: Database, spark: Any) -> None:
    shutil.copytree(ROOT / "examples/warehouse", project, dirs_exist_ok=True)
    know(project, "warehouse_pg", database)
    days = len({line.split(",")[0] for line in (project / "data/sales.csv").read_text().split()[1:]})
    for run, (inserted, updated) in enumerate([(days, 0), (0, days)], start=1):
        result = lockgate.run("pipeline.sql", spark=spark)
        assert (result.status, result.exports[0].inserted, result.exports[0].updated) == (
            "published",
            inserted,
            updated,
        )
        assert database.run("SELECT count(*) FROM daily_sales_log") == [(days * run,)]
    assert database.run("SELECT count(*), sum(sales) > 0 FROM daily_sales") == [(days, True)]
