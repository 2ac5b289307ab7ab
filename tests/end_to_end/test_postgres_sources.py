"""PostgreSQL as a source: types, the pieces it is read in, filters, the one snapshot, and what can go wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg
import pyarrow.parquet as pq
import pytest

import lockgate
from lockgate.running import frames as frames_module
from support.postgres import Database

PASSWORD = "hunter2%2F"


@pytest.fixture
def database(database: Database, project: Path) -> Iterator[psycopg.Connection]:
    """A session in a database that the project knows."""
    url = database.url
    poor = url.replace("postgres@", "poor@")
    (project / "lockgate.toml").write_text(
        f'[profile.dev.connections.db]\ntype = "postgres"\nurl = "{url}"\n'
        f'[profile.dev.connections.poor]\ntype = "postgres"\nurl = "{poor}"\npassword = "hunter2/"\n'
        '[profile.dev.connections.down]\ntype = "postgres"\n'
        f'url = "postgresql://me:{PASSWORD}@127.0.0.1:1/nowhere"\n',
        encoding="utf-8",
    )
    with database.session() as session:
        yield session


def pipeline(options: str, query: str = "SELECT * FROM t", connection: str = "db") -> str:
    return f"""
        SOURCE s FROM "{connection}" OPTIONS {options};
        LOAD t FROM s;
        EXPORT {query} TO "out.parquet" TYPE PARQUET MODE REPLACE;
    """


def rows(project: Path) -> list[dict[str, Any]]:
    return pq.read_table(project / "out.parquet").to_pylist()


TYPES = """
CREATE TYPE mood AS ENUM ('glad', 'so "so"');
CREATE DOMAIN price AS numeric(8,3);
CREATE TABLE "Odd ""Table" (
  id int, big bigint, small smallint, yes boolean, f4 real, f8 double precision,
  n numeric(10,2), wide numeric(38,4), free numeric, cents price, cash money,
  "At" timestamptz, local timestamp, day date, clock time, span interval,
  raw bytea, who uuid, doc jsonb, plain json, mood mood, txt text, ch char(4), vc varchar(9),
  ints int[], nums numeric(6,1)[], texts text[], moods mood[], days date[], ids uuid[], empty int[], "with space" text
);
INSERT INTO "Odd ""Table" VALUES (
  1, 9223372036854775807, -32768, true, 1.5, 'NaN',
  12345678.90, 1234567890123456789012345678901234.5678, 0.000000000000000001, 1.234, '12.34',
  '0001-01-01T00:00:00.000001Z', '9999-12-31 23:59:59.999999', '0001-01-01', '10:20:30', '1 day 02:00',
  '\\x00ff', '12345678-1234-1234-1234-123456789abc',
  '{"a": [1, null]}', '{"b":  2}', 'so "so"', E'tab\\tä€😀', 'ab', '',
  '{1,NULL,3}', '{1.5,NULL}', '{a,"b,c",NULL}', '{glad}', '{2026-01-31}', '{12345678-1234-1234-1234-123456789abc}',
  '{}', 'sp'
);
INSERT INTO "Odd ""Table" (id) VALUES (2);
"""

EXPECTED = {
    "id": 1, "big": 2**63 - 1, "small": -32768, "yes": True, "f4": 1.5,
    "n": Decimal("12345678.90"), "wide": Decimal("1234567890123456789012345678901234.5678"),
    "free": Decimal("0.000000000000000001"), "cents": Decimal("1.234"), "cash": Decimal("12.34"),
    "At": datetime(1, 1, 1, 0, 0, 0, 1, tzinfo=UTC), "local": datetime(9999, 12, 31, 23, 59, 59, 999999),
    "day": date(1, 1, 1), "clock": "10:20:30", "span": "P1DT2H",
    "raw": b"\x00\xff", "who": "12345678-1234-1234-1234-123456789abc", "doc": '{"a": [1, null]}', "plain": '{"b":  2}',
    "mood": 'so "so"', "txt": "tab\tä€😀", "ch": "ab", "vc": "",
    "ints": [1, None, 3], "nums": [Decimal("1.5"), None], "texts": ["a", "b,c", None], "moods": ["glad"],
    "days": [date(2026, 1, 31)], "ids": ["12345678-1234-1234-1234-123456789abc"], "empty": [], "with space": "sp",
}  # fmt: skip


def test_every_type_arrives_as_it_is(database: psycopg.Connection, project: Path, run_sql: Callable[..., Any]) -> None:
    database.execute(TYPES)
    run_sql(pipeline('{"table": "public.Odd \\"Table"}'))
    first, second = sorted(rows(project), key=lambda row: row["id"])
    assert str(first.pop("f8")) == "nan"
    assert first == EXPECTED
    assert {value for name, value in second.items() if name != "id"} == {None}

    # A query, with a comment at its end; some of the columns; as text what Spark has no value for.
    database.execute("INSERT INTO \"Odd \"\"Table\" (id, day, free) VALUES (3, '-infinity', 'NaN')")
    query = 'SELECT * FROM \\"Odd \\"\\"Table\\" WHERE id > 1 -- the others;'
    run_sql(pipeline(f'{{"query": "{query}", "columns": ["id", "day", "free"], "as_text": ["day", "free"]}}'))
    assert sorted(rows(project), key=lambda row: row["id"]) == [
        {"id": 2, "day": None, "free": None},
        {"id": 3, "day": "-infinity", "free": "NaN"},
    ]


def test_pieces_filters_and_one_snapshot(
    database: psycopg.Connection,
    project: Path,
    run_sql: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A writer changes the table after the run has looked at it: no task sees anything of that."""
    database.execute("CREATE TABLE n (id int PRIMARY KEY, part int, name text, at timestamptz)")
    database.execute(
        "INSERT INTO n SELECT g, g % 7, 'n' || g, '2026-01-01Z'::timestamptz + g * interval '1 minute' "
        "FROM generate_series(1, 20000) g"
    )
    database.execute("CREATE TABLE log AS SELECT 1 AS id")
    database.execute("ANALYZE n")
    text = """
        SOURCE by_place FROM "db" OPTIONS {"table": "n", "partitions": 5};
        SOURCE by_key TYPE POSTGRES PARAMS {"connection": "db", "table": "public.n", "partition_column": "id",
            "partitions": 4, "batch_bytes": 65536};
        SOURCE by_time FROM "db" OPTIONS {"query": "SELECT id, at FROM n;", "partition_column": "at"};
        SOURCE later FROM "db" OPTIONS {"table": "log"};
        LOAD a FROM by_place; LOAD b FROM by_key; LOAD c FROM by_time; LOAD d FROM later;
        CREATE TABLE few AS SELECT id FROM b WHERE id BETWEEN 101 AND 150 AND name <> 'n120';
        EXPORT SELECT 'a' AS t, count(*) AS n, count(DISTINCT id) AS ids, sum(id) AS s, min(part) AS least FROM a
          UNION ALL SELECT 'b', count(*), count(DISTINCT id), sum(id), min(part) FROM b
          UNION ALL SELECT 'c', count(*), count(DISTINCT id), sum(id), count_if(at < '2026-01-02') FROM c
          UNION ALL SELECT 'd', count(*), 0, 0, 0 FROM d
          UNION ALL SELECT 'few', count(*), count(DISTINCT id), sum(id), 0 FROM few
          TO "out.parquet" TYPE PARQUET MODE REPLACE;
    """
    real = frames_module.Frames.watermarks

    def change_then_go_on(self: Any, progress: Any) -> Any:
        database.execute("UPDATE n SET part = part - 100")  # moves every row to another place
        database.execute("DELETE FROM n WHERE id % 2 = 0; INSERT INTO log SELECT generate_series(2, 50)")
        return real(self, progress)

    monkeypatch.setattr(frames_module.Frames, "watermarks", change_then_go_on)
    run_sql(text)
    whole = 20000 * 20001 // 2
    assert {row["t"]: [row["n"], row["ids"], row["s"], row["least"]] for row in rows(project)} == {
        "a": [20000, 20000, whole, 0],
        "b": [20000, 20000, whole, 0],
        "c": [20000, 20000, whole, 1439],
        "d": [1, 0, 0, 0],
        "few": [49, 49, sum(range(101, 151)) - 120, 0],
    }
    assert not database.execute("SELECT FROM pg_stat_activity WHERE application_name = 'lockgate'").fetchall()


