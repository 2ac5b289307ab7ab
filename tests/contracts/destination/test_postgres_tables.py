"""Tables as they are in real databases: what is not the export's business stays, and hostile names are names."""

from __future__ import annotations

from itertools import cycle
from pathlib import Path

import pyarrow as pa
import pytest

import lockgate
from lockgate.modes import KEYED_MODES
from support.postgres import url_of
from support.postgres_runs import counts, write

ROWS = pa.table({"id": [2, 3], "name": ["B", "C"]})
NAMES = ['My "Table"', "select", "a.b", "t; DROP TABLE x", "ünï", "x" * 63, "a'b", "%s $1 \\"]


@pytest.mark.parametrize(("name", "mode"), list(zip(NAMES, cycle(["REPLACE", *KEYED_MODES]), strict=False)))
def test_names_are_names(place: Path, database, name: str, mode: str) -> None:
    """Of the schema, of the table, of its columns, of a key."""
    quoted = {each: '"' + each.replace('"', '""') + '"' for each in NAMES}
    database.run('CREATE SCHEMA "S ""x"""')
    table = f'"S ""x""".{quoted[name]}'
    database.run(f'CREATE TABLE {table} ({", ".join(f"{q} int" for q in quoted.values())}, "Id" int)')
    source = pa.table({"Id": [1], **{each: [n] for n, each in enumerate(NAMES)}})
    keys = [name, NAMES[-1]] if mode in KEYED_MODES else []
    write(place, database.profile(), source, f'S "x".{name}', mode, keys)
    expected = [] if mode == "UPDATE" else [(*range(len(NAMES)), 1)]
    assert database.run(f"SELECT * FROM {table}") == expected


def test_columns_match_by_exact_case_and_near_ones_are_named(place: Path, database) -> None:
    database.run('CREATE TABLE t ("Id" int)')
    with pytest.raises(lockgate.SchemaMismatchError, match='no column "id"') as caught:
        write(place, database.profile(), pa.table({"id": [1]}), "t")
    assert 'did you mean "Id"' in caught.value.hint


def test_a_table_of_the_search_path(place: Path, database) -> None:
    database.run("CREATE SCHEMA first")
    database.run("CREATE TABLE first.t (id int, name text)")
    database.run("CREATE TABLE public.t (id int, name text)")
    profile = database.profile(url=database.url + "&options=-csearch_path%3Dfirst,public")
    write(place, profile, ROWS, "t")
    assert database.run("SELECT (SELECT count(*) FROM first.t), (SELECT count(*) FROM public.t)") == [(2, 0)]


@pytest.mark.parametrize("mode", ["REPLACE", "UPSERT", "FULL_MERGE"])
def test_views_grants_indexes_triggers_and_defaults_stay(place: Path, database, mode: str) -> None:
    database.run(
        "CREATE TABLE t (id int PRIMARY KEY, name text, at timestamptz DEFAULT now(), "
        "twice int GENERATED ALWAYS AS (id * 2) STORED)"
    )
    database.run("CREATE VIEW v AS SELECT id, twice FROM t")
    database.run("CREATE INDEX by_name ON t (name)")
    database.run("CREATE TABLE seen (what text)")
    database.run(
        "CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS "
        "'BEGIN INSERT INTO seen VALUES (TG_OP); RETURN NEW; END'"
    )
    database.run("CREATE TRIGGER note AFTER INSERT ON t FOR EACH ROW EXECUTE FUNCTION note()")
    database.run("INSERT INTO t (id, name) VALUES (1, 'a'), (2, 'b')")
    database.run("GRANT SELECT ON t TO PUBLIC")
    write(place, database.profile(), ROWS, "t", mode, ["id"] if mode != "REPLACE" else [])
    assert database.run("SELECT * FROM v WHERE id > 1 ORDER BY id") == [(2, 4), (3, 6)]
    assert database.run("SELECT count(*) FROM pg_indexes WHERE tablename = 't'") == [(2,)]
    assert database.run("SELECT count(at) = count(*) FROM t") == [(True,)]
    assert database.run("SELECT has_table_privilege('public', 't', 'SELECT')") == [(True,)]
    assert database.run("SELECT count(*) FROM seen") == [(4 if mode == "REPLACE" else 3,)]


