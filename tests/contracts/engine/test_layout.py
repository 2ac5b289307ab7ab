"""A rewritten file is laid out as it was: codecs, row groups, order, schema, metadata, mode."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from contracts.engine.dataset import Dataset, ids, new

# full_merge drops rows, the others keep them all; each takes another way through an engine
STRATEGIES = ("update", "upsert", "full_merge")


def rewrite(dataset: Dataset, strategy: str, path: Path, source: pa.Table) -> pq.FileMetaData:
    """The footer of the file after a merge that changes some of its rows."""
    before = dataset.contents()[str(path)]
    result = dataset.merge(source, strategy)
    assert str(path) in result.rewritten_files
    assert dataset.contents()[str(path)] != before
    return pq.read_metadata(path)


def codecs(footer: pq.FileMetaData) -> list[list[str]]:
    groups = [footer.row_group(g) for g in range(footer.num_row_groups)]
    return [[group.column(c).compression for c in range(group.num_columns)] for group in groups]


def sizes(footer: pq.FileMetaData) -> list[int]:
    return [footer.row_group(i).num_rows for i in range(footer.num_row_groups)]


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("codec", ["snappy", "zstd", "gzip", "brotli", "lz4", "none"])
def test_compression(dataset: Dataset, codec: str, strategy: str) -> None:
    path = dataset.add("a.parquet", ids(1, 2, 3), compression=codec)
    before = codecs(pq.read_metadata(path))
    assert codecs(rewrite(dataset, strategy, path, new(2))) == before


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_another_codec_in_each_column(dataset: Dataset, strategy: str) -> None:
    path = dataset.add("a.parquet", ids(1, 2, 3), compression={"id": "zstd", "x": "gzip"})
    assert codecs(rewrite(dataset, strategy, path, new(2))) == [["ZSTD", "GZIP"]]


def test_another_codec_in_each_file(dataset: Dataset) -> None:
    paths = {
        codec: dataset.add(f"{codec}.parquet", ids(i), compression=codec) for i, codec in enumerate(["zstd", "gzip"])
    }
    dataset.merge(new(0, 1), "update")
    assert {c: codecs(pq.read_metadata(p)) for c, p in paths.items()} == {
        "zstd": [["ZSTD"] * 2],
        "gzip": [["GZIP"] * 2],
    }


@pytest.mark.parametrize("size", [10, 33, 1000])
def test_row_groups(dataset: Dataset, size: int) -> None:
    path = dataset.add("a.parquet", ids(*range(100)), row_group_size=size)
    before = sizes(pq.read_metadata(path))
    assert sizes(rewrite(dataset, "update", path, new(5, 55, 95))) == before


def test_row_groups_of_thousands(dataset: Dataset) -> None:
    """DuckDB's own row groups are multiples of 2048."""
    path = dataset.add("a.parquet", ids(*range(10_000)), row_group_size=4096)
    assert sizes(rewrite(dataset, "update", path, new(5, 5555, 9999))) == [4096, 4096, 1808]
    path = dataset.add("a.parquet", ids(*range(10_000)), row_group_size=3000)
    assert sizes(rewrite(dataset, "update", path, new(5, 5555, 9999))) == [3000, 3000, 3000, 1000]


