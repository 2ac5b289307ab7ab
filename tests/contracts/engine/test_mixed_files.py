"""Files of one dataset that differ from each other, as datasets that have lived a while do."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from contracts.engine.dataset import STRATEGIES, Dataset, as_multiset, counts, ids, new, totals
from lockgate.errors import DatasetMergeError, SchemaMismatchError


def test_keys_of_another_width_in_each_file(dataset: Dataset) -> None:
    dataset.add("a.parquet", pa.table({"id": pa.array([1, 2], pa.int32()), "x": ["a", "b"]}))
    dataset.add("b.parquet", pa.table({"id": pa.array([3, 2**40], pa.int64()), "x": ["c", "d"]}))
    result = dataset.merge(pa.table({"id": [2, 2**40, 9], "x": ["B", "D", "new"]}))
    assert counts(result) == {"inserted": 1, "updated": 2, "deleted": 0}
    assert {r["id"]: r["x"] for r in dataset.rows()} == {1: "a", 2: "B", 3: "c", 2**40: "D", 9: "new"}


@pytest.mark.parametrize("first", ["a.parquet", "z.parquet"])
def test_a_column_that_older_files_do_not_have(dataset: Dataset, first: str) -> None:
    """Whichever file is read first."""
    dataset.add(first, ids(1, 2))
    dataset.add("m.parquet", ids(3).append_column("y", pa.array([30])))
    source = pa.table({"id": [2, 3], "x": ["B", "C"], "y": [22, 33]})
    result = dataset.merge(source)
    assert counts(result) == {"inserted": 0, "updated": 2, "deleted": 0}
    rows = [{"y": None} | row for row in dataset.rows()]
    assert {r["id"]: (r["x"], r["y"]) for r in rows} == {1: ("old 1", None), 2: ("B", 22), 3: ("C", 33)}


def test_columns_in_another_order_in_each_file(dataset: Dataset) -> None:
    dataset.add("a.parquet", ids(1, 2))
    dataset.add("b.parquet", ids(3, 4).select(["x", "id"]))
    result = dataset.merge(new(2, 4))
    assert result.updated == 2
    assert {r["id"]: r["x"] for r in dataset.rows()} == {1: "old 1", 2: "new 2", 3: "old 3", 4: "new 4"}
    assert [pq.read_schema(f).names for f in dataset.files()] == [["id", "x"], ["x", "id"]], "each keeps its own"


def test_a_key_column_that_some_files_do_not_have(dataset: Dataset) -> None:
    """Its rows have a NULL key, so they match nothing."""
    dataset.add("a.parquet", pa.table({"x": ["no key"]}))
    dataset.add("b.parquet", ids(1, 2))
    result = dataset.merge(new(2, 3))
    assert counts(result) == {"inserted": 1, "updated": 1, "deleted": 0}
    assert sorted(dataset.column("x")) == ["new 2", "new 3", "no key", "old 1"]


def test_texts_stored_as_string_large_string_and_dictionary(dataset: Dataset) -> None:
    dataset.add("a.parquet", pa.table({"id": [1], "x": ["a"]}))
    dataset.add("b.parquet", pa.table({"id": [2], "x": pa.array(["b"], pa.large_string())}))
    dataset.add("c.parquet", pa.table({"id": [3], "x": pa.array(["c"]).dictionary_encode()}))
    result = dataset.merge(pa.table({"id": [1, 2, 3, 4], "x": ["A", "B", "C", "D"]}))
    assert counts(result) == {"inserted": 1, "updated": 3, "deleted": 0}
    assert sorted(dataset.column("x")) == ["A", "B", "C", "D"]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_empty_files_among_the_data(dataset: Dataset, strategy: str) -> None:
    dataset.add("a.parquet", ids())
    dataset.add("b.parquet", ids(1, 2))
    dataset.add("c.parquet", ids(), row_group_size=1)
    result = dataset.merge(new(2, 3), strategy)
    updated, inserted = int(strategy != "insert"), int(strategy != "update")
    deleted = int(strategy == "full_merge")
    assert counts(result) == {"inserted": inserted, "updated": updated, "deleted": deleted}
    assert totals(result) == (2, 2 + inserted - deleted)
    assert len(dataset.rows()) == 2 + inserted - deleted


def test_a_dataset_of_empty_files(dataset: Dataset) -> None:
    dataset.add("a.parquet", ids())
    assert counts(dataset.merge(new(1), "upsert")) == {"inserted": 1, "updated": 0, "deleted": 0}
    assert dataset.column("id") == [1]


def test_empty_row_groups_within_a_file(dataset: Dataset) -> None:
    dataset.root.mkdir()
    with pq.ParquetWriter(dataset.root / "a.parquet", ids(1).schema) as writer:
        for table in (ids(), ids(1, 2), ids(), ids(3)):
            writer.write_table(table)
    result = dataset.merge(new(1, 3), "update")
    assert result.updated == 2
    assert dataset.column("x") == ["new 1", "old 2", "new 3"]


@pytest.mark.parametrize("size", [1, 7, 100])
def test_many_row_groups(dataset: Dataset, size: int) -> None:
    dataset.add("a.parquet", ids(*range(300)), row_group_size=size)
    changed = [0, 6, 7, 99, 100, 299]
    result = dataset.merge(new(*reversed(changed)), "update")
    assert result.updated == len(changed)
    assert dataset.column("x") == [f"{'new' if i in changed else 'old'} {i}" for i in range(300)]


def test_many_small_files(dataset: Dataset) -> None:
    for i in range(30):
        dataset.add(f"f{i:02}.parquet", ids(i * 2, i * 2 + 1))
    result = dataset.merge(new(*range(0, 62, 3)))
    assert counts(result) == {"inserted": 1, "updated": 20, "deleted": 0}
    assert sorted(r["id"] for r in dataset.rows() if r["x"].startswith("new")) == list(range(0, 62, 3))
    assert len(result.rewritten_files) == 20
    assert len(result.preserved_files) == 10


def test_files_below_plain_folders(dataset: Dataset) -> None:
    dataset.add("2025/a.parquet", ids(1, 2))
    dataset.add("2026/01/b.parquet", ids(3, 4))
    result = dataset.merge(new(2, 4, 5))
    assert counts(result) == {"inserted": 1, "updated": 2, "deleted": 0}
    assert as_multiset({"id": r["id"]} for r in dataset.rows()) == as_multiset({"id": i} for i in (1, 2, 3, 4, 5))


def test_one_key_in_several_row_groups_and_files(dataset: Dataset) -> None:
    dataset.add("a.parquet", ids(1, 2, 1, 3, 1, 4), row_group_size=2)
    dataset.add("b.parquet", ids(5, 1, 6), row_group_size=1)
    assert dataset.merge(new(1), "update").updated == 4
    assert dataset.column("x").count("new 1") == 4


def test_files_that_do_not_fit_each_other_are_refused_by_name(dataset: Dataset) -> None:
    dataset.add("a.parquet", ids(1))
    dataset.add("b.parquet", pa.table({"id": [2], "x": [b"bytes"]}))
    dataset.add("c.parquet", pa.table({"id": [2], "x": [[1]]}))
    with pytest.raises(SchemaMismatchError, match=r"[bc]\.parquet"):
        dataset.merge(new(1))


@pytest.mark.parametrize("content", [b"", b"PAR1", b"no parquet at all, but longer than a footer"])
def test_a_broken_file_is_named_and_nothing_is_written(dataset: Dataset, content: bytes) -> None:
    dataset.add("a.parquet", ids(1))
    (dataset.root / "broken.parquet").write_bytes(content)
    before = dataset.contents()
    with pytest.raises(DatasetMergeError, match=r"broken\.parquet") as failed:
        dataset.merge(new(1))
    assert failed.value.in_place == "nothing was written"
    assert dataset.contents() == before


def test_a_file_broken_behind_its_footer_is_named(dataset: Dataset) -> None:
    dataset.add("a.parquet", ids(1))
    path = dataset.add("broken.parquet", ids(*range(2000)), use_dictionary=False)
    data = bytearray(path.read_bytes())
    data[4:3000] = b"\xff" * 2996
    path.write_bytes(bytes(data))
    before = dataset.contents()
    with pytest.raises(DatasetMergeError, match=r"broken\.parquet"):
        dataset.merge(new(1, 5))
    assert dataset.contents() == before