@pytest.mark.parametrize("mode", ["REPLACE", "APPEND", *KEYED_MODES])
def test_a_partitioned_table(place: Path, database, mode: str) -> None:
    database.run("CREATE TABLE t (id int, name text, PRIMARY KEY (id)) PARTITION BY RANGE (id)")
    database.run("CREATE TABLE t1 (name text, id int NOT NULL)")  # in another order
    database.run("ALTER TABLE t ATTACH PARTITION t1 FOR VALUES FROM (0) TO (3)")
    database.run("CREATE TABLE t2 PARTITION OF t FOR VALUES FROM (3) TO (9)")
    database.run("INSERT INTO t VALUES (1, 'a')")
    if mode != "APPEND":
        database.run("INSERT INTO t VALUES (2, 'b')")
    result = write(place, database.profile(), ROWS, "t", mode, ["id"] if mode in KEYED_MODES else [])
    expected = {
        "REPLACE": (2, 0, 2),
        "APPEND": (2, 0, 0),
        "INSERT": (1, 0, 0),
        "UPDATE": (0, 1, 0),
        "FULL_MERGE": (1, 1, 1),
    }
    assert counts(result) == expected.get(mode, (1, 1, 0))


def test_identity_columns(place: Path, database) -> None:
    database.run("CREATE TABLE t (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text)")
    assert counts(write(place, database.profile(), ROWS, "t", "UPSERT", ["id"])) == (2, 0, 0)
    assert counts(write(place, database.profile(), ROWS, "t", "UPSERT", ["id"], run="r2")) == (0, 2, 0)
    database.run("CREATE TABLE u (name text PRIMARY KEY, id int GENERATED ALWAYS AS IDENTITY)")
    assert counts(write(place, database.profile(), ROWS.select(["name"]), "u", "UPSERT", ["name"], run="r3")) == (
        2,
        0,
        0,
    )
    with pytest.raises(lockgate.SchemaMismatchError, match="GENERATED ALWAYS AS IDENTITY"):
        write(place, database.profile(), ROWS, "u", "UPSERT", ["name"], run="r4")


def test_foreign_keys(place: Path, database) -> None:
    """REPLACE would take the children along, row by row, without a word."""
    database.run("CREATE TABLE t (id int PRIMARY KEY, name text)")
    database.run("CREATE TABLE child (id int REFERENCES t ON DELETE CASCADE)")
    database.run("INSERT INTO t VALUES (1, 'a'), (2, 'b')")
    database.run("INSERT INTO child VALUES (2)")
    with pytest.raises(lockgate.StageError, match="rows of child by a foreign key") as caught:
        write(place, database.profile(), ROWS, "t", "REPLACE")
    assert "FULL_MERGE" in caught.value.hint
    assert counts(write(place, database.profile(), ROWS, "t", "FULL_MERGE", ["id"], run="r2")) == (1, 1, 1)
    assert database.run("SELECT * FROM child") == [(2,)]
    with pytest.raises(lockgate.PublishError, match="23503"):
        write(place, database.profile(), pa.table({"id": [77]}), "child", "APPEND", run="r3")


def test_what_the_table_needs_and_the_query_lacks(place: Path, database) -> None:
    database.run("CREATE TABLE t (id int PRIMARY KEY, name text, must int NOT NULL)")
    database.run("INSERT INTO t VALUES (2, 'b', 5)")
    profile = database.profile()
    with pytest.raises(lockgate.SchemaMismatchError, match='needs a value in column "must"'):
        write(place, profile, ROWS, "t", "APPEND")
    assert counts(write(place, profile, ROWS.slice(0, 1), "t", "UPSERT", ["id"], run="r2")) == (0, 1, 0)
    with pytest.raises(lockgate.PublishError, match=r'"must".*23502'):
        write(place, profile, ROWS, "t", "UPSERT", ["id"], run="r3")
    assert database.run("SELECT * FROM t") == [(2, "B", 5)]


