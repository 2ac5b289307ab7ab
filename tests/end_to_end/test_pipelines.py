"""Pipelines on Spark, from text to published files."""

from __future__ import annotations

import json
import os
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lockgate
from lockgate.running.session import RUN_SETTINGS
from lockgate.storage.local import LocalStorage
from lockgate.targets import journal
from lockgate.targets.journal import Change
from support.arrow_run import snapshot
from support.leftovers import leftovers

ROWS = "SELECT * FROM VALUES (1, 'a'), (2, 'b'), (3, NULL) AS t(id, name)"


def test_a_pipeline_with_all_source_types_and_exports(run_sql, project):
    (project / "users.csv").write_text('id,name\n1,"Müller, A"\n2,\n')
    (project / "orders.jsonl").write_text(
        '{"user": 1, "amount": 5}\n{"user": 2, "amount": 7}\n{"user": 1, "amount": 1}\n'
    )
    pq.write_table(pa.table({"id": [1, 2], "country": ["DE", "FI"]}), project / "countries.parquet")
    result = run_sql(
        """
        EXPORT SELECT * FROM totals ORDER BY id TO "out/totals.csv" TYPE CSV MODE REPLACE;  -- before its definition
        SOURCE users TYPE CSV PARAMS {"path": "users.csv"};
        SOURCE orders TYPE JSON PARAMS {"path": "orders.jsonl"};
        SOURCE countries TYPE PARQUET PARAMS {"path": "countries.parquet"};
        LOAD u FROM users; LOAD o FROM orders; LOAD c FROM countries;
        CREATE TABLE totals AS
          SELECT u.id, u.name, c.country, sum(o.amount) AS amount
          FROM u JOIN o ON o.user = u.id JOIN c ON c.id = u.id GROUP BY ALL;
        CHECK "amounts are positive" AS SELECT * FROM totals WHERE amount <= 0;
        EXPORT totals TO "out/totals.json" TYPE JSON MODE REPLACE;
        EXPORT totals TO "out/totals.parquet" TYPE PARQUET MODE REPLACE;
        EXPORT totals TO "out/totals" TYPE PARQUET OPTIONS {"partition_by": ["country"]} MODE REPLACE AS by_country;
        """
    )
    assert (project / "out/totals.csv").read_text() == 'id,name,country,amount\n1,"Müller, A",DE,6\n2,,FI,7\n'
    lines = [json.loads(x) for x in (project / "out/totals.json").read_text().splitlines()]
    assert sorted(lines, key=lambda r: r["id"]) == [
        {"id": 1, "name": "Müller, A", "country": "DE", "amount": 6},
        {"id": 2, "name": None, "country": "FI", "amount": 7},
    ]
    assert pq.read_table(project / "out/totals.parquet").num_rows == 2
    assert sorted(p.parent.name for p in (project / "out/totals").rglob("*.parquet")) == ["country=DE", "country=FI"]
    assert result.ok
    assert result.status == "published"
    assert [e.name for e in result.exports][-1] == "by_country"
    assert [e.rows for e in result.exports] == [2, 2, 2, 2]
    assert result.checks[0].passed
    assert leftovers(project) == []
    assert not (project / "spark-warehouse").exists()


def test_the_third_of_three_exports_fails_at_stage_and_the_others_stay(run_sql, project):
    text = """
        EXPORT {0} TO "out/a.csv" TYPE CSV MODE REPLACE;
        EXPORT {0} TO "out/b" TYPE PARQUET MODE REPLACE;
        EXPORT {1} TO "out/c.json" TYPE JSON MODE REPLACE;"""
    run_sql(text.format(ROWS, ROWS))
    before = snapshot(project / "out")
    with pytest.raises(lockgate.QueryError) as caught:
        run_sql(text.format("SELECT 4 AS id", "SELECT CAST(name AS INT) AS broken FROM VALUES ('x') AS t(name)"))
    assert snapshot(project / "out") == before
    assert "CAST_INVALID_INPUT" in caught.value.render()
    assert "pipeline.sql:4:" in caught.value.render()
    assert caught.value.exit_code == 1
    assert caught.value.result.status == "failed"
    assert [e.status for e in caught.value.result.exports] == ["skipped", "skipped", "failed"]
    assert leftovers(project) == []


