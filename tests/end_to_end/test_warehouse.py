"""Tables that stay: `tables = "warehouse"`, LOAD and CREATE TABLE across runs, MODE INCREMENTAL."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pytest

import lockgate
from lockgate.errors import CheckFailed, LockgateError
from lockgate.running.result import RunResult

TOML = '[profile.dev]\ntables = "warehouse"\n'
SOURCE = 'SOURCE days TYPE CSV PARAMS {"path": "days.csv", "schema": "day DATE, amount INT"};'
FACTS = f"""{SOURCE}
CREATE TABLE days MODE APPEND AS SELECT DATE'2000-01-01' AS day, 0 AS amount WHERE false;
LOAD raw FROM days;
CREATE TABLE facts MODE INCREMENTAL BY day LOOKBACK 1 DAY AS
  SELECT day, sum(amount) AS amount FROM raw WHERE day BETWEEN :start_date AND :end_date GROUP BY day;
"""


@pytest.fixture
def run(project: Path, run_sql: Callable[..., RunResult]) -> Callable[..., RunResult]:
    (project / "lockgate.toml").write_text(TOML)
    return run_sql


def rows(table: str) -> list[dict[str, Any]]:
    found = lockgate.open_table(table).to_arrow()
    return found.sort_by([(name, "ascending") for name in found.schema.names]).to_pylist()


def days(project: Path, **amounts: int) -> None:
    lines = [f"{day[1:].replace('_', '-')},{amount}" for day, amount in amounts.items()]
    (project / "days.csv").write_text("\n".join(["day,amount", *lines]) + "\n")


def test_a_table_goes_on_where_the_last_run_left_it(run: Callable[..., RunResult]) -> None:
    text = """CREATE TABLE seen MODE APPEND AS SELECT {n} AS id;
              CREATE TABLE latest MODE UPSERT KEY (k) AS SELECT 1 AS k, max(id) AS id FROM seen;
              CREATE TABLE total AS SELECT count(*) AS n FROM seen;"""
    first = run(text.format(n=1))
    assert {e.destination: (e.type, e.mode, e.version) for e in first.exports} == {
        "seen": ("DELTA", "APPEND", 0), "latest": ("DELTA", "UPSERT", 0), "total": ("DELTA", "REPLACE", 0),
    }  # fmt: skip
    second = run(text.format(n=2))
    assert {e.destination: e.version for e in second.exports} == {"seen": 1, "latest": 1, "total": 1}
    assert (rows("seen"), rows("latest"), rows("total")) == ([{"id": 1}, {"id": 2}], [{"k": 1, "id": 2}], [{"n": 2}])


def test_a_failing_check_leaves_every_table(run: Callable[..., RunResult]) -> None:
    run("CREATE TABLE a MODE APPEND AS SELECT 1 AS id;")
    with pytest.raises(CheckFailed):
        run("CREATE TABLE a MODE APPEND AS SELECT 2 AS id; CHECK 'one' AS SELECT * FROM a WHERE id > 1;")
    assert rows("a") == [{"id": 1}]
    assert lockgate.open_table("a").version == 0


def test_several_loads_of_one_run(run: Callable[..., RunResult], project: Path) -> None:
    days(project, d2026_01_01=1)
    text = f"{SOURCE} LOAD a FROM days MODE APPEND; LOAD a FROM days MODE APPEND;"
    run(text)
    run(text)
    assert [row["amount"] for row in rows("a")] == [1, 1, 1, 1]
    run(f"{SOURCE} LOAD a FROM days; LOAD a FROM days MODE UPSERT KEY (day);")
    assert [row["amount"] for row in rows("a")] == [1]


def test_an_incremental_table_computes_its_window_again(run: Callable[..., RunResult], project: Path) -> None:
    text = FACTS.replace(FACTS.splitlines()[1] + "\n", "")
    days(project, d2026_01_01=1, d2026_01_02=2, d2026_01_03=3)
    run(text)
    days(project, d2026_01_01=100, d2026_01_02=20, d2026_01_03=30, d2026_01_04=4)  # late news, of the first day too
    result = next(e for e in run(text).exports if e.destination == "facts")
    assert (result.inserted, result.deleted) == (3, 2)
    assert [(row["day"], row["amount"]) for row in rows("facts")] == [
        (date(2026, 1, 1), 1), (date(2026, 1, 2), 20), (date(2026, 1, 3), 30), (date(2026, 1, 4), 4),
    ]  # fmt: skip
    run(text, variables={"start_date": "2026-01-01", "end_date": "2026-01-01"})  # a backfill
    assert [row["amount"] for row in rows("facts")] == [100, 20, 30, 4]


def test_rows_outside_of_the_window_are_refused(run: Callable[..., RunResult]) -> None:
    with pytest.raises(LockgateError, match="is not in the window") as refused:
        run("CREATE TABLE f MODE INCREMENTAL BY day AS SELECT DATE'9999-01-01' AS day, :start_date AS s;")
    assert ":start_date AND :end_date" in refused.value.render()
    with pytest.raises(LockgateError, match="a window goes by dates"):
        run("CREATE TABLE f MODE INCREMENTAL BY day AS SELECT 1 AS day, :start_date AS s;")


def test_timestamps(run: Callable[..., RunResult]) -> None:
    text = """CREATE TABLE f MODE INCREMENTAL BY at LOOKBACK 1 HOUR AS SELECT at, {n} AS n FROM VALUES
              (TIMESTAMP'2026-01-01 00:00:00'), (TIMESTAMP'2026-01-01 01:30:00'), (TIMESTAMP'2026-01-01 02:00:00')
              AS t(at) WHERE at BETWEEN :start_date AND :end_date;"""
    run(text.format(n=1))
    run(text.format(n=2))
    assert [row["n"] for row in rows("f")] == [1, 2, 2]


def test_names_that_spark_could_take_for_patterns(run: Callable[..., RunResult]) -> None:
    text = """CREATE TABLE `a[1]?{b,c}*#` MODE APPEND AS SELECT 1 AS id;
              CREATE TABLE n AS SELECT count(*) AS n FROM `a[1]?{b,c}*#`;"""
    run(text)
    run(text)
    assert rows("n") == [{"n": 2}]
    run("""CREATE TABLE t AS SELECT 1 AS id, 'x' AS part;
           EXPORT t TO "p[1]?" TYPE DELTA OPTIONS {"partition_by": ["part"]} MODE APPEND;""")
    run('SOURCE p TYPE DELTA PARAMS {"table": "p[1]?"}; LOAD again FROM p;')
    assert rows("again") == [{"id": 1, "part": "x"}]


def test_columns_may_be_written_in_any_case(run: Callable[..., RunResult]) -> None:
    """As for tables in memory. The table keeps the names that it began with."""
    text = "CREATE TABLE t MODE {mode} AS SELECT {n} AS {k}, '{n}' AS {v};"
    run(text.format(mode="UPSERT KEY (K)", n=1, k="k", v="Value"))
    run(text.format(mode="UPSERT KEY (k)", n=1, k="K", v="value"))
    run(text.format(mode="APPEND", n=2, k="K", v="VALUE"))
    run(text.format(mode="DEDUPLICATE KEY (k) ORDER BY value DESC", n=3, k="K", v="VALUE"))
    assert rows("t") == [{"k": n, "Value": str(n)} for n in (1, 2, 3)]
    facts = """CREATE TABLE f MODE INCREMENTAL BY DAY AS SELECT * FROM (SELECT DATE'2026-01-01' AS {day})
               WHERE {day} BETWEEN :start_date AND :end_date;"""
    run(facts.format(day="day"))
    run(facts.format(day="Day"))
    assert rows("f") == [{"day": date(2026, 1, 1)}]
