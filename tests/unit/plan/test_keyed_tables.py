"""A keyed LOAD or CREATE TABLE goes on with the table before it; the plan says so and keeps what is read twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from lockgate.language import parse
from lockgate.modes import KEYED_MODES
from lockgate.plan import Plan, Step, make_plan


def plan_of(text: str) -> Plan:
    return make_plan(parse(text, file="p.sql"), pipeline="p.sql", project=Path("/project"))


def at(plan: Plan, line: int) -> Step:
    return next(step for step in plan.steps if step.statement.place.line == line)


@pytest.mark.parametrize("mode", KEYED_MODES)
def test_the_earlier_table_is_read(mode: str) -> None:
    plan = plan_of(f"""SOURCE s TYPE CSV PARAMS {{"path": "x"}};
LOAD t FROM s MODE {mode} KEY (id);
LOAD t FROM s MODE {mode} KEY (id);
CREATE TABLE t MODE {mode} KEY (id) AS SELECT 1 AS id;
EXPORT t TO 't.csv' TYPE CSV;""")
    assert [at(plan, line).reads for line in (2, 3, 4, 5)] == [("s",), ("s", "t"), ("t",), ("t",)]
    assert [at(plan, line).shared for line in (2, 3, 4)] == [False, False, False]


def test_a_reader_between_two_loads_comes_between_them_and_shares_the_first() -> None:
    plan = plan_of("""CREATE TABLE t MODE UPSERT KEY (id) AS SELECT 1 AS id;
CREATE TABLE reader AS SELECT * FROM t JOIN far;
CREATE TABLE T MODE UPSERT KEY (id) AS SELECT 2 AS id;
CREATE TABLE far AS SELECT 1;
EXPORT t TO 't.csv' TYPE CSV;""")
    assert [step.statement.place.line for step in plan.steps] == [1, 4, 2, 3, 5]
    assert [at(plan, line).shared for line in (1, 3)] == [True, False]


def test_a_table_merged_with_rows_of_itself_is_shared() -> None:
    plan = plan_of("""CREATE TABLE t AS SELECT 1 AS id;
CREATE TABLE t MODE UPSERT KEY (id) AS SELECT id + 1 AS id FROM t;
EXPORT t TO 't.csv' TYPE CSV;""")
    assert [at(plan, line).shared for line in (1, 2)] == [True, False]
    assert at(plan, 2).reads == ("t",)