def test_a_failing_check_publishes_nothing_and_shows_rows(run_sql, project):
    run_sql(f'EXPORT {ROWS} TO "out/a.csv" TYPE CSV MODE REPLACE;')
    before = snapshot(project / "out")
    with pytest.raises(lockgate.CheckFailed) as caught:
        run_sql("""
            CREATE TABLE t AS SELECT id FROM range(20);
            CHECK "small ids" AS SELECT id, 'x' AS why FROM t WHERE id >= 10;
            CHECK "all fine" AS SELECT * FROM t WHERE id < 0;
            CHECK "not seven" AS SELECT * FROM t WHERE id = 7;
            EXPORT t TO "out/a.csv" TYPE CSV MODE REPLACE;
            EXPORT t TO "out/new.csv" TYPE CSV MODE REPLACE;
        """)
    error = caught.value
    assert error.exit_code == 4
    assert 'CHECK "small ids" found 10 rows' in error.message
    assert "id=10, why=x" in error.message
    assert "and 5 more" in error.message
    assert 'CHECK "not seven" found 1 row:' in error.message
    assert [(c.name, c.passed, c.failing_rows) for c in error.result.checks] == [
        ("small ids", False, 10),
        ("all fine", True, 0),
        ("not seven", False, 1),
    ]
    assert error.result.status == "check_failed"
    assert snapshot(project / "out") == before
    assert leftovers(project) == []


@pytest.mark.parametrize(
    ("sql", "place", "said"),
    [
        ("SELECT id, nope\nFROM t", "3:12", "UNRESOLVED_COLUMN"),
        ("SELECT id +\n  array(1) FROM t", "3:8", "DATATYPE_MISMATCH"),
        ("SELECT id FROM t WHERE no_such_function(id)", "3:24", "UNRESOLVED_ROUTINE"),
        ("SELECT ${word} nope FROM t", "3:16", "UNRESOLVED_COLUMN"),
    ],
)
def test_an_error_in_sql_shows_sparks_words_and_our_place(run_sql, project, sql, place, said):
    with pytest.raises(lockgate.QueryError) as caught:
        run_sql(
            f'CREATE TABLE t AS SELECT 1 AS id;\nEXPORT\n{sql}\nTO "out/x.csv" TYPE CSV MODE REPLACE;',
            variables={"word": "id, /* a long value */"},
        )
    shown = caught.value.render()
    assert f"pipeline.sql:{place}:" in shown
    assert said in shown
    assert "^" in shown
    assert "nothing was published" in shown
    assert "Traceback" not in shown
    assert "\tat " not in shown
    assert not (project / "out").exists()


def test_an_error_that_shows_while_computing_is_placed_in_the_table_that_causes_it(run_sql):
    with pytest.raises(lockgate.QueryError) as caught:
        run_sql(
            "CREATE TABLE words AS SELECT * FROM VALUES ('1'), ('two') AS t(w);\n"
            "CREATE TABLE numbers AS\n  SELECT CAST(w AS INT) AS n FROM words;\n"
            'EXPORT SELECT sum(n) AS n FROM numbers TO "out/x.csv" TYPE CSV MODE REPLACE;'
        )
    assert "pipeline.sql:3:10:" in caught.value.render()
    assert "'two'" in caught.value.render()


