"""Names of columns that are awkward in SQL, or that an engine might use for itself."""

from __future__ import annotations

import pyarrow as pa
import pytest

from contracts.engine.dataset import STRATEGIES, Dataset, counts

NAMES = [
    "ID", "x__src", 'with "quotes"', "it's", "two words", "a.b", "s.id", "file_row_number", "filename", "file",
    "file_row", "file_index", "source_row", "k0", "k1", "c0", "merge_action", "target", "source", "t", "r", "f", "path",
    "rowid",
    "select", "ORDER", "", " ", "ünïcode", "日本", "a;b--c", "$1", "%s", "{x}", "a\\b", "row", "nulls of 0",
    "__index_level_0__", "*",
]  # fmt: skip


def check(dataset: Dataset, key: str, other: str) -> None:
    dataset.add("a.parquet", pa.table({key: [1, 2], other: ["old 1", "old 2"]}))
    result = dataset.merge(pa.table({other: ["new 2", "new 3"], key: [2, 3]}), "upsert", [key])
    assert counts(result) == {"inserted": 1, "updated": 1, "deleted": 0}
    assert {r[key]: r[other] for r in dataset.rows()} == {1: "old 1", 2: "new 2", 3: "new 3"}


@pytest.mark.parametrize("name", NAMES)
def test_as_a_value(dataset: Dataset, name: str) -> None:
    check(dataset, "id", name)


@pytest.mark.parametrize("name", [n for n in NAMES if n])
def test_as_a_key(dataset: Dataset, name: str) -> None:
    check(dataset, name, "x")


def test_all_at_once(dataset: Dataset) -> None:
    old = {"id": [1, 2]} | {name: [f"old {name} 1", f"old {name} 2"] for name in NAMES}
    fresh = {name: [f"new {name} 2", f"new {name} 3"] for name in reversed(NAMES)} | {"id": [2, 3]}
    dataset.add("a.parquet", pa.table(old))
    result = dataset.merge(pa.table(fresh))
    assert counts(result) == {"inserted": 1, "updated": 1, "deleted": 0}
    for row in dataset.rows():
        mark = "old" if row["id"] == 1 else "new"
        assert row == {"id": row["id"]} | {name: f"{mark} {name} {row['id']}" for name in NAMES}


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("key", ["id", "ID"])
def test_names_that_differ_in_case_alone(dataset: Dataset, key: str, strategy: str) -> None:
    dataset.add("a.parquet", pa.table({"id": [1, 2], "ID": [10, 20], "x": ["a", "b"]}))
    source = pa.table({"ID": [20, 30], "id": [2, 3], "x": ["B", "C"]})
    result = dataset.merge(source, strategy, key)
    assert result.updated == int(strategy != "insert")
    assert result.inserted == int(strategy != "update")
    assert all(row["ID"] == row["id"] * 10 for row in dataset.rows())


def test_a_key_beside_a_struct_with_a_field_of_that_name(dataset: Dataset) -> None:
    """The bounds of the leaf s.id are not those of the column id, nor of one named "s.id"."""
    old = pa.table({"s": [{"id": 100}, {"id": 200}], "id": [1, 2], "s.id": [7, 8]})
    dataset.add("a.parquet", old)
    source = pa.table({"s.id": [8, 9], "id": [2, 3], "s": [{"id": 222}, {"id": 333}]})
    result = dataset.merge(source, "upsert", "id")
    assert counts(result) == {"inserted": 1, "updated": 1, "deleted": 0}
    assert {r["id"]: (r["s"]["id"], r["s.id"]) for r in dataset.rows()} == {1: (100, 7), 2: (222, 8), 3: (333, 9)}


def test_a_key_named_like_the_path_of_a_leaf(dataset: Dataset) -> None:
    old = pa.table({"s": [{"id": 100}, {"id": 200}], "s.id": [7, 8], "x": ["a", "b"]})
    dataset.add("a.parquet", old)
    source = pa.table({"s.id": [8, 9], "x": ["B", "C"], "s": [{"id": 222}, {"id": 333}]})
    result = dataset.merge(source, "upsert", "s.id")
    assert counts(result) == {"inserted": 1, "updated": 1, "deleted": 0}
    assert {r["s.id"]: (r["s"]["id"], r["x"]) for r in dataset.rows()} == {7: (100, "a"), 8: (222, "B"), 9: (333, "C")}


def test_a_struct_before_the_key_moves_the_leaves(dataset: Dataset) -> None:
    struct = pa.array([{"a": 900, "b": [1, 2]}, {"a": 901, "b": []}])
    dataset.add("a.parquet", pa.table({"s": struct, "id": [1, 2]}))
    source = pa.table({"s": pa.array([{"a": 5, "b": [3]}], struct.type), "id": [2]})
    assert dataset.merge(source, "update").updated == 1
    assert [r["s"]["a"] for r in dataset.rows()] == [900, 5]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_dataset_of_one_column(dataset: Dataset, strategy: str) -> None:
    dataset.add("a.parquet", pa.table({"id": [1, 2]}))
    result = dataset.merge(pa.table({"id": [2, 3]}), strategy)
    assert result.source_count == 2
    expected = {"insert": [1, 2, 3], "update": [1, 2], "full_merge": [2, 3]}.get(strategy, [1, 2, 3])
    assert sorted(dataset.column("id")) == expected


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_every_column_is_a_key(dataset: Dataset, strategy: str) -> None:
    dataset.add("a.parquet", pa.table({"a": [1, 2], "b": ["p", "q"]}))
    result = dataset.merge(pa.table({"b": ["q", "q"], "a": [2, 3]}), strategy, ["a", "b"])
    assert result.updated == int(strategy != "insert")
    assert result.inserted == int(strategy != "update")
