"""NOT NULL and CHECK constraints on every way in, and columns and properties that change."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import date

import pyarrow as pa
import pytest

import lockgate
from support.care import SCHEMA, elsewhere, ids, rows


@pytest.fixture
def checked(orders: lockgate.Table) -> lockgate.Table:
    orders.add_constraint("positive", "id > 0 AND x <> 'bad'")
    return orders


def test_a_constraint_is_for_every_write(checked: lockgate.Table) -> None:
    assert checked.version == 5
    for write in (
        lambda: checked.append(rows((-1, "v", "d1"))),
        lambda: checked.overwrite(rows((1, "bad", None))),
        lambda: checked.merge(rows((0, "v", "d1")), strategy="upsert", key_columns="id"),
        lambda: checked.append(rows((4, None, "d1"))),  # NULL breaks it as well
    ):
        with pytest.raises(lockgate.ConstraintError, match="breaks the constraint positive") as caught:
            write()
        assert len(caught.value.rows) == 1
    assert checked.version == 5
    checked.append(rows((4, "good", "d1")))
    assert ids(elsewhere(checked)) == [1, 2, 3, 4]


def test_the_rows_are_shown_up_to_five(checked: lockgate.Table) -> None:
    with pytest.raises(lockgate.ConstraintError, match=r"7 rows break .* and 2 more") as caught:
        checked.append(rows(*((-i, "v", "d1") for i in range(7)), (5, "v", "d1")))
    assert [r["id"] for r in caught.value.rows] == [0, -1, -2, -3, -4]
    assert caught.value.rows[0] == {"id": 0, "x": "v", "day": "d1"}


def test_rows_that_are_there_are_checked_first(orders: lockgate.Table) -> None:
    with pytest.raises(lockgate.ConstraintError, match="3 rows break"):
        orders.add_constraint("large", "id > 100")
    with pytest.raises(lockgate.ConstraintError, match="day"):
        orders.add_constraint("days", "day = 'd1'")  # of a partition column
    assert orders.version == 4
    assert "delta.constraints.large" not in orders.properties


def test_rows_that_come_meanwhile_are_checked_too(orders: lockgate.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    from lockgate.tables import constraints

    real, done = constraints.require_true, []

    def late(*args: object) -> None:
        real(*args)  # type: ignore[arg-type]
        if not done:
            done.append(orders.append(rows((-5, "late", "d1"))))

    monkeypatch.setattr(constraints, "require_true", late)
    with pytest.raises(lockgate.ConstraintError, match="late"):
        orders.add_constraint("positive", "id > 0")


def test_a_write_that_was_ready_before_the_constraint_is_checked(
    orders: lockgate.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    from lockgate.targets.delta import DeltaTarget

    real, done = DeltaTarget.commit_of, []

    def late(self: DeltaTarget, *args: object) -> object:
        commit = real(self, *args)  # type: ignore[arg-type]
        if not done:
            done.append(orders.add_constraint("positive", "id > 0"))
        return commit

    monkeypatch.setattr(DeltaTarget, "commit_of", late)
    with pytest.raises(lockgate.ConstraintError):
        orders.append(rows((-1, "v", "d1")))
    assert ids(orders) == [1, 2, 3]


def test_a_constraint_can_go_and_come_back_with_restore(checked: lockgate.Table) -> None:
    assert checked.drop_constraint("POSITIVE") == 6
    checked.append(rows((-1, "bad", "d1")))
    checked.restore(version=5)
    with pytest.raises(lockgate.ConstraintError):
        checked.append(rows((-1, "bad", "d1")))
    with pytest.raises(lockgate.ArgumentError, match="no constraint"):
        checked.drop_constraint("nope")
    with pytest.raises(lockgate.ArgumentError, match="already"):
        checked.add_constraint("positive", "id > 1")


@pytest.mark.parametrize(
    "sql",
    [
        "id >", "rand() < 2", "id / 2 > 1", "nope > 1", "id", "x > 5", "x RLIKE 'a'", "id IN (SELECT 1)",
        "x LIKE 'a\\\\_'",
        "1; DROP TABLE t", "CAST(x AS INT) > 1", "x < DATE '2020-13-01'",
    ],
)  # fmt: skip
def test_what_cannot_be_evaluated_is_refused(make: Callable[..., lockgate.Table], sql: str) -> None:
    table = make()
    with pytest.raises(lockgate.ConstraintError, match="cannot be"):
        table.add_constraint("odd", sql)
    assert table.version == 0


@pytest.mark.parametrize(
    ("sql", "kept", "broken"),
    [
        ("i BETWEEN 1 AND 3", 3, 4), ("i IN (1, 2)", 2, 3), ("NOT (i = 1)", 2, 1), ("i + 1 < 3 OR i * 2 = 10", 5, 3),
        ("i IS NULL OR i >= -1", None, -2), ("coalesce(i, 7) = 7", None, 1), ("I <> 1", 2, None), ("-i < 0", 1, -1),
        ("i <=> 5", 5, None),
        ("s LIKE 'a%c'", "abbc", "ab"), ("length(s) <= 2", "äö", "abc"), ("upper(s) = 'A'", "a", "b"),
        ("s >= 'b' AND s IS NOT NULL", "b", "a"),
        ("f > 1.5", float("nan"), 1.5), ("NOT (f > 1.5)", 1.5, float("nan")), ("f = f", float("nan"), None),
        ("f >= 0", -0.0, -1e-9),
        ("d >= '2024-01-01'", date(2024, 1, 1), date(2023, 12, 31)),
        ("d < DATE '2024-01-01'", date(2023, 1, 1), date(2024, 1, 1)),
        ("b", True, False), ("NOT b", False, None),
    ],
)  # fmt: skip
def test_conditions_mean_what_spark_means(sql: str, kept: object, broken: object) -> None:
    from lockgate.targets.delta_rules import _broken, check_rule

    kinds = {"i": pa.int32(), "s": pa.string(), "f": pa.float64(), "d": pa.date32(), "b": pa.bool_()}
    rule = check_rule("c", sql, pa.schema(kinds))
    column = rule.columns[0]
    table = pa.table({n: pa.array([kept, broken] if n == column else [None, None], k) for n, k in kinds.items()})
    found = _broken(table, rule)
    assert [repr(v) for v in found.column(column).to_pylist()] == [repr(broken)]


def test_not_null_is_enforced(make: Callable[..., lockgate.Table]) -> None:
    schema = pa.schema(
        [SCHEMA.field("id").with_nullable(False), SCHEMA.field("x"), SCHEMA.field("day").with_nullable(False)]
    )
    table = make(schema=schema, partition_by="day")
    table.append(rows((1, None, "d")))
    for wrong in (rows((None, "a", "d")), rows((1, "a", None)), rows((1, "a", "d"), (None, "b", "d"))):  # type: ignore[arg-type]
        for write in (table.append, table.overwrite):
            with pytest.raises(lockgate.MergeError, match="NULL"):
                write(wrong)
    assert (table.version, ids(table)) == (1, [1])


def test_an_invariant_of_another_writer_is_enforced(make: Callable[..., lockgate.Table]) -> None:
    table = make()
    _, metadata = table._log.metadata("orders")
    schema = json.loads(metadata.schema_string)
    schema["fields"][0]["metadata"] = {"delta.invariants": json.dumps({"expression": {"expression": "id < 10"}})}
    from dataclasses import replace

    table._log.commit("orders", None, [replace(metadata, schema_string=json.dumps(schema))])
    table.append(rows((9, "a", None)))
    with pytest.raises(lockgate.ConstraintError, match="invariant"):
        table.append(rows((10, "a", None)))


def test_a_column_is_added(orders: lockgate.Table) -> None:
    assert orders.add_column("note", pa.timestamp("us")) == 5
    assert orders.schema.field("note").type == pa.timestamp("us")
    assert orders.to_arrow().column("note").null_count == 3
    orders.append([{"id": 9, "x": "n", "day": "d1", "note": None}])
    assert ids(orders) == [1, 2, 3, 9]
    with pytest.raises(lockgate.SchemaMismatchError, match="already"):
        orders.add_column("ID", pa.string())


def test_columns_widen_only_where_no_file_has_them(make: Callable[..., lockgate.Table]) -> None:
    table = make(schema=pa.schema({"n": pa.int32()}))
    assert table.widen_column("n", pa.int64()) == 1
    assert table.schema.field("n").type == pa.int64()
    with pytest.raises(lockgate.SchemaMismatchError, match="does not hold"):
        table.widen_column("n", pa.int8())
    table = make("full", schema=pa.schema({"n": pa.int32()}))
    table.append([{"n": 1}])
    with pytest.raises(lockgate.SchemaMismatchError, match="typeWidening"):
        table.widen_column("n", pa.int64())


def test_rename_and_drop_name_the_feature_that_they_need(orders: lockgate.Table) -> None:
    with pytest.raises(lockgate.SchemaMismatchError, match="columnMapping"):
        orders.rename_column("x", "y")
    with pytest.raises(lockgate.SchemaMismatchError, match="columnMapping"):
        orders.drop_column("x")
    with pytest.raises(lockgate.SchemaMismatchError, match="no column"):
        orders.drop_column("nope")


def test_properties_are_set_and_removed(orders: lockgate.Table) -> None:
    assert orders.set_properties({"owner": "sales", "delta.appendOnly": "true"}) == 5
    assert orders.properties == {"owner": "sales", "delta.appendOnly": "true"}
    with pytest.raises(lockgate.ValidationError, match="append-only"):
        orders.overwrite(rows((1, "a", None)))
    assert orders.set_properties({"delta.appendOnly": None}) == 6
    assert orders.set_properties({"owner": "sales"}) == 6
    for wrong in ("delta.columnMapping.mode", "delta.constraints.c", "delta.enableDeletionVectors"):
        with pytest.raises(lockgate.ArgumentError):
            orders.set_properties({wrong: "x"})