def test_sql_reaches_spark_verbatim(run_sql, project):
    text = (
        "CREATE TABLE t AS\r\n  WITH w AS (SELECT 1 AS `odd ``name``; x`, 'it''s' AS s -- a comment; with 'quotes'\r\n"
        "  ) /* nested /* comment; */ ends */ SELECT *, 'a;b--c  d' AS semi, '/* no comment */' AS c,\r\n"
        "  \"double ; quoted\" AS d, r'raw\\n' AS r, 1 <> 2 AS ne, row_number() OVER (ORDER BY s) AS `mode` FROM w;\r\n"
        'EXPORT SELECT * FROM t TO "out/x.json" TYPE JSON MODE REPLACE;\r\n'
    )
    run_sql(text)
    assert json.loads((project / "out/x.json").read_text()) == {
        "odd `name`; x": 1,
        "s": "it's",
        "semi": "a;b--c  d",
        "c": "/* no comment */",
        "d": "double ; quoted",
        "r": "raw\\n",
        "ne": True,
        "mode": 1,
    }


def test_variables_are_text_and_parameters_are_values(run_sql, project):
    hostile = "x' OR '1'='1"
    run_sql(
        """
        SET greeting = "hello ${who|world}";
        EXPORT SELECT :hostile AS h, :n + 1 AS n, :day AS day, '${greeting}' AS g, ${number} * 2 AS twice,
               '${env:HOME}${' AS untouched
          WHERE :hostile <> 'y'
          TO "out/${name}.json" TYPE JSON OPTIONS {"compression": "${codec|none}"} MODE REPLACE;
        """.replace("'${env:HOME}${' AS untouched", "'$' AS untouched"),
        variables={"hostile": hostile, "n": 4, "day": date(2026, 1, 31), "number": 21, "name": "it's"},
    )
    assert json.loads((project / "out/it's.json").read_text()) == {
        "h": hostile, "n": 5, "day": "2026-01-31", "g": "hello world", "twice": 42, "untouched": "$",
    }  # fmt: skip


def test_what_a_value_holds_is_not_expanded_by_spark(run_sql, project):
    run_sql(
        "EXPORT SELECT '${x}' AS x TO \"out/x.json\" TYPE JSON MODE REPLACE;",
        variables={"x": "${spark.app.name} ${env:PATH}"},
    )
    assert json.loads((project / "out/x.json").read_text()) == {"x": "${spark.app.name} ${env:PATH}"}


def test_python_functions(run_sql, project):
    (project / "functions").mkdir()
    (project / "functions/mine.py").write_text(
        "import pyarrow as pa, pyarrow.compute as pc\nimport lockgate\n\nFACTOR = 3\n\n"
        "@lockgate.function(returns='int')\ndef times(x):\n    return None if x is None else x * FACTOR\n\n"
        "@lockgate.function(returns='string', vectorized=True)\n"
        "def shout(s: pa.Array) -> pa.Array:\n    return pc.utf8_upper(s)\n"
    )
    run_sql(
        "EXPORT SELECT times(id) AS id, shout(name) AS name FROM VALUES (1, 'a'), (NULL, NULL) AS t(id, name)"
        ' ORDER BY id NULLS LAST TO "out/x.csv" TYPE CSV MODE REPLACE;'
    )
    assert (project / "out/x.csv").read_text() == "id,name\n3,A\n,\n"
    (project / "functions/mine.py").write_text(
        "import lockgate\n\n@lockgate.function(returns='int')\ndef broken(x):\n    raise ValueError(f'no {x}')\n"
    )
    with pytest.raises(lockgate.QueryError) as caught:
        run_sql('EXPORT SELECT broken(1) AS x TO "out/x.csv" TYPE CSV MODE REPLACE;')
    assert "ValueError: no 1" in caught.value.message
    assert "mine.py, line 5, in broken" in caught.value.message
    assert "Traceback" not in caught.value.render()
    (project / "functions/mine.py").write_text("import lockgate\nboom = 1 / 0\n")
    with pytest.raises(lockgate.FunctionError, match=r"mine\.py:2: ZeroDivisionError"):
        run_sql(f'EXPORT {ROWS} TO "out/x.csv" TYPE CSV MODE REPLACE;')
    assert leftovers(project) == []


