"""The tables a query reads."""

from __future__ import annotations

import pytest

from lockgate.plan.table_names import tables_in


@pytest.mark.parametrize(
    ("sql", "names"),
    [
        ("SELECT * FROM a JOIN b USING (x)", "a b"),
        ("FROM a", "a"),
        ("TABLE a", "a"),
        ("SELECT * FROM a, b WHERE EXISTS (SELECT 1 FROM c WHERE c.x = a.x)", "a b c"),
        ("SELECT (SELECT max(x) FROM q) FROM z", "q z"),
        ("WITH daily AS (SELECT * FROM daily) SELECT * FROM daily", "daily"),
        ("WITH a AS (SELECT 1), b AS (SELECT * FROM a JOIN c) SELECT * FROM b JOIN a", "c"),
        ("WITH b AS (SELECT * FROM a), a AS (SELECT 1) SELECT * FROM A, B", "a"),
        ("WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r) SELECT * FROM r", ""),
        ("SELECT * FROM (WITH x AS (FROM y) SELECT * FROM x) JOIN x", "y x"),
        ("WITH x AS (SELECT 1) SELECT * FROM (WITH x AS (SELECT * FROM x JOIN y) FROM x)", "y"),
        ("SELECT * FROM a UNION ALL SELECT * FROM a", "a a"),
        ("SELECT * FROM range(10) JOIN explode(array(1)) e", ""),
        ("SELECT * FROM db.t JOIN parquet.`x/y` JOIN `a b`", "a b"),
        ("SELECT /*+ BROADCAST(d) */ * FROM daily d LATERAL VIEW explode(x) e AS c", "daily"),
        ("SELECT * FROM VALUES (1) AS v(x)", ""),
        ("FROM a |> WHERE x > 1 |> JOIN b USING (x) |> AGGREGATE sum(y) GROUP BY x", "a b"),
        ("SELECT * FROM my_function(TABLE(t))", "t"),
        ("SELECT 'FROM x' -- FROM y\nFROM z /* JOIN w */", "z"),
    ],
)
def test_tables(sql: str, names: str) -> None:
    assert " ".join(table.name for table in tables_in(sql)) == names


def test_places() -> None:
    sql = "SELECT *\r\nFROM `odd name` JOIN b"
    assert [sql[t.offset : t.offset + t.length] for t in tables_in(sql)] == ["`odd name`", "b"]


def test_words_stand_in_for_a_parse() -> None:
    sql = "SELECT x y z FROM Known, unknown, db.known, `known`"
    assert [t.name for t in tables_in(sql, {"known"})] == ["Known", "known"]
