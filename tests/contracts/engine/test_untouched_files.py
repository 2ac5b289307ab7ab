"""Files that hold no source key are left alone: the same bytes, time and inode."""

from __future__ import annotations

from datetime import date

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from contracts.engine.dataset import Dataset, ids, new

REWRITING = ("update", "upsert", "deduplicate")


@pytest.mark.parametrize("strategy", REWRITING)
@pytest.mark.parametrize("statistics", [True, False])
def test_only_files_with_a_source_key_are_rewritten(dataset: Dataset, strategy: str, statistics: bool) -> None:
    """b overlaps the source's range and yet has none of its keys; without statistics only a look at the keys tells."""
    a = dataset.add("a.parquet", ids(1, 2, 3), write_statistics=statistics)
    b = dataset.add("b.parquet", ids(0, 10), write_statistics=statistics)
    c = dataset.add("c.parquet", ids(100, 101), write_statistics=statistics)
    before = dataset.contents()

    result = dataset.merge(new(2, 5), strategy)

    after = dataset.contents()
    assert result.rewritten_files == [str(a)]
    assert sorted(result.preserved_files) == [str(b), str(c)]
    assert [after[str(f)] for f in (b, c)] == [before[str(f)] for f in (b, c)]
    assert after[str(a)] != before[str(a)]


def test_insert_rewrites_nothing(dataset: Dataset) -> None:
    a = dataset.add("a.parquet", ids(1, 2, 3))
    before = dataset.contents()
    result = dataset.merge(new(2, 5), "insert")
    assert result.rewritten_files == []
    assert dataset.contents()[str(a)] == before[str(a)]


def test_a_file_keeps_its_name_and_folder(dataset: Dataset) -> None:
    a = dataset.add("deep/down/odd name (1).parquet", ids(1, 2))
    dataset.merge(new(2), "update")
    assert dataset.files() == [a]


def test_other_files_of_the_folder_are_left_alone(dataset: Dataset) -> None:
    dataset.add("a.parquet", ids(1, 2))
    for name in ("README.txt", "_SUCCESS", "notes.csv", "data.parquet.crc"):
        (dataset.root / name).write_text(name)
    before = {n: s for n, s in dataset.contents().items() if not n.endswith(".parquet")}
    dataset.merge(new(), "full_merge")
    after = dataset.contents()
    assert {n: after[n] for n in before} == before


def test_partitions_that_the_key_rules_out_are_not_even_opened(dataset: Dataset) -> None:
    dataset.add("day=2026-01-01/a.parquet", ids(1, 2))
    other = dataset.add("day=2026-01-02/b.parquet", ids(1, 2))
    source = new(1).append_column("day", pa.array([date(2026, 1, 1)]))
    result = dataset.merge(source, "update", ["id", "day"])
    assert result.preserved_files == [str(other)]
    assert result.updated == 1


def test_a_row_group_without_statistics_beside_one_with(dataset: Dataset) -> None:
    """A file's bounds are those of the row groups that have some; the others may hold anything."""
    dataset.add("a.parquet", ids(1, 2))
    nulls = pa.table({"id": pa.array([None, None], pa.int64()), "x": ["n", "n"]})
    with pq.ParquetWriter(dataset.root / "b.parquet", ids(1).schema) as writer:
        writer.write_table(ids(10, 11))
        writer.write_table(nulls)
        writer.write_table(ids(500))
    result = dataset.merge(new(500), "update")
    assert result.updated == 1
    assert result.rewritten_files == [str(dataset.root / "b.parquet")]


def test_truncated_bounds_of_long_texts(dataset: Dataset) -> None:
    """Writers cut long bounds; a key behind the cut must still be found."""
    keys = ["x" * 4000 + tail for tail in ("a", "b", "c")]
    dataset.add("a.parquet", pa.table({"id": keys, "x": ["a", "b", "c"]}))
    result = dataset.merge(pa.table({"id": ["x" * 4000 + "b", "x" * 4000 + "z"], "x": ["B", "Z"]}))
    assert (result.updated, result.inserted) == (1, 1)


def test_bloom_filters_rule_a_file_out_and_never_wrongly(dataset: Dataset) -> None:
    options = {"bloom_filter_options": {"id": {"ndv": 100, "fpp": 0.01}}}
    dataset.add("a.parquet", ids(*range(0, 1000, 10)), **options)
    dataset.add("b.parquet", ids(*range(5, 1000, 10)), **options)
    before = dataset.contents()
    result = dataset.merge(new(500, 1), "upsert")
    assert (result.updated, result.inserted) == (1, 1)
    assert result.rewritten_files == [str(dataset.root / "a.parquet")]
    b = str(dataset.root / "b.parquet")
    assert dataset.contents()[b] == before[b]
