"""Where new rows go: new files of at most so many rows, laid out like the dataset's own."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from contracts.engine.dataset import CREATING, Dataset, ids, new
from lockgate.errors import ConfigError


def sizes(dataset: Dataset) -> list[int]:
    return [pq.read_metadata(f).num_rows for f in dataset.files()]


@pytest.mark.parametrize("strategy", CREATING)
def test_no_new_file_has_more_rows_than_asked(dataset: Dataset, strategy: str) -> None:
    result = dataset.merge(new(*range(10)), strategy, max_rows_per_file=4)
    assert sorted(sizes(dataset)) == [2, 4, 4]
    assert sorted(m.row_count for m in result.files) == [2, 4, 4]
    assert sorted(dataset.column("id")) == list(range(10))


def test_exactly_as_many_rows_as_a_file_takes(dataset: Dataset) -> None:
    dataset.merge(new(*range(8)), max_rows_per_file=4)
    assert sizes(dataset) == [4, 4]


def test_each_partition_has_its_own_files(dataset: Dataset) -> None:
    source = new(*range(10)).append_column("p", pa.array([i % 2 for i in range(10)]))
    dataset.merge(source, partition_by="p", max_rows_per_file=3)
    assert sorted(sizes(dataset)) == [2, 2, 3, 3]


def test_row_groups_are_as_large_as_asked(dataset: Dataset) -> None:
    dataset.merge(new(*range(10)), row_group_size=4)
    footer = pq.read_metadata(dataset.files()[0])
    assert [footer.row_group(i).num_rows for i in range(footer.num_row_groups)] == [4, 4, 2]


@pytest.mark.parametrize("codec", ["snappy", "zstd", "gzip", "brotli", "lz4", "none"])
def test_compression_as_asked(dataset: Dataset, codec: str) -> None:
    dataset.merge(new(1, 2), compression=codec)
    chunk = pq.read_metadata(dataset.files()[0]).row_group(0).column(0)
    assert chunk.compression == {"none": "UNCOMPRESSED"}.get(codec, codec.upper())


def test_new_files_are_compressed_as_the_dataset_is(dataset: Dataset) -> None:
    dataset.add("a.parquet", ids(1), compression="zstd")
    (name,) = dataset.merge(new(2)).inserted_files
    assert pq.read_metadata(name).row_group(0).column(0).compression == "ZSTD"


def test_new_files_have_the_columns_of_the_dataset_in_its_order(dataset: Dataset) -> None:
    dataset.add("a.parquet", ids(1).select(["x", "id"]))
    (name,) = dataset.merge(new(2)).inserted_files
    assert pq.read_schema(name).names == ["x", "id"]


def test_several_merges_make_files_of_several_names(dataset: Dataset) -> None:
    for i in range(3):
        dataset.merge(new(i), "insert")
    assert len(dataset.files()) == 3


def test_the_result_lists_every_file_once(dataset: Dataset) -> None:
    dataset.add("a.parquet", ids(1, 2))
    dataset.add("b.parquet", ids(3, 4))
    result = dataset.merge(new(2, 9))
    assert result.rewritten_files == [str(dataset.root / "a.parquet")]
    assert result.preserved_files == [str(dataset.root / "b.parquet")]
    assert len(result.inserted_files) == 1
    named = {m.path: m for m in result.files}
    assert sorted(named) == sorted(map(str, dataset.files()))
    assert {p: m.row_count for p, m in named.items()} == {str(f): pq.read_metadata(f).num_rows for f in dataset.files()}
    assert all(m.size_bytes in (None, len(dataset.contents()[p][0])) for p, m in named.items())


@pytest.mark.parametrize("option", ["max_rows_per_file", "row_group_size"])
@pytest.mark.parametrize("value", [0, -1, 1.5, "many"])
def test_a_size_that_is_no_positive_number_is_refused(dataset: Dataset, option: str, value: object) -> None:
    with pytest.raises(ConfigError, match=option):
        dataset.merge(new(1), **{option: value})
    assert not dataset.root.exists()


def test_an_unknown_codec_is_refused(dataset: Dataset) -> None:
    dataset.add("a.parquet", ids(1))
    before = dataset.contents()
    with pytest.raises(ConfigError, match="lzo"):
        dataset.merge(new(2), compression="lzo")
    assert dataset.contents() == before