def test_a_table_read_by_several_statements_is_computed_once(run_sql, project):
    (project / "functions").mkdir()
    log = project / "calls.log"
    (project / "functions/spy.py").write_text(
        f"import lockgate\n\n@lockgate.function(returns='int')\ndef seen(x):\n"
        f"    with open({str(log)!r}, 'a') as f:\n        f.write(f'{{x}}\\n')\n    return x\n"
    )
    run_sql("""
        CREATE TABLE t AS SELECT seen(CAST(id AS INT)) AS id FROM range(5);
        CHECK "none" AS SELECT * FROM t WHERE id < 0;
        EXPORT t TO "out/a.csv" TYPE CSV MODE REPLACE;
        EXPORT SELECT id + 1 AS id FROM t TO "out/b.csv" TYPE CSV MODE REPLACE;
    """)
    assert sorted(log.read_text().split()) == ["0", "1", "2", "3", "4"]


def test_redefined_and_appended_tables(run_sql, project):
    run_sql("""
        CREATE TABLE t AS SELECT id FROM range(3);
        EXPORT SELECT count(*) AS n FROM t TO "out/first.csv" TYPE CSV MODE REPLACE;
        CREATE OR REPLACE TABLE t AS SELECT id + 10 AS id FROM t WHERE id > 0;
        CREATE TABLE t MODE APPEND AS SELECT 99L AS id;
        EXPORT SELECT * FROM t ORDER BY id TO "out/last.csv" TYPE CSV MODE REPLACE;
    """)
    assert (project / "out/first.csv").read_text() == "n\n3\n"
    assert (project / "out/last.csv").read_text() == "id\n11\n12\n99\n"


def test_the_session_is_left_as_it_was_found(run_sql, spark):
    spark.range(1).createOrReplaceTempView("mine")
    settings = {k: spark.conf.get(k) for k in RUN_SETTINGS}
    before = [t.name for t in spark.catalog.listTables()]
    run_sql('CREATE TABLE theirs AS SELECT 1 AS id; EXPORT theirs TO "out/x.csv" TYPE CSV MODE REPLACE;')
    assert [t.name for t in spark.catalog.listTables()] == before
    assert {k: spark.conf.get(k) for k in settings} == settings
    with pytest.raises(lockgate.RunError, match="already has a temporary view named mine"):
        run_sql('CREATE TABLE mine AS SELECT 1 AS id; EXPORT mine TO "out/y.csv" TYPE CSV MODE REPLACE;')
    assert spark.table("mine").columns == ["id"]
    spark.catalog.dropTempView("mine")


def test_timestamps_are_microseconds_over_the_whole_range(run_sql, project):
    run_sql("""
        CREATE TABLE t AS SELECT * FROM VALUES
          (1, TIMESTAMP'0001-01-01 00:00:00.000001Z', DATE'0001-01-01'),
          (2, TIMESTAMP'1900-01-01 00:00:00.123456Z', DATE'1900-01-01'),
          (3, TIMESTAMP'9999-12-31 23:59:59.999999Z', DATE'9999-12-31') AS v(id, ts, d);
        EXPORT SELECT * FROM t ORDER BY id TO "out/t.parquet" TYPE PARQUET MODE REPLACE;
        EXPORT SELECT * FROM t ORDER BY id TO "out/t.csv" TYPE CSV MODE REPLACE;
    """)
    table = pq.read_table(project / "out/t.parquet")
    assert table.schema.field("ts").type == pa.timestamp("us", tz="UTC")
    assert pq.ParquetFile(project / "out/t.parquet").schema.column(1).physical_type == "INT64"
    assert table["ts"].to_pylist() == [
        datetime(1, 1, 1, 0, 0, 0, 1, UTC),
        datetime(1900, 1, 1, 0, 0, 0, 123456, UTC),
        datetime(9999, 12, 31, 23, 59, 59, 999999, UTC),
    ]
    assert table["d"].to_pylist() == [date(1, 1, 1), date(1900, 1, 1), date(9999, 12, 31)]
    assert (project / "out/t.csv").read_text().splitlines()[1:] == [
        "1,0001-01-01T00:00:00.000001Z,0001-01-01",
        "2,1900-01-01T00:00:00.123456Z,1900-01-01",
        "3,9999-12-31T23:59:59.999999Z,9999-12-31",
    ]


