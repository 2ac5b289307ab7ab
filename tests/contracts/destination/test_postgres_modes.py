"""Every mode into a table with and without a unique index on the keys: the same rows and the same counts."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import lockgate
from lockgate.modes import KEYED_MODES
from support.postgres_runs import counts, write

INDEXES = {
    "none": "",
    "unique": "CREATE UNIQUE INDEX ON t (id)",
    "partial": "CREATE UNIQUE INDEX ON t (id) WHERE id > 0",
    "of an expression": "CREATE UNIQUE INDEX ON t (abs(id))",
    "deferrable": "ALTER TABLE t ADD UNIQUE (id) DEFERRABLE INITIALLY DEFERRED",
    "of more columns": "CREATE UNIQUE INDEX ON t (id, name)",
    "including": "CREATE UNIQUE INDEX ON t (id) INCLUDE (name)",
    "not unique": "CREATE INDEX ON t (id)",
}
SOURCE = pa.table({"name": ["B", "C"], "id": [2, 3]})  # not in the table's order
EXPECTED = {
    "UPSERT": ([(None, "n", 7), (1, "a", 7), (2, "B", 7), (3, "C", 0)], (1, 1, 0)),
    "DEDUPLICATE": ([(None, "n", 7), (1, "a", 7), (2, "B", 7), (3, "C", 0)], (1, 1, 0)),
    "INSERT": ([(None, "n", 7), (1, "a", 7), (2, "b", 7), (3, "C", 0)], (1, 0, 0)),
    "UPDATE": ([(None, "n", 7), (1, "a", 7), (2, "B", 7)], (0, 1, 0)),
    "FULL_MERGE": ([(2, "B", 7), (3, "C", 0)], (1, 1, 2)),
}


def rows(database, table: str = "t") -> list[tuple]:
    return database.run(f"SELECT id, name, extra FROM {table} ORDER BY id NULLS FIRST, name, extra")


# Of the indexes that ON CONFLICT cannot use, the modes that would use them; every other pair is one for `make soak`.
ALWAYS = [(i, m) for i in INDEXES for m in KEYED_MODES if i in ("none", "unique") or m in ("UPSERT", "INSERT")]
RARELY = [(i, m) for i in INDEXES for m in KEYED_MODES if (i, m) not in ALWAYS]


@pytest.mark.parametrize(
    ("index", "mode"), [*ALWAYS, *(pytest.param(*each, marks=pytest.mark.slow) for each in RARELY)]
)
def test_keyed_modes(place: Path, database, index: str, mode: str) -> None:
    """A column that the source lacks keeps its value in matched rows, and takes its default in new ones."""
    database.run("CREATE TABLE t (id int, name text, extra int DEFAULT 0)")
    database.run("INSERT INTO t VALUES (1, 'a', 7), (2, 'b', 7), (NULL, 'n', 7)")
    if INDEXES[index]:
        database.run(INDEXES[index])
    result = write(place, database.profile(), SOURCE, "public.t", mode, ["id"])
    assert (rows(database), counts(result)) == EXPECTED[mode]
    assert result.status == "published"
    assert list((place / ".lockgate").glob("staging/*")) == []


@pytest.mark.parametrize(
    ("mode", "left", "counted"),
    [
        ("UPSERT", [(1, "a"), (2, "B"), (2, "B"), (3, "C")], (1, 2, 0)),
        ("UPDATE", [(1, "a"), (2, "B"), (2, "B")], (0, 2, 0)),
        ("INSERT", [(1, "a"), (2, "b"), (2, "x"), (3, "C")], (1, 0, 0)),
        ("FULL_MERGE", [(2, "B"), (2, "B"), (3, "C")], (1, 2, 1)),
    ],
)
def test_several_target_rows_with_one_key_each_count(place: Path, database, mode: str, left, counted) -> None:
    database.run("CREATE TABLE t (id int, name text)")
    database.run("INSERT INTO t VALUES (1, 'a'), (2, 'b'), (2, 'x')")
    result = write(place, database.profile(), SOURCE, "t", mode, ["id"])
    assert database.run("SELECT * FROM t ORDER BY 1, 2") == left
    assert counts(result) == counted


def test_append_and_both_ways_to_replace(place: Path, database) -> None:
    database.run("CREATE TABLE t (id int, name text)")
    database.run("INSERT INTO t VALUES (1, 'a')")
    profile = database.profile()
    assert counts(write(place, profile, SOURCE, "t", "APPEND", run="r1")) == (2, 0, 0)
    assert len(database.run("SELECT * FROM t")) == 3
    assert counts(write(place, profile, SOURCE, "t", "REPLACE", run="r2")) == (2, 0, 3)
    assert counts(write(place, profile, SOURCE, "t", "REPLACE", run="r3", replace="truncate")) == (2, 0, None)
    assert database.run("SELECT * FROM t ORDER BY 1") == [(2, "B"), (3, "C")]


@pytest.mark.parametrize("mode", ["REPLACE", "APPEND", *KEYED_MODES])
def test_a_missing_table_is_made_with_the_key_as_its_primary_key(place: Path, database, mode: str) -> None:
    keys = ["id"] if mode in KEYED_MODES else []
    result = write(place, database.profile(), SOURCE, "public.New Table", mode, keys)
    made = database.run("SELECT to_regclass('\"New Table\"')::text")[0][0]
    if mode == "UPDATE":
        assert made is None
        assert counts(result) == (0, 0, 0)
        return
    assert database.run('SELECT id, name FROM "New Table" ORDER BY 1') == [(2, "B"), (3, "C")]
    assert counts(result) == (2, 0, 0)
    primary = database.run("SELECT count(*) FROM pg_index WHERE indisprimary AND indrelid = '\"New Table\"'::regclass")
    assert primary == [(len(keys),)]


@pytest.mark.parametrize("mode", ["REPLACE", "UPSERT"])
def test_a_missing_table_is_not_made_where_create_is_false(place: Path, database, mode: str) -> None:
    keys = ["id"] if mode == "UPSERT" else []
    with pytest.raises(lockgate.StageError, match="has no table t, and the option create is false"):
        write(place, database.profile(), SOURCE, "t", mode, keys, create=False)
    assert database.run("SELECT to_regclass('t')::text") == [(None,)]


def test_an_empty_source(place: Path, database) -> None:
    database.run("CREATE TABLE t (id int PRIMARY KEY, name text)")
    database.run("INSERT INTO t VALUES (1, 'a'), (2, 'b')")
    empty, profile = SOURCE.slice(0, 0), database.profile()
    for mode in ("UPSERT", "UPDATE", "INSERT", "DEDUPLICATE"):
        assert counts(write(place, profile, empty, "t", mode, ["id"], run=mode)) == (0, 0, 0)
    assert counts(write(place, profile, empty, "t", "FULL_MERGE", ["id"], run="f")) == (0, 0, 2)
    assert database.run("SELECT * FROM t") == []


@pytest.mark.parametrize("mode", ["UPSERT", "INSERT", "UPDATE", "FULL_MERGE"])
def test_null_and_repeated_keys_are_refused_before_anything_is_published(place: Path, database, mode: str) -> None:
    database.run("CREATE TABLE t (id float8, name text)")
    with pytest.raises(lockgate.NullKeyError, match='"id" is NULL in 1 of 2'):
        write(place, database.profile(), pa.table({"id": [1.0, None]}), "t", mode, ["id"])
    for pair in ([0.0, -0.0], [float("nan")] * 2, [4.0, 4.0]):
        with pytest.raises(lockgate.DuplicateKeyError, match="1 of 2 source rows repeats a key"):
            write(place, database.profile(), pa.table({"id": pair}), "t", mode, ["id"], run=str(pair))
    assert database.run("SELECT * FROM t") == []


@pytest.mark.parametrize("index", [True, False])
def test_nan_and_negative_zero_match(place: Path, database, index: bool) -> None:
    database.run(f"CREATE TABLE t (id float8 {'PRIMARY KEY' if index else ''}, name text)")
    database.run("INSERT INTO t VALUES ('NaN', 'a'), (0.0, 'b')")
    source = pa.table({"id": [float("nan"), -0.0], "name": ["A", "B"]})
    assert counts(write(place, database.profile(), source, "t", "UPSERT", ["id"])) == (0, 2, 0)
    # The whole row is replaced, and so the sign of the zero.
    assert database.run("SELECT id::text, name FROM t ORDER BY name") == [("NaN", "A"), ("-0", "B")]


@pytest.mark.parametrize("mode", ["UPSERT", "UPDATE", "INSERT", "FULL_MERGE"])
@pytest.mark.parametrize("index", [True, False])
def test_keys_that_the_table_alone_takes_for_one_are_refused_too(place: Path, database, mode: str, index: bool) -> None:
    """Two spellings of one uuid."""
    one, other = "123e4567-e89b-12d3-a456-426614174000", "123E4567-E89B-12D3-A456-426614174000"
    database.run(f"CREATE TABLE t (id uuid {'UNIQUE' if index else ''}, name text)")
    database.run("INSERT INTO t VALUES (%s, 'old')", one)
    source = pa.table({"id": [one, other], "name": ["1", "2"]})
    with pytest.raises(lockgate.PublishError, match=f"repeat a key.*id={one}") as caught:
        write(place, database.profile(), source, "t", mode, ["id"])
    assert isinstance(caught.value.__cause__, lockgate.DuplicateKeyError)
    assert database.run("SELECT name FROM t") == [("old",)]


@pytest.mark.parametrize("index", [True, False])
@pytest.mark.parametrize(
    ("order_by", "stays"),
    [
        ((), {1: "last", 2: "only"}),
        (("at DESC",), {1: "new", 2: "only"}),
        (("at",), {1: "unknown", 2: "only"}),  # NULLs first, as in Spark
        (("at ASC NULLS LAST",), {1: "last", 2: "only"}),
        (("text",), {1: "unknown", 2: "only"}),  # 'Z' before 'a': by bytes, whatever the database's language
    ],
)
def test_deduplicate(place: Path, database, index: bool, order_by: tuple[str, ...], stays: dict) -> None:
    database.run(f"CREATE TABLE t (id int {'PRIMARY KEY' if index else ''}, at float8, text text, name text)")
    database.run("INSERT INTO t VALUES (1, 0, '', 'old')")
    source = pa.table({
        "id": [1, 1, 2, 1, 1],
        "at": [5.0, None, 1.0, 2.0, 2.0],
        "text": ["b", "Z", "c", "a", "a"],
        "name": ["new", "unknown", "only", "tie", "last"],
    })  # fmt: skip
    result = write(place, database.profile(), source, "t", "DEDUPLICATE", ["id"], order_by=order_by)
    assert dict(database.run("SELECT id, name FROM t")) == stays
    assert counts(result) == (1, 1, 0)
    assert result.rows == 5


def test_keys_of_several_columns_and_nothing_but_keys(place: Path, database) -> None:
    database.run("CREATE TABLE t (b text, a int, UNIQUE (b, a))")
    database.run("INSERT INTO t VALUES ('x', 1)")
    source = pa.table({"a": [1, 1], "b": ["x", "y"]})
    assert counts(write(place, database.profile(), source, "t", "UPSERT", ["a", "b"])) == (1, 1, 0)
    assert database.run("SELECT * FROM t ORDER BY 1") == [("x", 1), ("y", 1)]


def test_what_is_settled_in_one_transaction_leaves_the_session_as_it_was(place: Path, database) -> None:
    """No staging table, no setting and no lock is left; nothing but the export's own row changes."""
    write(place, database.profile(), SOURCE, "t", "UPSERT", ["id"], lock_timeout=3, statement_timeout=60)
    assert database.run("SELECT relname FROM pg_class WHERE relname LIKE 'lockgate%'") == []


@pytest.mark.parametrize("mode", ["APPEND", "UPSERT", "DEDUPLICATE", "REPLACE"])
def test_parallel_staging(place: Path, database, mode: str) -> None:
    database.run("CREATE SCHEMA scratch")
    database.run("CREATE TABLE t (id int, name text)")
    database.run("INSERT INTO t VALUES (2, 'b')")
    options = {"parallel": 3, "staging_schema": "scratch"}
    keys = ["id"] if mode in KEYED_MODES else []
    result = write(place, database.profile(), SOURCE, "t", mode, keys, **options)
    expected = {"APPEND": (2, 0, 0), "REPLACE": (2, 0, 1)}.get(mode, (1, 1, 0))
    assert counts(result) == expected
    assert database.run("SELECT relname FROM pg_class WHERE relname LIKE 'lockgate%'") == []
