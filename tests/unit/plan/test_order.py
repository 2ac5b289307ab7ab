"""The order of steps: dependencies first, the text where there is a choice, versions of a table kept apart."""

from __future__ import annotations

from pathlib import Path

import pytest

from lockgate.errors import PipelineError
from lockgate.language import parse
from lockgate.plan import Plan, Step, check, make_plan


def plan_of(text: str) -> Plan:
    return make_plan(parse(text, file="p.sql"), pipeline="p.sql", project=Path("/project"))


def order_of(text: str) -> list[str]:
    """Steps as `name@line`, so that versions of one table can be told apart."""
    return [f"{step.name}@{step.statement.place.line}" for step in plan_of(text).steps]


def at(plan: Plan, line: int) -> Step:
    return next(step for step in plan.steps if step.statement.place.line == line)


def test_what_is_read_comes_first() -> None:
    text = """EXPORT c TO 'c.csv' TYPE CSV;
CREATE TABLE c AS SELECT * FROM b;
CREATE TABLE b AS SELECT * FROM a;
LOAD a FROM s;
SOURCE s TYPE CSV PARAMS {"path": "x"};"""
    assert order_of(text) == ["s@5", "a@4", "b@3", "c@2", "c.csv@1"]


def test_the_text_decides_where_there_is_a_choice() -> None:
    text = """CREATE TABLE z AS SELECT 1;
CREATE TABLE y AS SELECT 1;
CREATE TABLE x AS SELECT * FROM w;
CREATE TABLE w AS SELECT * FROM z;
CREATE TABLE v AS SELECT 1;"""
    assert order_of(text) == ["z@1", "y@2", "w@4", "x@3", "v@5"]


def test_versions_of_a_table() -> None:
    text = """CREATE TABLE early AS SELECT * FROM t;
CREATE TABLE t AS SELECT 1 AS x;
CREATE TABLE between AS SELECT * FROM T;
CREATE OR REPLACE TABLE t AS SELECT x + 1 AS x FROM t;
CREATE TABLE late AS SELECT * FROM t;"""
    plan = plan_of(text)
    assert order_of(text) == ["t@2", "between@3", "t@4", "early@1", "late@5"]
    assert at(plan, 4).reads == ("t",)
    assert at(plan, 3).reads == ("t",)
    assert [at(plan, 2).shared, at(plan, 4).shared] == [True, True]


def test_a_reader_of_an_old_version_runs_before_the_next_one() -> None:
    text = """CREATE TABLE t AS SELECT 1 AS x;
CREATE TABLE reader AS SELECT * FROM t JOIN far;
CREATE TABLE t MODE APPEND AS SELECT 2 AS x;
CREATE TABLE far AS SELECT 1;
EXPORT t TO 't.csv' TYPE CSV;"""
    assert order_of(text) == ["t@1", "far@4", "reader@2", "t@3", "t.csv@5"]


# r wants the first t, and d, which is made of the second t, which must wait for r.
THROUGH_A_VERSION = """CREATE TABLE t AS SELECT 1;
CREATE TABLE r AS SELECT * FROM t JOIN d;
CREATE OR REPLACE TABLE t AS SELECT 2;
CREATE TABLE d AS SELECT * FROM t;"""


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("CREATE TABLE a AS FROM b; CREATE TABLE b AS FROM a;", "a -> b -> a"),
        ("CREATE TABLE a AS FROM a;", "a -> a"),
        (
            "CREATE TABLE x AS FROM c; CREATE TABLE a AS FROM b; CREATE TABLE b AS FROM c; CREATE TABLE c AS FROM a;",
            "a -> b -> c -> a",
        ),
        (THROUGH_A_VERSION, "r -> d -> t -> r"),
    ],
)
def test_a_cycle_is_shown(text: str, shown: str) -> None:
    with pytest.raises(PipelineError) as raised:
        plan_of(text)
    [problem] = raised.value.diagnostics
    assert f": {shown}\n" in problem.render()


def test_two_cycles_are_two_errors() -> None:
    text = (
        "CREATE TABLE a AS FROM b; CREATE TABLE b AS FROM a; CREATE TABLE c AS FROM d JOIN a; CREATE TABLE d AS FROM c;"
    )
    found = check(parse(text), pipeline="p", project=Path())
    assert [d.message.partition(": ")[2] for d in found] == ["a -> b -> a", "c -> d -> c"]


@pytest.mark.parametrize(
    ("readers", "shared"),
    [
        ("", False),
        ("CHECK c AS FROM t;", False),
        ("CHECK c AS FROM t; EXPORT t TO 'x' TYPE CSV;", True),
        ("CHECK c AS SELECT * FROM t a JOIN t b;", True),
        ("CHECK c AS WITH t AS (SELECT 1) FROM t; CHECK d AS FROM t;", False),
        ("CHECK c AS FROM t; CREATE TABLE t MODE APPEND AS SELECT 2 AS x;", True),
        ("CHECK c AS FROM t; CREATE OR REPLACE TABLE t AS SELECT 2 AS x;", False),
    ],
)
def test_a_table_with_several_readers_is_shared(readers: str, shared: bool) -> None:
    plan = plan_of(f"CREATE TABLE t AS SELECT 1 AS x;\n{readers}")
    assert at(plan, 1).shared is shared


def test_a_long_chain() -> None:
    text = "".join(f"CREATE TABLE t{i} AS FROM t{i + 1};\n" for i in range(1500)) + "CREATE TABLE t1500 AS SELECT 1;"
    assert plan_of(text).steps[0].name == "t1500"


def test_sql_that_cannot_be_parsed_is_left_to_spark() -> None:
    text = "CREATE TABLE b AS SELECT x y z FROM a;\nCREATE TABLE a AS SELECT 1;"
    assert order_of(text) == ["a@2", "b@1"]
    [problem] = check(parse(text), pipeline="p", project=Path())
    assert problem.code == "sql-syntax"
    assert "Spark" in (problem.hint or "")