def test_a_broken_unique_index_leaves_the_table_as_it_was(place: Path, database) -> None:
    database.run("CREATE TABLE t (id int PRIMARY KEY, name text)")
    database.run("INSERT INTO t VALUES (3, 'c')")
    with pytest.raises(lockgate.PublishError, match=r"Key \(id\)=\(3\) already exists.*23505") as caught:
        write(place, database.profile(), ROWS, "t", "APPEND")
    assert caught.value.exit_code == 1
    assert "MODE UPSERT" in caught.value.hint
    assert database.run("SELECT * FROM t") == [(3, "c")]
    assert list((place / ".lockgate").glob("staging/*")) == []


def test_a_view_is_no_table(place: Path, database) -> None:
    database.run("CREATE VIEW v AS SELECT 1 AS id, 'x' AS name")
    with pytest.raises(lockgate.StageError, match="is a view"):
        write(place, database.profile(), ROWS, "v")


def test_a_lock_that_somebody_holds_is_waited_for_no_longer_than_asked(place: Path, database) -> None:
    import psycopg

    database.run("CREATE TABLE t (id int, name text)")
    with psycopg.connect(database.url) as other:
        other.execute("LOCK TABLE t")
        with pytest.raises(lockgate.PublishError, match="55P03"):
            write(place, database.profile(), ROWS, "t", lock_timeout=1)
    write(place, database.profile(), ROWS, "t", run="r2", lock_timeout=1)


def test_least_privilege(place: Path, database) -> None:
    """The GRANTs of the page, and nothing else."""
    page = (Path(__file__).parents[3] / "docs/destinations/postgres.md").read_text()
    grants = [line for line in page.split("## Grants")[1].split("```")[1].splitlines() if line.startswith("GRANT")]
    assert len(grants) == 3
    name = database.url.rpartition("/")[2].partition("?")[0]
    role = f"loader_{name}"
    database.run(f'CREATE ROLE "{role}" LOGIN')
    database.run(f'REVOKE ALL ON DATABASE "{name}" FROM PUBLIC')
    database.run("REVOKE ALL ON SCHEMA public FROM PUBLIC")
    database.run("CREATE TABLE public.daily (id int PRIMARY KEY, name text)")
    database.run("CREATE TABLE public.other (id int, name text)")
    profile = database.profile(url=url_of(name, user=role))
    try:
        with pytest.raises(lockgate.StageError, match=r"CONNECT|permission denied"):
            write(place, profile, ROWS, "public.daily", run="no")
        for grant in grants:
            database.run(grant.replace("loader", f'"{role}"').replace("warehouse", f'"{name}"'))
        for mode in ("REPLACE", *KEYED_MODES):
            write(place, profile, ROWS, "public.daily", mode, ["id"] if mode in KEYED_MODES else [], run=f"1{mode}")
        write(place, profile, ROWS.slice(0, 0), "public.daily", "APPEND", run="1a")
        write(place, profile, ROWS, "public.daily", replace="truncate", run="1t")
        database.run("ALTER TABLE daily DROP CONSTRAINT daily_pkey")
        for mode in ("REPLACE", "APPEND", *KEYED_MODES):
            write(place, profile, ROWS, "public.daily", mode, ["id"] if mode in KEYED_MODES else [], run=f"2{mode}")
        with pytest.raises(lockgate.StageError, match="lacks INSERT") as caught:
            write(place, profile, ROWS, "public.other", "APPEND", run="3")
        assert caught.value.hint == f'GRANT INSERT ON "public"."other" TO "{role}"'
        with pytest.raises(lockgate.StageError, match="lacks CREATE"):
            write(place, profile, ROWS, "public.new", run="4")
    finally:
        database.run(f'DROP OWNED BY "{role}"')
        database.run(f'DROP ROLE "{role}"')


def test_a_password_is_never_told(place: Path, database) -> None:
    secret = "hunter2-ä@/x"
    url = "postgresql://nobody@127.0.0.1:1/db"
    with pytest.raises(lockgate.StageError) as caught:
        write(place, database.profile(url=url, password=secret), ROWS, "t")
    assert caught.value.exit_code == 1
    told = caught.value.render() + repr(caught.value.__cause__) + str(caught.value.__cause__)
    assert "hunter2" not in told
    assert "127.0.0.1" in told
    assert not any(b"hunter2" in p.read_bytes() for p in place.rglob("*") if p.is_file())
