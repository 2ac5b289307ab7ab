"""`diff` of two versions, and the change data of some."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lockgate
from support.care import ids, rows


def told(table: pa.Table) -> list[tuple[Any, ...]]:
    return sorted((tuple(r.values()) for r in table.to_pylist()), key=repr)


def test_rows_are_added_removed_and_changed(orders: lockgate.Table) -> None:
    orders.merge(rows((1, "again", "d1"), (7, "new", "d0")), strategy="full_merge", key_columns="id")
    found = orders.diff(4, 5, "id")
    assert told(found.added) == [(7, "new", "d0")]
    assert told(found.removed) == [(2, "v2", "d0"), (3, "v3", "d1")]
    assert (told(found.before), told(found.after)) == ([(1, "changed", "d1")], [(1, "again", "d1")])
    back = orders.diff(5, 4, ["id"])
    assert told(back.added) == told(found.removed)
    assert told(back.removed) == told(found.added)
    assert told(back.before) == told(found.after)
    kinds = Counter(found.to_arrow().column("_change_type").to_pylist())
    assert kinds == {"delete": 2, "insert": 1, "update_preimage": 1, "update_postimage": 1}


def test_rows_that_were_only_written_again_are_no_difference(orders: lockgate.Table) -> None:
    orders.compact()
    orders.overwrite(orders.to_arrow())
    found = orders.diff(4, orders.version, "id")
    assert (found.added.num_rows, found.removed.num_rows, found.changed) == (0, 0, 0)


def test_files_of_both_versions_are_not_read(orders: lockgate.Table) -> None:
    for row in orders.at(version=3).files().to_pylist():
        if row["path"].startswith("day=d0"):
            Path(orders.location, row["path"]).unlink()
    found = orders.diff(3, 4, "id")
    assert (found.changed, found.files_read) == (1, 2)


def test_a_new_column_and_nested_and_odd_values(make: Callable[..., lockgate.Table]) -> None:
    schema = pa.schema(
        {"id": pa.int64(), "f": pa.float64(), "l": pa.list_(pa.int64()), "s": pa.struct({"a": pa.float64()})}
    )
    table = make(schema=schema)
    nan = float("nan")
    table.append(
        pa.Table.from_pylist(
            [{"id": 1, "f": nan, "l": [1], "s": {"a": nan}}, {"id": None, "f": -0.0, "l": None, "s": None}], schema
        )
    )
    table.overwrite(
        pa.Table.from_pylist(
            [{"id": None, "f": 0.0, "l": None, "s": None}, {"id": 1, "f": nan, "l": [1], "s": {"a": nan}}], schema
        )
    )
    found = table.diff(1, 2, "id")
    assert (found.added.num_rows, found.removed.num_rows, found.changed) == (0, 0, 0)
    more = pa.schema([*schema, pa.field("y", pa.string())])
    table.overwrite(
        pa.Table.from_pylist([{"id": 1, "f": nan, "l": [1, 2], "s": {"a": nan}, "y": "y"}], more), schema="evolve"
    )
    found = table.diff(2, 3, "id")
    assert (found.removed.num_rows, found.changed) == (1, 1)
    assert found.before.to_pylist()[0]["y"] is None
    assert found.after.to_pylist()[0]["l"] == [1, 2]


def test_a_key_that_is_there_several_times_counts_several_times(make: Callable[..., lockgate.Table]) -> None:
    table = make()
    table.append(rows((1, "a", None), (1, "a", None), (1, "b", None)))
    table.overwrite(rows((1, "a", None), (1, "c", None)))
    found = table.diff(1, 2, "id")
    assert told(found.removed) + told(found.before) in (
        [(1, "a", None), (1, "b", None)],
        [(1, "b", None), (1, "a", None)],
    )
    assert told(found.after) == [(1, "c", None)]


def test_a_wrong_key_or_version_is_refused(orders: lockgate.Table) -> None:
    with pytest.raises(lockgate.SchemaMismatchError):
        orders.diff(1, 2, "nope")
    with pytest.raises(lockgate.TableNotFound):
        orders.diff(1, 99, "id")
    with pytest.raises(lockgate.TableNotFound, match="0 to 4"):
        orders.changes(3, 99)
    with pytest.raises(lockgate.TableNotFound):
        orders.changes(3, 2)


def test_changes_say_what_each_version_did(orders: lockgate.Table) -> None:
    orders.compact()
    orders.merge(rows((7, "new", "d0")), strategy="full_merge", key_columns="id")
    found = orders.changes(3, key_columns="id").to_pylist()
    said = [(r["_commit_version"], r["_change_type"], r["id"], r["x"]) for r in found]
    assert sorted(said) == [
        (3, "insert", 3, "v3"),
        (4, "update_postimage", 1, "changed"),
        (4, "update_preimage", 1, "v1"),
        (6, "delete", 1, "changed"), (6, "delete", 2, "v2"), (6, "delete", 3, "v3"), (6, "insert", 7, "new"),
    ]  # fmt: skip
    times = {h.version: h.time for h in orders.history()}
    assert all(r["_commit_timestamp"] == times[r["_commit_version"]] for r in found)
    assert {r["_change_type"] for r in orders.changes(4, 4).to_pylist()} == {"delete", "insert"}
    assert orders.changes(5, 5).num_rows == 0


def test_changes_replayed_give_the_newest_rows(make: Callable[..., lockgate.Table]) -> None:
    """Against a model: whatever is done, the changes from the first version on add up to the table."""
    random.seed(7)
    table = make(partition_by="day")
    for step in range(12):
        some = rows(*((i, f"s{step}", f"d{i % 2}") for i in random.sample(range(12), 4)))
        strategy = random.choice(["upsert", "insert", "update", "full_merge"])
        table.merge(some, strategy=strategy, key_columns="id")
        if step == 6:
            table.compact()
            table.restore(version=3)
    state: Counter[tuple[Any, ...]] = Counter()
    for row in table.changes(0, key_columns="id").to_pylist():
        gone = row["_change_type"] in ("delete", "update_preimage")
        state[row["id"], row["x"], row["day"]] += -1 if gone else 1
    assert +state == Counter(tuple(r.values()) for r in table.to_arrow().select(["id", "x", "day"]).to_pylist())
    assert min(state.values()) >= 0


def test_a_column_that_change_data_has_itself_is_refused(make: Callable[..., lockgate.Table]) -> None:
    table = make(schema=pa.schema({"_change_type": pa.string()}))
    with pytest.raises(lockgate.ArgumentError, match="_change_type"):
        table.changes(0)
    assert ids(make("other")) == []