def test_an_empty_result_still_writes_header_and_schema(run_sql, project):
    empty = "SELECT 1 AS id, 'x' AS name WHERE false"
    run_sql(f"""
        EXPORT {empty} TO "out/a.csv" TYPE CSV MODE REPLACE;
        EXPORT {empty} TO "out/b.json" TYPE JSON MODE REPLACE;
        EXPORT {empty} TO "out/c.parquet" TYPE PARQUET MODE REPLACE;
        EXPORT {empty} TO "out/d" TYPE PARQUET MODE REPLACE;
        EXPORT {empty} TO "out/e" TYPE PARQUET OPTIONS {{"partition_by": ["name"]}} MODE REPLACE;
        EXPORT {empty} TO "out/f.csv" TYPE CSV MODE APPEND;
    """)
    assert (project / "out/a.csv").read_text() == "id,name\n"
    assert (project / "out/b.json").read_text() == ""
    assert pq.read_table(project / "out/c.parquet").schema.names == ["id", "name"]
    for folder in ("d", "e"):
        files = list((project / "out" / folder).glob("*.parquet"))
        assert [set(pq.read_table(f).schema.names) for f in files] == [{"id", "name"}]
    assert [p.read_text() for p in (project / "out").glob("f-*.csv")] == ["id,name\n"]
    assert leftovers(project) == []


def test_order_by_survives_in_one_file_from_many_parts(run_sql, project):
    run_sql("""
        EXPORT SELECT id, sha(CAST(id AS STRING)) AS pad FROM range(0, 20000, 1, 8) ORDER BY id DESC
          TO "out/a.parquet" TYPE PARQUET OPTIONS {"compression": "zstd"} MODE REPLACE;
        EXPORT SELECT id FROM range(0, 20000, 1, 8) ORDER BY id DESC TO "out/a.csv" TYPE CSV MODE REPLACE;
    """)
    file = pq.ParquetFile(project / "out/a.parquet")
    assert file.read()["id"].to_pylist() == list(range(19999, -1, -1))
    assert file.metadata.row_group(0).column(0).compression == "ZSTD"
    assert (project / "out/a.csv").read_text().split()[1:] == [str(i) for i in range(19999, -1, -1)]


def test_append_adds_uniquely_named_files(run_sql, project):
    text = f"""
        EXPORT {ROWS} TO "out/a.csv.gz" TYPE CSV MODE APPEND;
        EXPORT {ROWS} TO "out/a.csv.gz" TYPE CSV AS again;
        EXPORT {ROWS} TO "out/p" TYPE PARQUET;
    """
    first = run_sql(text)
    second = run_sql(text)
    names = sorted(p.name for p in (project / "out").glob("a*"))
    assert names == sorted(f"a-{r.run}-{n}.csv.gz" for r in (first, second) for n in (1, 2))
    assert not (project / "out/a.csv.gz").exists()
    assert pq.read_table(project / "out/p").num_rows == 6
    assert second.exports[2].files["preserved"] >= 1


def test_replace_of_a_folder_keeps_what_is_not_data(run_sql, project):
    run_sql(f'EXPORT {ROWS} TO "out/p" TYPE PARQUET OPTIONS {{"partition_by": ["name"]}} MODE REPLACE;')
    (project / "out/p/README.txt").write_text("keep me")
    (project / "out/p/_notes.parquet").write_text("hidden, so not data")
    old = set((project / "out/p").rglob("part-*.parquet"))
    run_sql('EXPORT SELECT 7 AS id TO "out/p" TYPE PARQUET MODE REPLACE;')
    assert not any(p.exists() for p in old)
    assert not (project / "out/p/name=a").exists()
    assert (project / "out/p/README.txt").read_text() == "keep me"
    assert (project / "out/p/_notes.parquet").exists()
    data = list((project / "out/p").glob("part-*.parquet"))
    assert [pq.read_table(f)["id"].to_pylist() for f in data] == [[7]]