@pytest.mark.parametrize("size", [2048, 20_480, 1_000_000])
@pytest.mark.parametrize("changed", [1, 20_000])
def test_rows_of_many_row_groups_keep_their_order(dataset: Dataset, size: int, changed: int) -> None:
    """Threads that write row groups at once must not mix them up."""
    path = dataset.add("a.parquet", ids(*range(60_000)), row_group_size=size)
    dataset.merge(new(*range(0, 60_000, 60_000 // changed)), "update")
    assert pq.ParquetFile(path).read()["id"].to_pylist() == list(range(60_000))


def test_one_large_row_group_stays_one(dataset: Dataset) -> None:
    path = dataset.add("a.parquet", ids(*range(150_000)))
    assert sizes(rewrite(dataset, "update", path, new(5))) == [150_000]


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("descending", [False, True])
def test_a_declared_sort_order_is_kept_and_true(dataset: Dataset, strategy: str, descending: bool) -> None:
    values = sorted([3, 1, 2, 9, 7], reverse=descending)
    table = pa.table({"id": values, "x": [f"old {v}" for v in values]})
    order = pq.SortingColumn.from_ordering(table.schema, [("id", "descending" if descending else "ascending")])
    path = dataset.add("a.parquet", table, sorting_columns=order)
    footer = rewrite(dataset, strategy, path, new(7, 1, 3))
    assert footer.row_group(0).sorting_columns == tuple(order)
    kept = pq.read_table(path)["id"].to_pylist()
    assert kept == sorted(kept, reverse=descending)


def test_a_sort_by_a_value_that_changes(dataset: Dataset) -> None:
    table = pa.table({"id": [1, 2, 3, 4], "rank": [10, 20, 30, None]})
    order = pq.SortingColumn.from_ordering(table.schema, [("rank", "ascending")], null_placement="at_end")
    path = dataset.add("a.parquet", table, sorting_columns=order)
    rewrite(dataset, "update", path, pa.table({"id": [1, 4], "rank": [99, 15]}))
    assert pq.read_table(path)["rank"].to_pylist() == [15, 20, 30, 99]
    assert pq.read_metadata(path).row_group(0).sorting_columns == tuple(order)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_order_of_columns(dataset: Dataset, strategy: str) -> None:
    table = pa.table({"z": [1, 2], "id": [1, 2], "a": [1, 2]})
    path = dataset.add("f.parquet", table)
    rewrite(dataset, strategy, path, pa.table({"a": [5], "id": [2], "z": [6]}))
    assert pq.read_schema(path).names == ["z", "id", "a"]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_key_value_metadata(dataset: Dataset, strategy: str) -> None:
    pandas = json.dumps({"index_columns": [], "columns": [{"name": "id"}], "pandas_version": "2.0"})
    metadata = {b"pandas": pandas.encode(), b"owner": "Ærø 'x'".encode(), b"empty": b""}
    path = dataset.add("a.parquet", ids(1, 2).replace_schema_metadata(metadata))
    footer = rewrite(dataset, strategy, path, new(2))
    assert {k: v for k, v in footer.metadata.items() if k != b"ARROW:schema"} == metadata
    assert pq.read_schema(path).metadata == metadata


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_metadata_that_is_no_text(dataset: Dataset, strategy: str) -> None:
    path = dataset.add("a.parquet", ids(1, 2).replace_schema_metadata({b"raw": b"\xff\x00\xfe"}))
    rewrite(dataset, strategy, path, new(2))
    assert pq.read_schema(path).metadata == {b"raw": b"\xff\x00\xfe"}


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_nullability_and_metadata_of_fields(dataset: Dataset, strategy: str) -> None:
    schema = pa.schema(
        [
            pa.field("id", pa.int64(), nullable=False, metadata={"unit": "none"}),
            pa.field("x", pa.string(), metadata={"comment": "it's"}),
        ]
    )
    path = dataset.add("a.parquet", ids(1, 2).cast(schema))
    before = pq.read_schema(path)
    footer = rewrite(dataset, strategy, path, new(2))
    assert pq.read_schema(path).equals(before, check_metadata=True)
    assert footer.schema.column(0).max_definition_level == 0, "required stays required"
    assert footer.schema.column(1).max_definition_level == 1


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_field_ids(dataset: Dataset, strategy: str) -> None:
    schema = pa.schema(
        [
            pa.field("id", pa.int64(), metadata={"PARQUET:field_id": "7"}),
            pa.field("x", pa.string(), metadata={"PARQUET:field_id": "9"}),
        ]
    )
    path = dataset.add("a.parquet", ids(1, 2).cast(schema))
    rewrite(dataset, strategy, path, new(2))
    assert [f.metadata[b"PARQUET:field_id"] for f in pq.read_schema(path)] == [b"7", b"9"]


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("mode", [0o640, 0o600, 0o444, 0o664])
def test_the_mode_of_the_file(dataset: Dataset, mode: int, strategy: str) -> None:
    path = dataset.add("a.parquet", ids(1, 2))
    path.chmod(mode)
    rewrite(dataset, strategy, path, new(2))
    assert path.stat().st_mode & 0o777 == mode


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("dictionary", [True, ["x"]])
def test_a_column_that_had_a_dictionary_has_one(dataset: Dataset, dictionary: Any, strategy: str) -> None:
    table = pa.table({"id": range(300), "x": ["a", "b", "c"] * 100})
    path = dataset.add("a.parquet", table, use_dictionary=dictionary)
    footer = rewrite(dataset, strategy, path, pa.table({"id": range(200), "x": ["z"] * 200}))
    assert footer.row_group(0).column(1).has_dictionary_page


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_encodings_that_were_chosen(dataset: Dataset, strategy: str) -> None:
    options = {"use_dictionary": False, "column_encoding": {"id": "DELTA_BINARY_PACKED", "x": "DELTA_BYTE_ARRAY"}}
    path = dataset.add("a.parquet", ids(1, 2, 3), **options)
    group = rewrite(dataset, strategy, path, new(2)).row_group(0)
    assert "DELTA_BINARY_PACKED" in group.column(0).encodings
    assert "DELTA_BYTE_ARRAY" in group.column(1).encodings


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_bloom_filters(dataset: Dataset, strategy: str) -> None:
    path = dataset.add("a.parquet", ids(1, 2), bloom_filter_options={"id": {"ndv": 10, "fpp": 0.01}})
    group = rewrite(dataset, strategy, path, new(2)).row_group(0)
    assert group.column(0).bloom_filter_offset is not None
    assert group.column(1).bloom_filter_offset is None
    assert dataset.merge(new(2), "update").updated == 1, "and the filter knows the keys"


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_page_index(dataset: Dataset, strategy: str) -> None:
    path = dataset.add("a.parquet", ids(1, 2), write_page_index=True)
    assert rewrite(dataset, strategy, path, new(2)).row_group(0).column(0).has_column_index


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_file_without_the_arrow_schema_stays_without(dataset: Dataset, strategy: str) -> None:
    path = dataset.add("a.parquet", ids(1, 2), store_schema=False)
    footer = rewrite(dataset, strategy, path, new(2))
    assert b"ARROW:schema" not in (footer.metadata or {})
    assert pq.read_table(path).num_rows == (1 if strategy == "full_merge" else 2)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_rewritten_files_have_bounds_that_readers_can_trust(dataset: Dataset, strategy: str) -> None:
    path = dataset.add("a.parquet", pa.table({"id": [1, 2, 3], "x": [5, 6, 7]}))
    group = rewrite(dataset, strategy, path, pa.table({"id": [2], "x": [100]})).row_group(0)
    assert group.column(1).statistics.max == 100
    assert group.column(0).statistics.has_min_max


@pytest.mark.parametrize("version", ["1.0", "2.4", "2.6"])
@pytest.mark.parametrize("page", ["1.0", "2.0"])
def test_versions_of_the_format(dataset: Dataset, version: str, page: str) -> None:
    path = dataset.add("a.parquet", ids(1, 2), version=version, data_page_version=page)
    before = pq.read_schema(path)
    rewrite(dataset, "update", path, new(2))
    assert pq.read_schema(path).equals(before)
    assert dataset.column("x") == ["old 1", "new 2"]
