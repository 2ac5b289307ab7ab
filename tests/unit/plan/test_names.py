"""Names that nobody defines, and what is said about them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from lockgate.language import Diagnostic, Variables, parse
from lockgate.plan import check


def problems(text: str, **variables: str) -> list[Diagnostic]:
    return check(parse(text, variables=Variables(variables)), pipeline="p", project=Path("/project"))


def test_an_unknown_table_is_shown_where_it_stands() -> None:
    [problem] = problems("CREATE TABLE daily AS SELECT 1;\nCHECK c AS SELECT *\n  FROM dialy;")
    assert problem.render().splitlines() == [
        "<pipeline>:3:8: error[unknown-table]: there is no table dialy",
        "    FROM dialy;",
        "         ^^^^^",
        "  hint: did you mean daily?",
    ]


def test_a_table_that_a_variable_named() -> None:
    [problem] = problems("CREATE TABLE daily AS SELECT 1;\nCHECK c AS SELECT * FROM ${t};", t="dialy")
    assert (problem.place.column, problem.place.length, problem.hint) == (26, 4, "did you mean daily?")


def test_a_source_is_not_a_table() -> None:
    [problem] = problems('SOURCE s TYPE CSV PARAMS {"path": "x"}; CHECK c AS FROM s;')
    assert "LOAD s FROM s" in (problem.hint or "")


def test_names_are_folded_as_spark_does() -> None:
    assert problems('SOURCE S TYPE CSV PARAMS {"path": "x"}; LOAD Daily FROM s; CHECK c AS FROM DAILY;') == []


def test_a_statement_with_an_error_still_defines_its_name() -> None:
    assert [d.code for d in problems("CREATE TABLE a AS SELECT (1; CHECK c AS FROM a;")] == ["unbalanced"]


def test_a_missing_include_does_not_hide_other_errors() -> None:
    found = problems("INCLUDE 'gone.sql'; CHECK c AS FROM nix;")
    assert [d.code for d in found] == ["include", "unknown-table"]
    assert "could not be read" in (found[1].hint or "")


def test_nothing_is_imported_that_makes_check_slow() -> None:
    code = (
        "import sys; import lockgate.language.statements, lockgate.plan.steps; assert 'sqlglot' not in sys.modules;"
        "from pathlib import Path; from lockgate.language import parse; from lockgate.plan import check;"
        "check(parse('CREATE TABLE a AS SELECT 1; EXPORT a TO \"x\" TYPE CSV;'), pipeline='p', project=Path());"
        "heavy = {'pyarrow', 'pyspark', 'rich', 'duckdb'} & set(sys.modules);"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