def test_the_server_reads_only_what_a_filter_leaves(
    database: psycopg.Connection, project: Path, run_sql: Callable[..., Any]
) -> None:
    """Asked of the server itself: it went to 30 rows by the index, and scanned none of the table."""
    database.execute("CREATE TABLE n AS SELECT g AS id, repeat('x', 200) AS pad FROM generate_series(1, 20000) g")
    database.execute("ALTER TABLE n ADD PRIMARY KEY (id)")
    database.execute("VACUUM ANALYZE n")
    database.execute("SELECT pg_stat_reset()")
    run_sql(pipeline('{"table": "n", "partitions": 1}', "SELECT id FROM t WHERE id > 100 AND id <= 130 AND pad <> ''"))
    assert sorted(row["id"] for row in rows(project)) == [*range(101, 131)]
    scanned, by_index = database.execute(
        "SELECT seq_tup_read, idx_tup_fetch FROM pg_stat_user_tables WHERE relname = 'n'"
    ).fetchone()
    assert (scanned, by_index) == (0, 30)


BAD = [
    ("db", '{"table": "public.nix"}', 'the table public.nix cannot be read: relation "public.nix" does not exist'),
    ("db", '{"table": "t", "columns": ["nix"]}', "the table t has no column nix; its columns are id, day, free, grid"),
    ("db", '{"query": "SELECT nix FROM t"}', 'the query cannot be read: column "nix" does not exist'),
    ("db", '{"query": "DELETE FROM t RETURNING id"}', "the query cannot be read"),
    ("db", '{"table": "t", "partition_column": "grid"}', "cannot be divided by the column grid"),
    ("db", '{"table": "t", "columns": ["day"]}', "the column day holds infinity, or a date outside"),
    ("db", '{"table": "t", "columns": ["free"]}', "the column free holds a value that the type decimal128"),
    ("db", '{"table": "t", "columns": ["grid"]}', "the column grid holds an array of more than one dimension"),
    ("db", '{"query": "SELECT 1 AS a, 2 AS \\"A\\""}', "columns that Spark cannot tell apart: a, A"),
    ("db", '{"query": "SELECT 1 / (id - 1) AS x FROM t"}', "the rows cannot be read"),
    ("poor", '{"table": "t"}', "cannot connect to poor"),
    ("down", '{"table": "t"}', "cannot connect to down"),
]


