"""Values of every type go into the table as they are, or are refused by column and value."""

from __future__ import annotations

import datetime as dt
import uuid
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

import lockgate
from support.postgres_runs import postgres_run, to_table, write

UTC = dt.UTC
DAY, MOMENT = dt.date(2026, 1, 31), dt.datetime(2026, 1, 31, 12, 30, 0, 123456)
MOMENT_UTC = MOMENT.replace(tzinfo=UTC)
NUMBER = uuid.UUID("123e4567-e89b-12d3-a456-426614174000")
FITS = [
    ("smallint", pa.array([-32768, None]), [-32768, None]),
    ("integer", pa.array([2**31 - 1, None], pa.int64()), [2**31 - 1, None]),
    ("bigint", pa.array([7, None], pa.int8()), [7, None]),
    ("real", pa.array([1.5, None]), [1.5, None]),
    ("double precision", pa.array([2**53, None]), [float(2**53), None]),
    ("numeric", pa.array([0.1, None]), [Decimal("0.1"), None]),
    ("numeric", pa.array([2**62, None]), [Decimal(2**62), None]),
    ("numeric(10,2)", pa.array([Decimal("12.300"), None], pa.decimal128(20, 3)), [Decimal("12.30"), None]),
    ("numeric(50,10)", pa.array([Decimal("-1.5"), None]), [Decimal("-1.5"), None]),
    ("boolean", pa.array([True, None]), [True, None]),
    ("text", pa.array(["ä'\"\\\n", ""]), ["ä'\"\\\n", ""]),
    ("varchar(3)", pa.array(["äöü", None]), ["äöü", None]),
    ("char(3)", pa.array(["ab", None]), ["ab ", None]),
    ("bytea", pa.array([b"\0\xff", None]), [b"\0\xff", None]),
    ("date", pa.array([DAY, dt.date(1, 1, 1)]), [DAY, dt.date(1, 1, 1)]),
    ("timestamp", pa.array([MOMENT, dt.datetime(9999, 12, 31)]), [MOMENT, dt.datetime(9999, 12, 31)]),
    ("timestamptz", pa.array([MOMENT_UTC, None], pa.timestamp("us", "UTC")), [MOMENT_UTC, None]),
    ("time", pa.array([dt.time(1, 2, 3, 4), None]), [dt.time(1, 2, 3, 4), None]),
    ("uuid", pa.array([str(NUMBER), None]), [NUMBER, None]),
    ("json", pa.array(['{"b": 1, "a": 2}', None]), [{"b": 1, "a": 2}, None]),
    ("jsonb", pa.array(['[1, "x"]', None]), [[1, "x"], None]),
    ("mood", pa.array(["so so", None]), ["so so", None]),
    ("positive", pa.array([5, None]), [5, None]),
    ("inet", pa.array(["10.0.0.1", None]), None),
    ("int4range", pa.array(["[1,5)", None]), None),
    ("integer[]", pa.array([[1, None], []], pa.list_(pa.int64())), [[1, None], []]),
    ("text[]", pa.array([["a,b", None], None]), [["a,b", None], None]),
    ("numeric(5,1)[]", pa.array([[Decimal("1.5")], None], pa.list_(pa.decimal128(10, 2))), [[Decimal("1.5")], None]),
    ("uuid[]", pa.array([[str(NUMBER)], None]), [[NUMBER], None]),
    ("mood[]", pa.array([["ok"], None]), None),
    ("timestamptz[]", pa.array([[MOMENT_UTC], None], pa.list_(pa.timestamp("us", "UTC"))), [[MOMENT_UTC], None]),
]  # fmt: skip
NEVER = [
    ("smallint", pa.array([1, 40000]), "40000 in row 1"),
    ("integer", pa.array([1.0, 2.5]), "2.5 in row 1"),
    ("real", pa.array([0.5, 0.1]), "0.1 in row 1"),
    ("double precision", pa.array([1, 2**53 + 1]), "9007199254740993 in row 1"),
    ("numeric(4,1)", pa.array([Decimal("1.25")]), "1.25"),
    ("numeric(4,1)", pa.array([12345]), "12345 in row 0"),
    ("varchar(3)", pa.array(["abc", "abcd"]), "'abcd' in row 1 is too long"),
    ("varchar(3)", pa.array(["abc   "]), "too long"),  # PostgreSQL itself would cut the spaces
    ("text", pa.array(["a", "b\0"]), "NUL"),
    ("text[]", pa.array([["a"], ["b\0"]]), "row 1.*NUL"),
    ("uuid", pa.array(["nope"]), "'nope' in row 0 is no uuid"),
    ("mood", pa.array(["ok", "bad"]), "'bad' in row 1 is no value of mood"),
    ("integer", pa.array(["1"]), "never turned into the other"),
    ("text", pa.array([1]), "never turned into the other"),
    ("date", pa.array([MOMENT]), "without loss"),
    ("timestamp(3)", pa.array([MOMENT]), "has more digits than"),
    ("timestamp", pa.array([MOMENT], pa.timestamp("us", "UTC")), "never turned into the other"),
    ("timestamptz", pa.array([MOMENT]), "never turned into the other"),
    ("jsonb", pa.array([{"a": 1}]), "never turned into the other"),
    ("integer[]", pa.array([[[1]]]), "never turned into the other"),
    ("integer NOT NULL", pa.array([1, None]), "is NULL in row 1"),
]  # fmt: skip
TYPES = (
    "CREATE TYPE mood AS ENUM ('ok', 'so so')",
    "CREATE DOMAIN positive AS int CHECK (VALUE > 0)",
)


