"""Keyed modes on the tables of a pipeline, by LOAD and by CREATE TABLE."""

from __future__ import annotations

import json
import math
import random
import subprocess
import sys
from collections.abc import Iterable
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lockgate
from lockgate.modes import KEYED_MODES
from support.arrow_run import snapshot
from support.leftovers import leftovers
from support.spark_cluster import connect_server

OLD = "CREATE TABLE t AS SELECT * FROM VALUES (1, 'a'), (2, 'b'), (2, 'b again'), (3, 'c'), (NULL, 'none') AS v(id, x);"
NEW = "SELECT * FROM VALUES (2, 'B'), (4, 'D') AS v(id, x)"
OUT = 'EXPORT t TO "out/t.parquet" TYPE PARQUET MODE REPLACE;'


def rows(path: Path) -> list[tuple[Any, ...]]:
    return in_order(tuple(row.values()) for row in pq.read_table(path).to_pylist())


def in_order(values: Iterable[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return sorted(values, key=repr)


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("UPSERT", [(1, "a"), (2, "B"), (2, "B"), (3, "c"), (4, "D"), (None, "none")]),
        ("INSERT", [(1, "a"), (2, "b"), (2, "b again"), (3, "c"), (4, "D"), (None, "none")]),
        ("UPDATE", [(1, "a"), (2, "B"), (2, "B"), (3, "c"), (None, "none")]),
        ("FULL_MERGE", [(2, "B"), (2, "B"), (4, "D")]),
        ("DEDUPLICATE", [(1, "a"), (2, "B"), (2, "B"), (3, "c"), (4, "D"), (None, "none")]),
    ],
)
def test_every_mode(run_sql, project, mode, expected):
    run_sql(f"{OLD}\nCREATE TABLE t MODE {mode} KEY (id) AS {NEW};\n{OUT}")
    assert rows(project / "out/t.parquet") == in_order(expected)
    assert leftovers(project) == []


@pytest.mark.parametrize("mode", KEYED_MODES)
def test_without_a_table_yet_all_but_update_make_it(run_sql, project, mode):
    run_sql(f"CREATE TABLE t MODE {mode} KEY (id) AS {NEW};\n{OUT}")
    assert rows(project / "out/t.parquet") == ([] if mode == "UPDATE" else [(2, "B"), (4, "D")])
    assert pq.read_schema(project / "out/t.parquet").names == ["id", "x"]


@pytest.mark.parametrize(
    ("mode", "expected"),
    [("FULL_MERGE", []), ("UPSERT", [(1, "a")]), ("UPDATE", [(1, "a")]), ("INSERT", [(1, "a")])],
)
def test_an_empty_source(run_sql, project, mode, expected):
    run_sql(f"CREATE TABLE t AS SELECT 1 AS id, 'a' AS x; CREATE TABLE t MODE {mode} KEY (id) AS {NEW} LIMIT 0;\n{OUT}")
    assert rows(project / "out/t.parquet") == expected
    assert pq.read_schema(project / "out/t.parquet").names == ["id", "x"]


def test_a_table_is_loaded_twice_and_what_reads_it_in_between_sees_that_state(run_sql, project):
    (project / "monday.csv").write_text("id,name\n1,Ada\n2,Bob\n")
    (project / "tuesday.csv").write_text("name,ID\nBert,2\nCy,3\n")
    result = run_sql("""
        SOURCE monday TYPE CSV PARAMS {"path": "monday.csv"};
        SOURCE tuesday TYPE CSV PARAMS {"path": "tuesday.csv"};
        LOAD people FROM monday MODE UPSERT KEY (id);
        EXPORT SELECT * FROM people ORDER BY id TO "out/first.csv" TYPE CSV MODE REPLACE;
        CREATE TABLE names AS SELECT name FROM people;
        LOAD people FROM tuesday MODE UPSERT KEY (id);
        EXPORT SELECT * FROM people ORDER BY id TO "out/second.csv" TYPE CSV MODE REPLACE;
        CHECK "the names are those of monday" AS SELECT * FROM names WHERE name NOT IN ('Ada', 'Bob');
        EXPORT SELECT * FROM names ORDER BY name TO "out/names.csv" TYPE CSV MODE REPLACE;
    """)
    assert (project / "out/first.csv").read_text() == "id,name\n1,Ada\n2,Bob\n"
    assert (project / "out/second.csv").read_text() == "id,name\n1,Ada\n2,Bert\n3,Cy\n"
    assert (project / "out/names.csv").read_text() == "name\nAda\nBob\n"
    assert result.ok