def test_what_can_go_wrong_is_said_at_its_place(
    database: psycopg.Connection, project: Path, run_sql: Callable[..., Any]
) -> None:
    database.execute("CREATE TABLE t (id int, day date, free numeric, grid int[])")
    database.execute("INSERT INTO t VALUES (1, 'infinity', 1e30, '{{1,2},{3,4}}')")
    for connection, options, message in BAD:
        with pytest.raises(lockgate.SourceError) as raised:
            run_sql(pipeline(options, connection=connection))
        told = raised.value.render()
        assert message in told, told
        assert "pipeline.sql:2:" in told, told
        assert "^" in told
        assert "now: nothing was published; every destination is as it was" in told
        assert raised.value.result.exit_code == 1
        assert "hunter2" not in told
        assert "Traceback" not in told
    assert not (project / "out.parquet").exists()
    for file in (project / ".lockgate").rglob("*"):
        assert not file.is_file() or b"hunter2" not in file.read_bytes(), file

    # A right password, and no right to the table.
    database.execute("DROP ROLE IF EXISTS poor")
    database.execute("CREATE ROLE poor LOGIN PASSWORD 'hunter2/'")
    with pytest.raises(lockgate.SourceError, match="permission denied for table t") as raised:
        run_sql(pipeline('{"table": "t"}', connection="poor"))
    assert "GRANT SELECT" in str(raised.value.hint)


def test_the_session_of_the_snapshot_dies_and_no_secret_is_in_a_plan(
    database: psycopg.Connection,
    run_sql: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
    spark: Any,
) -> None:
    database.execute("CREATE TABLE t AS SELECT 1 AS id")
    database.execute("DROP ROLE IF EXISTS poor")
    database.execute("CREATE ROLE poor LOGIN PASSWORD 'hunter2/'")
    database.execute("GRANT SELECT ON t TO poor")
    plans: list[str] = []
    real = frames_module.Frames.watermarks

    def kill(self: Any, progress: Any) -> Any:
        plans.append(self.session.table("t")._jdf.queryExecution().toString())
        database.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'lockgate'")
        return real(self, progress)

    monkeypatch.setattr(frames_module.Frames, "watermarks", kill)
    with pytest.raises(
        lockgate.SourceError, match="the session that kept the snapshot of the database is gone"
    ) as raised:
        run_sql(pipeline('{"table": "t"}', connection="poor"))
    assert "pipeline.sql:2:" in raised.value.render()
    assert plans
    assert "hunter2" not in plans[0]
    assert "hunter2" not in repr(raised.value.__cause__)
    settings = {name: value for name, value in spark.conf.getAll.items() if "hunter2" in str(value)}
    assert not settings