def test_values_that_fit(place: Path, database) -> None:
    for statement in TYPES:
        database.run(statement)
    database.run(f"CREATE TABLE t (n int, {', '.join(f'v{i} {kind}' for i, (kind, _, _) in enumerate(FITS))})")
    source = pa.table({"n": [0, 1], **{f"v{i}": values for i, (_, values, _) in enumerate(FITS)}})
    write(place, database.profile(), source, "t", "APPEND")
    for number, (kind, values, expected) in enumerate(FITS):
        found = [row[0] for row in database.run(f"SELECT v{number} FROM t ORDER BY n")]
        assert found == expected or expected is None, kind
        assert (found[1] is None) == (not values[1].is_valid), kind


def test_values_that_do_not_fit(place: Path, database) -> None:
    for statement in TYPES:
        database.run(statement)
    for number, (kind, values, said) in enumerate(NEVER):
        database.run("DROP TABLE IF EXISTS t")
        database.run(f"CREATE TABLE t (v {kind})")
        with pytest.raises(lockgate.SchemaMismatchError, match=f'column "v".*{said}'):
            write(place, database.profile(), pa.table({"v": values}), "t", "APPEND", run=f"a{number}")
        assert database.run("SELECT * FROM t") == [], kind


@pytest.mark.parametrize(
    ("kind", "value", "said"),
    [
        ("jsonb", "{nope", "column \"v\", which is jsonb: '{nope' does not fit.*22P02"),
        ("json", '{"a":', 'column "v", which is json.*22P02'),
        ("inet", "10.0.0.999", 'column "v", which is inet.*22P02'),
        ("int4range", "[2,1)", 'column "v", which is int4range.*22000'),
        ("jsonb[]", ["1", "{nope"], "22P02"),
        ("address", "10.0.0.1", 'column "v", which is address'),
    ],
)
def test_what_the_server_alone_can_read_is_refused_before_anything_is_published(
    place: Path, database, kind: str, value: object, said: str
) -> None:
    database.run("CREATE DOMAIN address AS inet CHECK (family(VALUE) = 6)")
    database.run("CREATE TABLE first (v int)")
    database.run(f"CREATE TABLE t (v {kind}, w text)")
    exports = [
        (to_table("first", "APPEND"), pa.table({"v": [1]})),
        (to_table("t", "APPEND"), pa.table({"v": [None, value], "w": ["a", "b"]})),
    ]
    with pytest.raises(lockgate.SchemaMismatchError, match=said):
        postgres_run(place, database.profile(), exports).execute()
    assert database.run("SELECT * FROM first") == []
    assert database.run("SELECT relname FROM pg_class WHERE relname LIKE 'lockgate%'") == []


def test_what_only_the_table_can_refuse_changes_nothing(place: Path, database) -> None:
    for statement in TYPES:
        database.run(statement)
    database.run("CREATE TABLE t (v positive)")
    with pytest.raises(lockgate.PublishError, match="23514") as caught:
        write(place, database.profile(), pa.table({"v": [None, -1]}), "t", "REPLACE")
    assert caught.value.exit_code == 1
    assert database.run("SELECT * FROM t") == []


def test_a_new_table_has_the_types_of_the_rows(place: Path, database) -> None:
    source = pa.table({
        "i": pa.array([1], pa.int32()),
        "d": pa.array([Decimal("1.50")], pa.decimal128(12, 2)),
        "t": pa.array([MOMENT], pa.timestamp("us", "UTC")),
        "n": pa.array([MOMENT]),
        "l": pa.array([["x"]]),
        "b": pa.array([b"x"]),
        "f": pa.array([1.5], pa.float32()),
    })  # fmt: skip
    write(place, database.profile(), source, "t")
    columns = (
        "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute "
        "WHERE attrelid = 't'::regclass AND attnum > 0"
    )
    assert dict(database.run(columns)) == {
        "i": "integer",
        "d": "numeric(12,2)",
        "t": "timestamp with time zone",
        "n": "timestamp without time zone",
        "l": "text[]",
        "b": "bytea",
        "f": "real",
    }
    with pytest.raises(lockgate.SchemaMismatchError, match=r"to_json|no counterpart"):
        write(place, database.profile(), pa.table({"s": [{"a": 1}]}), "u", run="r2")