def test_the_new_rows_may_come_from_the_table_itself(run_sql, project):
    run_sql(f"""
        CREATE TABLE t AS SELECT id, id * 10 AS x FROM range(4);
        CREATE TABLE t MODE UPSERT KEY (id) AS SELECT id + 2 AS id, x + 1 AS x FROM t;
        CREATE TABLE t MODE FULL_MERGE KEY (id) AS SELECT id, x + 500 AS x FROM t WHERE id > 1;
        {OUT}
    """)
    assert rows(project / "out/t.parquet") == [(2, 501), (3, 511), (4, 521), (5, 531)]


def test_nan_equals_nan_and_minus_zero_equals_zero_in_keys(run_sql, project):
    run_sql(f"""
        CREATE TABLE t AS SELECT * FROM VALUES (double('NaN'), 'n'), (-0.0D, 'z'), (1.5D, 'k') AS v(id, x);
        CREATE TABLE t MODE UPSERT KEY (id) AS
          SELECT * FROM VALUES (double('NaN'), 'N'), (0.0D, 'Z'), (2.5D, 'new') AS v(id, x);
        {OUT}
    """)
    assert [x for _, x in rows(project / "out/t.parquet")] == ["Z", "k", "new", "N"]
    with pytest.raises(lockgate.DuplicateKeyError, match=r"2 of 4 source rows repeat a key: id=0\.0; id=NaN"):
        run_sql(f"""
            CREATE TABLE t MODE INSERT KEY (id) AS
              SELECT * FROM VALUES (double('NaN')), (0.0D), (double('NaN')), (-0.0D) AS v(id);
            {OUT}
        """)


def test_a_key_of_several_columns(run_sql, project):
    run_sql(f"""
        CREATE TABLE t AS SELECT * FROM VALUES
          (1, DATE '2026-01-01', 'a'), (1, DATE '2026-01-02', 'b'), (2, NULL, 'c'), (NULL, DATE '2026-01-01', 'd')
          AS v(id, day, x);
        CREATE TABLE t MODE UPSERT KEY (day, id) AS SELECT * FROM VALUES
          ('B', 1, DATE '2026-01-02'), ('E', 2, DATE '2026-01-01') AS v(x, id, day);
        {OUT}
    """)
    first, second = date(2026, 1, 1), date(2026, 1, 2)
    assert rows(project / "out/t.parquet") == in_order(
        [(1, first, "a"), (1, second, "B"), (2, None, "c"), (None, first, "d"), (2, first, "E")]
    )


def test_names_are_matched_without_case_and_keep_the_spelling_of_the_table(run_sql, project):
    run_sql("""
        CREATE TABLE t AS SELECT 1 AS `Id.of``it`, 'a' AS `x y`, 'b' AS t0;
        CREATE TABLE t MODE UPSERT KEY (`iD.OF``it`) AS
          SELECT 'B' AS T0, 'A' AS `X Y`, id AS `ID.OF``IT` FROM VALUES (1), (2) AS v(id);
        EXPORT t TO "out/t.json" TYPE JSON MODE REPLACE;
    """)
    lines = [json.loads(line) for line in (project / "out/t.json").read_text().splitlines()]
    assert sorted(lines, key=str) == [
        {"Id.of`it": 1, "x y": "A", "t0": "B"},
        {"Id.of`it": 2, "x y": "A", "t0": "B"},
    ]


def test_values_are_cast_to_the_types_of_the_table_when_nothing_is_lost(run_sql, project):
    run_sql(f"""
        CREATE TABLE t AS
          SELECT 1 AS id, 0.5D AS x, 1.50BD AS price, array(1) AS list, named_struct('a', 1, 'b', 2) AS s;
        CREATE TABLE t MODE UPSERT KEY (id) AS
          SELECT 2L AS id, 7 AS x, 2.5D AS price, array(3L) AS list, named_struct('b', 4L, 'a', 3.0D) AS s;
        {OUT}
    """)
    table = pq.read_table(project / "out/t.parquet")
    assert [str(f.type) for f in table.schema][:3] == ["int32", "double", "decimal128(3, 2)"]
    new = next(row for row in table.to_pylist() if row["id"] == 2)
    assert new == {"id": 2, "x": 7.0, "price": Decimal("2.50"), "list": [3], "s": {"a": 3, "b": 4}}


SIX_TWICE = "SELECT id % 7 AS id, 'x' AS x FROM range(13)"

