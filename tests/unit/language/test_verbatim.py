"""SQL reaches Spark as the file has it, character by character, and every offset leads back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockgate.language import Variables, parse
from lockgate.language.statements import CheckStep, CreateTableStep, ExportStep

QUERIES = [
    "SELECT a<>b",
    "SELECT 'it''s'",
    "WITH x AS (SELECT 1) SELECT * FROM x",
    "SELECT ';' -- ; end\n, 2",
    'SELECT "--" /* ; /* nested */ ; */ , 1',
    "SELECT `a;b``c` FROM `t ; u`",
    "SELECT  two   spaces\t,\ttabs",
    "SELECT 1\r\n,\r\n'a\r\nb'",
    "SELECT /*+ BROADCAST(t) */ * FROM t",
    "SELECT r'\\', 'a\\'b;', x'1F', 1L, 2.5BD, .5, 1e-3",
    "SELECT a -> b, c::int, d[0], e:f, m['k;']",
    "SELECT CASE WHEN a THEN 'THEN' ELSE 'END IF' END",
    "SELECT 'TO \"x\" TYPE CSV', 'AS'",
    "SELECT {fn now()}",
    "SELECT '😀' AS é, 'x' -- ü",
    "SELECT explain, show FROM call",
]


@pytest.mark.parametrize("sql", QUERIES)
def test_every_statement_keeps_its_query(sql: str) -> None:
    text = f"CREATE TABLE t AS\n\n {sql} \r\n;CHECK c AS {sql}\n;EXPORT {sql}\n TO 'x' TYPE CSV;"
    program = parse(text)
    assert program.diagnostics == ()
    create, check, export = program.statements
    assert isinstance(create, CreateTableStep)
    assert isinstance(check, CheckStep)
    assert isinstance(export, ExportStep)
    assert [create.query.text, check.query.text, export.sql_query] == [sql] * 3


@given(st.text(alphabet=st.characters(exclude_characters="'\\\r\n$", exclude_categories=["Cs"]), max_size=30))
def test_any_string_survives(content: str) -> None:
    [check] = parse(f"CHECK c AS SELECT '{content}' AS x;").statements
    assert isinstance(check, CheckStep)
    assert check.query.text == f"SELECT '{content}' AS x"


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=30))
def test_any_value_survives_in_our_own_quotes(value: str) -> None:
    program = parse('CHECK "a ${x}" AS SELECT 1;', variables=Variables({"x": value}))
    assert [s.name for s in program.statements if isinstance(s, CheckStep)] == [f"a {value}"]


def test_offsets_lead_back_to_the_file() -> None:
    text = "SET t = long_table_name;\nCHECK c AS SELECT\n  '${t}', a FROM ${t}, bad;"
    [check] = parse(text).statements
    assert isinstance(check, CheckStep)
    sql = check.query
    at = {word: str(sql.place_of(sql.text.index(word))) for word in ("SELECT", "a FROM", "bad", "long_table_name,")}
    assert at == {
        "SELECT": "<pipeline>:2:12",
        "a FROM": "<pipeline>:3:11",
        "long_table_name,": "<pipeline>:3:18",
        "bad": "<pipeline>:3:24",
    }
    assert str(sql.place_of(len(sql.text))) == "<pipeline>:3:27"