def test_partition_values_with_odd_characters(run_sql, project, spark):
    run_sql("""
        EXPORT SELECT * FROM VALUES (1, 'a/b'), (2, 'ä %20'), (3, NULL), (4, '=:?') AS t(id, p)
          TO "out/p" TYPE PARQUET OPTIONS {"partition_by": ["p"]} MODE REPLACE;
    """)
    rows = {r.id: r.p for r in spark.read.parquet(str(project / "out/p")).collect()}
    assert rows == {1: "a/b", 2: "ä %20", 3: None, 4: "=:?"}
    before = snapshot(project / "out")
    with pytest.raises(lockgate.LockgateError, match="empty string"):
        run_sql("""
            EXPORT SELECT * FROM VALUES (1, ''), (2, 'x') AS t(id, p)
              TO "out/p" TYPE PARQUET OPTIONS {"partition_by": ["p"]} MODE REPLACE;
        """)
    assert snapshot(project / "out") == before


def test_permissions_and_links_of_a_replaced_file_are_kept(run_sql, project):
    (project / "real").mkdir()
    (project / "out").mkdir()
    target = project / "real/data.csv"
    target.write_text("old")
    target.chmod(0o640)
    if os.geteuid() == 0:
        os.chown(target, 12345, 12345)
    (project / "out/data.csv").symlink_to("../real/data.csv")
    run_sql(f'EXPORT {ROWS} TO "out/data.csv" TYPE CSV MODE REPLACE;')
    assert (project / "out/data.csv").is_symlink()
    assert target.read_text().startswith("id,name\n1,a\n")
    assert target.stat().st_mode & 0o777 == 0o640
    if os.geteuid() == 0:
        assert target.stat().st_uid == 12345
    assert leftovers(project) == []


def test_staging_in_another_place(run_sql, project):
    (project / "lockgate.toml").write_text('[profile.dev]\nstaging = "scratch"\n')
    run_sql(f"""
        EXPORT {ROWS} TO "out/a.csv" TYPE CSV MODE REPLACE;
        EXPORT {ROWS} TO "out/p" TYPE PARQUET OPTIONS {{"partition_by": ["name"]}} MODE REPLACE;
    """)
    assert (project / "out/a.csv").read_text() == "id,name\n1,a\n2,b\n3,\n"
    assert len(list((project / "out/p").rglob("*.parquet"))) == 3
    assert not (project / "scratch").exists()


def test_decimals_and_nested_values(run_sql, project):
    run_sql("""
        CREATE TABLE t AS SELECT 1.50BD AS d, array(1, 2) AS a, map('k', 1) AS m, named_struct('x', 1) AS s;
        EXPORT t TO "out/t.json" TYPE JSON MODE REPLACE;
        EXPORT t TO "out/t.parquet" TYPE PARQUET MODE REPLACE;
    """)
    assert json.loads((project / "out/t.json").read_text(), parse_float=Decimal) == {
        "d": Decimal("1.50"), "a": [1, 2], "m": {"k": 1}, "s": {"x": 1},
    }  # fmt: skip
    with pytest.raises(lockgate.StageError, match="CSV cannot hold the column a of type array") as caught:
        run_sql('EXPORT SELECT array(1) AS a TO "out/t.csv" TYPE CSV MODE REPLACE;')
    assert "to_json(a)" in caught.value.render()
    with pytest.raises(lockgate.StageError, match="two columns the name id"):
        run_sql('EXPORT SELECT 1 AS id, 2 AS ID TO "out/t.csv" TYPE CSV MODE REPLACE;')
    assert leftovers(project) == []


