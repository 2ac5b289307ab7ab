"""`compact` and `analyze`: the same rows in other files."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lockgate
from lockgate.tables import compacting
from support.care import elsewhere, ids, rows


def published(table: lockgate.Table, version: int) -> list[dict]:
    text = Path(table.location, "_delta_log", f"{version:020}.json").read_text()
    return [json.loads(line) for line in text.splitlines()]


def test_small_files_of_a_partition_become_one(orders: lockgate.Table) -> None:
    before = orders.to_arrow().sort_by("id")
    done = orders.compact()
    assert (done.files_removed, done.files_added, done.rows, done.partitions) == (2, 1, 2, 1)
    assert orders.files().num_rows == 2
    assert orders.to_arrow().sort_by("id").equals(before)
    assert elsewhere(orders).equals(before)
    actions = published(orders, done.version)
    assert all(not (a.get("add") or a.get("remove"))["dataChange"] for a in actions if "commitInfo" not in a)
    assert orders.compact().version == done.version  # there is nothing more to do
    assert orders.at(version=4).to_arrow().sort_by("id").equals(before)


def test_files_are_no_larger_than_asked_for(make: Callable[..., lockgate.Table]) -> None:
    table = make()
    for i in range(10):
        table.append(pa.table({"id": range(i * 100, i * 100 + 100), "x": ["x"] * 100, "day": ["d"] * 100}))
    size = max(table.files().column("size").to_pylist())
    done = table.compact(target_size=size * 4)
    assert (done.files_removed, done.files_added) == (10, 3)
    assert ids(table) == list(range(1000))
    assert sorted(table.files().column("rows").to_pylist()) == [200, 400, 400]


def test_rows_are_in_order_over_all_files(make: Callable[..., lockgate.Table]) -> None:
    table = make()
    for i in range(7):
        table.append(pa.table({"id": [n * 7 % 350 + i for n in range(50)], "x": ["x"] * 50, "day": [None] * 50}))
    before = ids(table)
    done = table.compact(target_size=max(1, sum(table.files().column("size").to_pylist()) // 3), sort_by=["id"])
    assert done.files_added in (3, 4)
    files = table.files().sort_by("path").column("path").to_pylist()
    found = sorted(pq.read_table(Path(table.location, f)).column("id").to_pylist() for f in files)
    for part in (pq.read_table(Path(table.location, f)).column("id").to_pylist() for f in files):
        assert part == sorted(part)
    assert all(a[-1] <= b[0] for a, b in itertools.pairwise(found))
    assert ids(table) == before
    assert ids(elsewhere(table)) == before


def test_z_order_narrows_both_columns(make: Callable[..., lockgate.Table]) -> None:
    table = make(schema=pa.schema({"a": pa.int64(), "b": pa.string()}))
    for i in range(4):
        values = range(i, 1024, 4)
        table.append(pa.table({"a": [v % 32 for v in values], "b": [f"{v // 32:03}" for v in values]}))
    size = sum(table.files().column("size").to_pylist())
    table.compact(target_size=-(-size // 4), zorder=["a", "b"])
    stats = [json.loads(s) for s in table.files().column("stats").to_pylist()]
    assert len(stats) == 4
    for one in stats:  # a quarter of the rows each: half of either column
        assert one["maxValues"]["a"] - one["minValues"]["a"] <= 16
        assert int(one["maxValues"]["b"]) - int(one["minValues"]["b"]) <= 16
    assert table.to_arrow().num_rows == 1024


def test_an_order_that_cannot_be_is_refused(orders: lockgate.Table) -> None:
    for wrong in ({"sort_by": "nope"}, {"sort_by": "day"}, {"sort_by": "id", "zorder": "x"}, {"target_size": 0}):
        with pytest.raises(lockgate.ArgumentError):
            orders.compact(**wrong)  # type: ignore[arg-type]


def test_null_partitions_new_columns_and_odd_values_survive(make: Callable[..., lockgate.Table]) -> None:
    table = make(partition_by="day")
    table.append(rows((1, None, None), (2, "a b/ü%", "a b/ü%=x")))
    table.append(
        pa.table({"id": [3, 4], "x": ["", "y"], "day": [None, "a b/ü%=x"], "f": [float("nan"), -0.0]}), schema="evolve"
    )
    before = table.to_arrow().sort_by("id")
    assert table.compact().files_added == 2
    after = table.to_arrow().sort_by("id")
    assert [str(r) for r in after.to_pylist()] == [str(r) for r in before.to_pylist()]
    assert ids(elsewhere(table)) == [1, 2, 3, 4]


def test_an_append_meanwhile_stays(orders: lockgate.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    meanwhile(monkeypatch, lambda: orders.append(rows((7, "late", "d1"))))
    done = orders.compact()
    assert (done.files_removed, done.skipped) == (2, 0)
    assert ids(orders) == [1, 2, 3, 7]


def test_what_a_merge_took_meanwhile_is_left_to_it(orders: lockgate.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    orders.append(rows((4, "v4", "d0")))

    def merge() -> None:
        orders.merge(rows((3, "merged", "d1")), strategy="upsert", key_columns="id")

    meanwhile(monkeypatch, merge)
    done = orders.compact()
    assert (done.files_removed, done.skipped) == (2, 1)
    assert ids(orders) == [1, 2, 3, 4]
    assert {r["id"]: r["x"] for r in orders.to_arrow().to_pylist()}[3] == "merged"
    on_disk = {p.name for p in Path(orders.location).rglob("*-c0*.parquet")}
    assert len(on_disk) == 1  # what was written for the merged partition is gone again


def test_a_merge_that_had_read_a_compacted_file_is_planned_again(
    orders: lockgate.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    from lockgate.targets.delta import DeltaTarget

    real, done = DeltaTarget.commit_of, []

    def first_compacted(self: DeltaTarget, *args: object) -> object:
        if not done:
            done.append(orders.compact().version)
        return real(self, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(DeltaTarget, "commit_of", first_compacted)
    result = orders.merge(rows((3, "merged", "d1")), strategy="upsert", key_columns="id")
    assert (done, result.updated, result.inserted) == ([5], 1, 0)
    assert {r["id"]: r["x"] for r in orders.to_arrow().to_pylist()} == {1: "changed", 2: "v2", 3: "merged"}


def test_a_file_with_other_rows_than_the_log_says_is_not_compacted(orders: lockgate.Table) -> None:
    row = next(r for r in orders.files().to_pylist() if r["path"].startswith("day=d1"))
    pq.write_table(rows((1, "a", None), (1, "b", None)).select(["id", "x"]), Path(orders.location, row["path"]))
    with pytest.raises(lockgate.DatasetMergeError, match="rows, and the log says"):
        orders.compact()
    assert orders.version == 4


def test_statistics_are_taken_again(orders: lockgate.Table) -> None:
    from lockgate.txlog.actions import Add

    orders.append(rows((5, "five", "d0")))
    file = next(r for r in orders.files().to_pylist() if '"id":5' in r["stats"])
    wrong = Add(file["path"], {"day": "d0"}, file["size"], 1, data_change=False, stats='{"numRecords":1}')
    orders._log.commit("orders", None, [wrong])
    assert orders.files().num_rows == 4
    done = orders.analyze()
    assert (done.changed, done.files, done.version) == (1, 4, 7)
    assert next(r for r in orders.files().to_pylist() if r["path"] == file["path"])["stats"] == file["stats"]
    assert orders.analyze().version == 7
    assert ids(orders) == ids(elsewhere(orders)) == [1, 2, 3, 5]
    stats = orders.at(version=6).files().to_pylist()
    assert next(r for r in stats if r["path"] == file["path"])["stats"] == '{"numRecords":1}'


def test_a_file_that_was_removed_meanwhile_does_not_come_back(
    orders: lockgate.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    from lockgate.tables import analyzing

    real, done = analyzing.statistics_json, []

    def odd(*args: object, **more: object) -> str:
        if not done:
            done.append(orders.overwrite(rows((9, "new", "d1"))).version)
        return real(*args, **more).replace("{", "{ ", 1)  # type: ignore[arg-type]

    monkeypatch.setattr(analyzing, "statistics_json", odd)
    assert orders.analyze().changed == 1
    assert ids(orders) == [9]


def meanwhile(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Have something happen when the new files are written and not committed yet."""
    real, done = compacting._committed, []

    def late(*args: object) -> object:
        if not done:
            done.append(True)
            act()
        return real(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(compacting, "_committed", late)