REFUSED = [
    pytest.param(
        "UPSERT KEY (id)", "SELECT * FROM VALUES (1, 'a'), (NULL, 'b'), (NULL, 'c') AS v(id, x)",
        lockgate.NullKeyError, "2 of 3 source rows have NULL in a key column: id=NULL", id="NULL in the key",
    ),
    pytest.param(
        "DEDUPLICATE KEY (x, id)", "SELECT * FROM VALUES (1, 'a'), (NULL, 'b') AS v(id, x)",
        lockgate.NullKeyError, "1 of 2 source rows has NULL in a key column: x='b', id=NULL", id="NULL in part of it",
    ),
    pytest.param(
        "UPSERT KEY (id)", SIX_TWICE,
        lockgate.DuplicateKeyError, "6 of 13 source rows repeat a key: id=0; id=1; id=2; id=3; id=4\n", id="keys twice",
    ),
    pytest.param(
        "UPDATE KEY (x)", "SELECT * FROM VALUES (1, 'a'), (2, 'a') AS v(id, x)",
        lockgate.DuplicateKeyError, "1 of 2 source rows repeats a key: x='a'", id="a text twice",
    ),
    pytest.param(
        "UPSERT KEY (idd)", NEW,
        lockgate.SchemaMismatchError, 'the source has no key column "idd"; its columns are "id", "x"', id="no such key",
    ),
    pytest.param(
        "UPSERT KEY (id)", "SELECT 1 AS id, 'a' AS y",
        lockgate.SchemaMismatchError, 'the source has no column "x" and the table has no column "y"', id="columns",
    ),
    pytest.param(
        "UPSERT KEY (y)", "SELECT 1 AS id, 'a' AS x, 2 AS y",
        lockgate.SchemaMismatchError, 'the table has no key column "y"', id="a key of the source alone",
    ),
    pytest.param(
        "UPSERT KEY (id)", "SELECT 1 AS id, 'a' AS x, 'b' AS X",
        lockgate.SchemaMismatchError, 'the source has several columns named "x"', id="one name twice",
    ),
    pytest.param(
        "UPSERT KEY (id)", "SELECT 1 AS id, true AS x",
        lockgate.SchemaMismatchError, 'column "x": the source has boolean, the table has string', id="unrelated types",
    ),
    pytest.param(
        "UPSERT KEY (id)", "SELECT array(1) AS id, 'a' AS x",
        lockgate.SchemaMismatchError, 'column "id" of the source cannot be a key: its type is array<int>', id="a list",
    ),
    pytest.param(
        "INSERT KEY (id)", "SELECT id + 2147483647 AS id, 'a' AS x FROM range(3)",
        lockgate.SchemaMismatchError,
        'column "id": bigint does not fit into int without loss: 2147483648, in 2 of 3 source rows', id="too large",
    ),
    pytest.param(
        "DEDUPLICATE KEY (id) ORDER BY when DESC", NEW,
        lockgate.SchemaMismatchError, 'the source has no ORDER BY column "when"', id="no such column to order by",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("clauses", "query", "kind", "said"), REFUSED)
def test_what_cannot_be_merged_stops_the_run_before_anything_is_published(run_sql, project, clauses, query, kind, said):
    run_sql(f'{OLD}\nEXPORT t TO "out/other.csv" TYPE CSV MODE REPLACE;\n{OUT}')
    before = snapshot(project / "out")
    text = f"{OLD}\nCREATE TABLE t MODE {clauses} AS\n  {query};\n"
    with pytest.raises(kind) as caught:
        run_sql(f'EXPORT SELECT 1 AS id TO "out/other.csv" TYPE CSV MODE REPLACE;\n{text}\n{OUT}')
    shown = caught.value.render()
    assert said in shown
    assert "pipeline.sql:3:21: error[" in shown
    assert f"CREATE TABLE t MODE {clauses} AS\n" + " " * 22 + "^" in shown
    assert "now: nothing was published" in shown
    assert caught.value.exit_code == 1
    assert caught.value.result.status == "failed"
    assert {e.status for e in caught.value.result.exports} == {"skipped"}
    assert snapshot(project / "out") == before
    assert leftovers(project) == []


def test_a_first_load_is_checked_too(run_sql, project):
    (project / "s.csv").write_text("id\n1\n1\n\n")
    with pytest.raises(lockgate.DuplicateKeyError, match=r"pipeline\.sql:2:20: error\[duplicate-key\]: MODE INSERT of"):
        run_sql(f'SOURCE s TYPE CSV PARAMS {{"path": "s.csv"}};\nLOAD t FROM s MODE INSERT KEY (id);\n{OUT}')


def test_a_mistake_in_sql_shows_before_the_rows_are_computed(run_sql):
    with pytest.raises(lockgate.QueryError, match="UNRESOLVED_COLUMN"):
        run_sql(f"CREATE TABLE t MODE UPSERT KEY (id) AS {SIX_TWICE};\nEXPORT SELECT no FROM t TO 'x.csv' TYPE CSV;")


def test_an_error_of_spark_while_the_rows_are_checked_has_its_place(run_sql, project):
    with pytest.raises(lockgate.QueryError) as caught:
        run_sql(
            f"CREATE TABLE t MODE UPSERT KEY (id) AS\n  SELECT CAST(w AS INT) AS id FROM VALUES ('two') AS v(w);\n{OUT}"
        )
    assert "pipeline.sql:2:10: error[spark]: Spark refused create t: [CAST_INVALID_INPUT]" in caught.value.render()
    assert not (project / "out").exists()


def test_deduplicate_keeps_the_first_row_by_order_by_and_of_equals_the_last(run_sql, project):
    (project / "s.csv").write_text("id,at,x\n1,5,a\n2,1,b\n1,9,c\n2,1,d\n3,,e\n3,4,f\n1,9,g\n1,7,h\n")
    run_sql("""
        SOURCE s TYPE CSV PARAMS {"path": "s.csv"};
        LOAD newest FROM s MODE DEDUPLICATE KEY (id) ORDER BY AT DESC;
        LOAD oldest FROM s MODE DEDUPLICATE KEY (id) ORDER BY at, x DESC;
        LOAD unknown FROM s MODE DEDUPLICATE KEY (id) ORDER BY `at` DESC NULLS FIRST;
        LOAD last FROM s MODE DEDUPLICATE KEY (id);
        CREATE TABLE sorted MODE DEDUPLICATE KEY (id) AS SELECT * FROM last UNION ALL SELECT 3, 0, 'z' ORDER BY x DESC;
        CREATE TABLE t AS
          SELECT 'newest' AS which, * FROM newest UNION ALL SELECT 'oldest', * FROM oldest
          UNION ALL SELECT 'unknown', * FROM unknown UNION ALL SELECT 'last', * FROM last
          UNION ALL SELECT 'sorted', * FROM sorted;
        EXPORT SELECT which, concat_ws('', sort_array(collect_list(x))) AS x FROM t GROUP BY which ORDER BY which
          TO "out/t.csv" TYPE CSV MODE REPLACE;
    """)
    assert (project / "out/t.csv").read_text() == "which,x\nlast,dfh\nnewest,dfg\noldest,ade\nsorted,dfh\nunknown,deg\n"


def test_new_rows_are_computed_once(run_sql, project):
    (project / "functions").mkdir()
    log = project / "calls.log"
    (project / "functions/spy.py").write_text(
        f"import lockgate\n\n@lockgate.function(returns='int')\ndef seen(x):\n"
        f"    with open({str(log)!r}, 'a') as f:\n        f.write(f'{{x}}\\n')\n    return x\n"
    )
    run_sql(f"""
        CREATE TABLE t AS SELECT CAST(id AS INT) AS id, 'old' AS x FROM range(3);
        CREATE TABLE t MODE UPSERT KEY (id) AS SELECT seen(CAST(id AS INT)) AS id, 'new' AS x FROM range(2, 5);
        {OUT}
        EXPORT SELECT count(*) AS n FROM t TO "out/n.csv" TYPE CSV MODE REPLACE;
    """)
    assert sorted(log.read_text().split()) == ["2", "3", "4"]
    assert rows(project / "out/t.parquet") == [(0, "old"), (1, "old"), (2, "new"), (3, "new"), (4, "new")]


def test_nothing_stays_in_the_session(run_sql, spark):
    before = spark.catalog.listTables()
    run_sql(f"{OLD} CREATE TABLE t MODE UPSERT KEY (id) AS {NEW};\n{OUT}")
    assert spark.catalog.listTables() == before
    assert not spark.sql(NEW).storageLevel.useMemory


CASES = 4  # a mode, so twenty in all


def case(seed: int, mode: str) -> tuple[pa.Table, pa.Table, list[str]]:
    """A target with NULL and repeated keys, and a source of other types, in another order of columns."""
    pick = random.Random(seed)
    keys = pick.choice([["k"], ["k", "name"], ["f"], ["name", "f"]])
    floats = [0.0, -0.0, 1.5, math.nan, -2.0, 7.25]

    def row(narrow: bool) -> dict[str, Any]:
        return {
            "k": pick.randrange(12),
            "name": pick.choice(["a", "A", "ä", ""]),
            "f": pick.choice(floats),
            "v": pick.choice([None, pick.randrange(100 if narrow else 10**9)]),
        }

    old = [{name: value if pick.random() > 0.1 else None for name, value in row(False).items()} for _ in range(30)]
    new = [row(True) for _ in range(pick.choice([0, 1, 25]))]
    if mode != "DEDUPLICATE":
        identity = [tuple("NaN" if v != v else v + 0.0 if v == 0.0 else v for v in map(r.get, keys)) for r in new]
        new = [r for n, r in enumerate(new) if identity[n] not in identity[:n]]
    target = pa.schema([("k", pa.int64()), ("name", pa.string()), ("f", pa.float64()), ("v", pa.int64())])
    source = pa.schema([("v", pa.int8()), ("f", pa.float32()), ("k", pa.float64()), ("name", pa.string())])
    return pa.Table.from_pylist(old, target), pa.Table.from_pylist(new, source), keys


@pytest.mark.parametrize("mode", KEYED_MODES)
def test_the_same_as_a_merge_by_arrow(run_sql, project, mode):
    statements = []
    for seed in range(CASES):
        old, new, keys = case(1000 * KEYED_MODES.index(mode) + seed, mode)
        order_by = ["v DESC NULLS FIRST", "f"] if mode == "DEDUPLICATE" and seed % 2 else None
        (project / f"arrow{seed}").mkdir()
        pq.write_table(old, project / f"old{seed}.parquet")
        pq.write_table(old, project / f"arrow{seed}/old.parquet")
        pq.write_table(new, project / f"new{seed}.parquet")
        lockgate.merge(
            new, project / f"arrow{seed}", strategy=mode, key_columns=keys, engine="arrow", order_by=order_by
        )
        clauses = f"KEY ({', '.join(keys)})" + (f" ORDER BY {', '.join(order_by)}" if order_by else "")
        statements.append(f"""
            SOURCE old{seed} TYPE PARQUET PARAMS {{"path": "old{seed}.parquet"}};
            SOURCE new{seed} TYPE PARQUET PARAMS {{"path": "new{seed}.parquet"}};
            LOAD t{seed} FROM old{seed};
            LOAD t{seed} FROM new{seed} MODE {mode} {clauses};
            EXPORT t{seed} TO "out/t{seed}.parquet" TYPE PARQUET MODE REPLACE;
        """)
    run_sql("\n".join(statements))
    changed = 0
    for seed in range(CASES):
        spark, arrow, old = (  # as text, in which NaN equals NaN
            [repr(row) for row in rows(project / name)]
            for name in (f"out/t{seed}.parquet", f"arrow{seed}", f"old{seed}.parquet")
        )
        assert spark == arrow, seed
        changed += spark != old
    assert changed


@pytest.mark.slow
def test_over_spark_connect(tmp_path):
    """There a name is looked up when a query runs: the new rows must be of the table as it was before them."""
    (tmp_path / "pipeline.sql").write_text(
        "CREATE TABLE t AS SELECT CAST(id AS INT) AS id, 'old' AS x, CAST(id AS INT) AS n FROM range(3);\n"
        "CREATE TABLE t MODE UPSERT KEY (id) AS SELECT n + 2L AS id, uuid() AS x, 0 AS n FROM t;\n"
        "CREATE TABLE t MODE DEDUPLICATE KEY (id) ORDER BY x AS SELECT * FROM t WHERE id > 3;\n"
        'EXPORT t TO "out/t.parquet" TYPE PARQUET MODE REPLACE;\n'
        'EXPORT t TO "out/again.parquet" TYPE PARQUET MODE REPLACE;\n'
    )
    bad = f"CREATE TABLE t MODE UPSERT KEY (id) AS {SIX_TWICE};\n{OUT}"
    (tmp_path / "bad.sql").write_text(bad)
    (tmp_path / "server").mkdir()
    with connect_server(tmp_path / "server") as address:
        good, refused = (
            subprocess.run(
                [sys.executable, "-m", "lockgate", "run", name, "--remote", address],
                cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False,
            )
            for name in ("pipeline.sql", "bad.sql")
        )  # fmt: skip
    assert good.returncode == 0, good.stderr
    found = rows(tmp_path / "out/t.parquet")
    assert [row[0] for row in found] == [0, 1, 2, 3, 4]
    assert [row[1] for row in found][:2] == ["old", "old"]
    assert rows(tmp_path / "out/again.parquet") == found
    assert refused.returncode == 1
    assert "bad.sql:1:21: error[duplicate-key]" in refused.stderr
    assert "6 of 13 source rows repeat a key" in refused.stderr