def test_a_folder_that_cannot_be_made_is_found_before_spark_works(run_sql, project):
    (project / "out").write_text("a file")
    with pytest.raises(lockgate.StorageError) as caught:
        run_sql(f'EXPORT {ROWS} TO "out/x.csv" TYPE CSV MODE REPLACE;')
    assert "out" in caught.value.render()
    assert (project / "out").read_text() == "a file"
    assert leftovers(project) == []


def test_a_destination_that_is_a_folder(run_sql, project):
    (project / "out/x.csv").mkdir(parents=True)
    with pytest.raises(lockgate.StageError, match="is a folder"):
        run_sql(f'EXPORT {ROWS} TO "out/x.csv" TYPE CSV MODE REPLACE;')


def test_sources_refuse_what_does_not_fit(run_sql, project):
    (project / "a.csv").write_text("id,n\n1,2\n3,x\n")
    text = (
        'SOURCE a TYPE CSV PARAMS {"path": "a.csv", "schema": "%s"};\nLOAD t FROM a;\n'
        'EXPORT t TO "out/a.csv" TYPE CSV MODE REPLACE;'
    )
    with pytest.raises(lockgate.LockgateError) as caught:
        run_sql(text % "id INT, n INT")
    assert "MALFORMED_RECORD" in caught.value.render()
    assert "a.csv" in caught.value.render()
    assert 'For input string: "x"' in caught.value.render()
    with pytest.raises(lockgate.LockgateError) as caught:  # by position it would read ids as names
        run_sql(text % "n STRING, id STRING")
    assert "header" in caught.value.render().lower()
    assert not (project / "out").exists()
    with pytest.raises(lockgate.SourceError, match=r"b\.csv, which does not exist"):
        run_sql(text.replace("a.csv", "b.csv", 1) % "id INT")
    (project / "bad.parquet").write_bytes(b"PAR1 this is not a Parquet file PAR1")
    with pytest.raises(lockgate.SourceError) as caught:
        run_sql(
            'SOURCE a TYPE PARQUET PARAMS {"path": "bad.parquet"}; LOAD t FROM a;'
            'EXPORT t TO "out/a.csv" TYPE CSV MODE REPLACE;'
        )
    assert "bad.parquet" in caught.value.render()


def test_append_refuses_rows_of_another_shape(run_sql, project):
    text = 'EXPORT {} TO "out/p" TYPE PARQUET OPTIONS {{"partition_by": {}}} MODE APPEND;'
    run_sql(text.format("SELECT 1 AS id, 'a' AS p", '["p"]'))
    before = snapshot(project / "out")
    for query, partition, said in [
        ("SELECT '1' AS id, 'a' AS p", '["p"]', "id: int32 there, string here"),
        ("SELECT 1 AS id, 'a' AS p, 2 AS more", '["p"]', "more: missing there, int32 here"),
        ("SELECT 1 AS id, 'a' AS p", "[]", "partitioned by p there, nothing here"),
    ]:
        with pytest.raises(lockgate.StageError) as caught:
            run_sql(text.format(query, partition))
        assert said in caught.value.message
    assert snapshot(project / "out") == before
    run_sql(text.format("SELECT 2 AS id, 'b' AS p", '["p"]'))


def test_a_source_finishes_an_interrupted_write_before_it_reads(run_sql, project):
    run_sql('EXPORT SELECT 1 AS id TO "lake" TYPE PARQUET MODE REPLACE;')
    (old,) = (project / "lake").glob("*.parquet")
    (project / "lake/.staging_x").mkdir()
    pq.write_table(pa.table({"id": pa.array([2], pa.int32())}), project / "lake/.staging_x/a")
    journal.write(
        LocalStorage(), project / "lake", Change("x", ".staging_x", ((".staging_x/a", "new.parquet"),), (old.name,))
    )
    run_sql(
        'SOURCE s TYPE PARQUET PARAMS {"path": "lake"}; LOAD t FROM s; EXPORT t TO "out/a.csv" TYPE CSV MODE REPLACE;'
    )
    assert (project / "out/a.csv").read_text() == "id\n2\n"
    assert leftovers(project) == []
