"""Which giver of a variable wins, where values go, and what they can never do."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any

import pytest

from lockgate.language import Program, Variables, parse
from lockgate.language.statements import CheckStep, ExportStep, SourceStep


def sql_of(program: Program) -> str:
    assert [d.render() for d in program.diagnostics] == []
    [check] = [s for s in program.statements if isinstance(s, CheckStep)]
    return check.query.text


def export_of(program: Program) -> ExportStep:
    [export] = [s for s in program.statements if isinstance(s, ExportStep)]
    return export


@pytest.mark.parametrize(
    ("givers", "expected"),
    [
        ({"command_line": "c", "profile": "p", "environment": "e"}, "c"),
        ({"profile": "p", "environment": "e"}, "p"),
        ({"environment": "e"}, "set"),
        ({}, "set"),
    ],
)
def test_precedence(givers: dict[str, str], expected: str) -> None:
    variables = Variables(**{giver: {"x": value} for giver, value in givers.items()})
    assert (
        sql_of(parse("SET x = 'set'; CHECK c AS SELECT '${x|default}';", variables=variables)) == f"SELECT '{expected}'"
    )


def test_environment_before_default() -> None:
    variables = Variables(environment={"x": "e"})
    assert sql_of(parse("CHECK c AS SELECT ${x|d}, ${y|d}, '${z|}';", variables=variables)) == "SELECT e, d, ''"


def test_set_holds_from_where_it_stands() -> None:
    text = "CHECK c AS SELECT '${x|before}'; SET x = 'after'; CHECK d AS SELECT '${x|before}';"
    assert [s.query.text for s in parse(text).statements if isinstance(s, CheckStep)] == [
        "SELECT 'before'",
        "SELECT 'after'",
    ]


def test_a_variable_that_is_set_further_down_is_pointed_at() -> None:
    [problem] = parse("LOAD a FROM ${s};\nSET s = b;").diagnostics
    assert problem.code == "undefined-variable"
    assert "line 2" in (problem.hint or "")


def test_the_nearest_variable_is_named() -> None:
    [problem] = parse("LOAD a FROM ${sorce};", variables=Variables({"source": "x"})).diagnostics
    assert problem.hint == "did you mean source?"


def test_values_are_not_expanded_again() -> None:
    variables = Variables({"x": "${y}", "y": "no"})
    assert sql_of(parse("CHECK c AS SELECT '${x}';", variables=variables)) == "SELECT '${y}'"


@pytest.mark.parametrize(
    ("value", "text"),
    [(True, "true"), (5, "5"), (1.5, "1.5"), (Decimal("1.50"), "1.50"), (date(2026, 1, 2), "2026-01-02")],
)
def test_typed_values(value: Any, text: str) -> None:
    program = parse("CHECK c AS SELECT ${x}, :x;", variables=Variables(profile={"x": value}))
    assert sql_of(program) == f"SELECT {text}, :x"
    assert program.parameters == {"x": value}
    assert type(program.parameters["x"]) is type(value)


def test_comments_are_left_alone() -> None:
    text = "-- ${a}\nCHECK c AS SELECT 1 /* ${b} */ -- ${c}\n;"
    assert sql_of(parse(text)) == "SELECT 1 /* ${b} */ -- ${c}"


def test_a_value_cannot_leave_quotes_of_ours() -> None:
    evil = 'x" TYPE PARQUET MODE REPLACE; EXPORT b TO "y'
    text = 'EXPORT a TO "out/${x}" TYPE CSV OPTIONS {"null_value": "${x}"}; CHECK "${x}" AS SELECT 1;'
    program = parse(text, variables=Variables({"x": evil}))
    assert program.diagnostics == ()
    export = export_of(program)
    assert (export.destination_uri, export.connector_type, export.mode) == (f"out/{evil}", "CSV", "APPEND")
    assert export.options == {"null_value": evil}
    assert [s.name for s in program.statements if isinstance(s, CheckStep)] == [evil]


def test_a_json_string_with_private_characters_is_no_marker() -> None:
    text = 'EXPORT a TO "x" TYPE CSV OPTIONS {"a": "\\ue0000:0\\ue001${x}", "b": "\ue0001:0\ue001"};'
    program = parse(text, variables=Variables({"x": "V"}))
    assert export_of(program).options == {"a": "\ue0000:0\ue001V", "b": "\ue0001:0\ue001"}


def test_a_value_in_sql_quotes_cannot_move_the_destination() -> None:
    text = "EXPORT SELECT '${x}' AS a TO \"mine.csv\" TYPE CSV;"
    program = parse(text, variables=Variables({"x": '\' TO "theirs.csv" TYPE CSV --'}))
    for statement in program.statements:
        assert isinstance(statement, ExportStep)
        assert statement.destination_uri == "mine.csv"


def test_a_secret_is_not_shown_in_an_error() -> None:
    secret = "hunter2"
    text = (
        "LOAD a FROM s ${pw}; IF ${pw} THEN LOAD b FROM s; END IF; CHECK c AS ${pw}; SOURCE x TYPE CSV PARAMS {${pw}};"
    )
    program = parse(text, variables=Variables(environment={"pw": secret}))
    assert len(program.diagnostics) == 4
    assert all(secret not in d.render() for d in program.diagnostics)


GIVERS = ["command_line", "profile", "environment"]


@pytest.mark.parametrize("giver", GIVERS)
@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("${x}/a.csv", "/etc"),
        ("${x}/a.csv", ""),
        ("${x}a.csv", "C:\\"),
        ("${x}a.csv", "s3://bucket/"),
        ("s${x}bucket/a.csv", "3://"),
        ("out/${x}/a.csv", ".."),
        ("out/${x}", "b/../../c"),
        ("out/${x}", "..\\c"),
        ("out/.${x}/a.csv", "."),
        ("out/.${x}./a.csv", ""),
        ("out/${x}../a.csv", "b/"),
        ("out/${x}../a.csv", ""),
        (" ${x}", "/etc/passwd"),
    ],
)
def test_a_value_from_outside_cannot_take_a_path_away(giver: str, path: str, value: str) -> None:
    variables = Variables(**{giver: {"x": value}})
    quoted = path.replace("\\", "\\\\")
    text = f'EXPORT a TO "{quoted}" TYPE CSV; SOURCE s TYPE CSV PARAMS {{"path": ["ok", "{quoted}"]}};'
    program = parse(text, variables=variables)
    assert program.diagnostics == ()
    for statement in program.statements:
        assert isinstance(statement, ExportStep | SourceStep)
        assert "${x}" in (statement.path_escape or "")


@pytest.mark.parametrize(
    "text",
    [
        'EXPORT a TO "/abs/../${x}.csv" TYPE CSV;',
        'EXPORT a TO "../${x}/a.csv" TYPE CSV;',
        'EXPORT a TO "${y|/abs}/a.csv" TYPE CSV;',
        'SET r = "/abs/.."; EXPORT a TO "${r}/${x}" TYPE CSV;',
        'EXPORT a TO "s3://b/${x}" TYPE CSV;',
        'EXPORT a TO "out/${x}..b/...${x}" TYPE CSV;',
    ],
)
def test_the_author_may_write_any_path(text: str) -> None:
    assert export_of(parse(text, variables=Variables({"x": "v"}))).path_escape is None


def test_set_does_not_launder_a_value() -> None:
    text = 'SET a = "${x}"; SET b = ${a}; EXPORT t TO "out/${b}/y" TYPE CSV;'
    escape = export_of(parse(text, variables=Variables({"x": ".."}))).path_escape
    assert escape is not None
    assert "${x}, given on the command line" in escape


def test_a_whole_json_value_from_outside_is_watched_too() -> None:
    text = 'SOURCE s TYPE CSV PARAMS {"path": ${x}};'
    [source] = parse(text, variables=Variables({"x": '"\\u002fetc"'})).statements
    assert isinstance(source, SourceStep)
    assert source.params == {"path": "/etc"}
    assert source.path_escape is not None


def test_a_quoted_destination_from_outside_is_watched_too() -> None:
    program = parse("EXPORT t TO ${x} TYPE CSV;", variables=Variables({"x": "'/etc/x'"}))
    assert export_of(program).path_escape is not None
