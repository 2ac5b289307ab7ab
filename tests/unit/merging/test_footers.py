"""Test metadata extraction with and without statistics, and files that are no Parquet files."""

from __future__ import annotations

import io
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import fs

from lockgate.errors import DatasetMergeError
from lockgate.merging import footers
from lockgate.merging.footers import ParquetFileMetadata, ParquetMetadataAnalyzer, leaf_index, read_footers


def write(path: Path, table: pa.Table, **options: Any) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, path, **options)
    return str(path)


def stats_of(column: pa.Array, tmp_path: Path, **options: Any) -> dict[str, Any]:
    write(tmp_path / "s/a.parquet", pa.table({"c": column}), **options)
    return ParquetMetadataAnalyzer().analyze_dataset_files(str(tmp_path / "s"))[0].column_stats["c"]


def test_footers_come_in_the_order_of_the_paths(tmp_path: Path) -> None:
    paths = [write(tmp_path / f"{n}.parquet", pa.table({"id": range(n)})) for n in range(100)]
    assert [footer.num_rows for footer in read_footers(paths)] == list(range(100))
    assert read_footers([]) == []


def test_footers_are_read_through_a_given_filesystem(tmp_path: Path) -> None:
    write(tmp_path / "t/a.parquet", pa.table({"id": [1]}))
    inside = fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem())
    assert read_footers(["t/a.parquet"], filesystem=inside)[0].num_rows == 1
    files = ParquetMetadataAnalyzer().analyze_dataset_files("t", filesystem=inside)
    assert [f.path for f in files] == ["t/a.parquet"]


@pytest.mark.parametrize("damage", ["empty", "truncated", "text", "folder", "gone", "tail", "footer length"])
@pytest.mark.parametrize("others", [0, 100])
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, damage: str, others: int) -> None:
    good = [write(tmp_path / f"{n}.parquet", pa.table({"id": [n]})) for n in range(others + 1)]
    bad = tmp_path / "bad one.parquet"
    whole = Path(good[0]).read_bytes()
    content = {
        "empty": b"",
        "truncated": whole[: len(whole) // 2],
        "text": b"id,name\n1,a\n" * 9,
        "tail": whole[:-12] + bytes(8) + b"PAR1",
        "footer length": whole[:-8] + b"\xff\xff\xff\x7fPAR1",
    }
    if damage == "folder":
        bad.mkdir()
    elif damage != "gone":
        bad.write_bytes(content[damage])
    with pytest.raises(DatasetMergeError) as caught:
        read_footers([*good, str(bad)])
    assert str(bad) in str(caught.value)
    assert caught.value.files == (str(bad),)
    assert caught.value.hint
    with pytest.raises(DatasetMergeError, match="cannot read bad one as"):
        read_footers([str(bad)], names=["bad one"])


def test_a_file_without_permission_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """By a reader that is refused: the tests may run as root, who is refused nothing."""

    class RefusedReader:
        def open(self, *_: Any, **__: Any) -> None:
            raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(footers, "ParquetReader", RefusedReader)
    with pytest.raises(DatasetMergeError, match=r"a\.parquet.*permission denied"):
        read_footers(["a.parquet"])


def test_a_nested_leaf_is_not_taken_for_a_column() -> None:
    file = io.BytesIO()
    table = pa.table({"s": [{"id": 1, "x": 1}], "l": [[1]], "s.id": [2], "ID": [3]})
    pq.write_table(table, file)
    schema = pq.read_metadata(file).schema
    assert leaf_index(schema, "id") is None
    assert schema.column(leaf_index(schema, "s.id")).name == "s.id"
    assert leaf_index(schema, "l") is None
    assert leaf_index(schema, "l.list.element") is None
    assert leaf_index(schema, "x") is None
    assert schema.column(leaf_index(schema, "ID")).name == "ID"


def test_two_columns_of_one_name_are_no_column() -> None:
    file = io.BytesIO()
    pq.write_table(pa.table([[1], [2]], names=["id", "id"]), file)
    assert leaf_index(pq.read_metadata(file).schema, "id") is None


def test_metadata_with_statistics(tmp_path: Path) -> None:
    table = pa.table({"id": [3, 1, None, 2], "s": ["b", "é", "a", "c"], "n": [{"id": 9}] * 4})
    write(tmp_path / "day=2025-01-01/a.parquet", table, row_group_size=2)
    write(tmp_path / "b.parquet", table)
    root = str(tmp_path)
    first, second = ParquetMetadataAnalyzer().analyze_dataset_files(root)
    stats = {"id": {"min": 1, "max": 3, "null_count": 1}, "s": {"min": "a", "max": "é", "null_count": 0}}
    assert first == ParquetFileMetadata(f"{root}/b.parquet", 1, 4, stats, None)
    assert second == ParquetFileMetadata(f"{root}/day=2025-01-01/a.parquet", 2, 4, stats, {"day": "2025-01-01"})


def test_metadata_without_statistics(tmp_path: Path) -> None:
    assert stats_of(pa.array([1]), tmp_path, write_statistics=False) == {"min": None, "max": None, "null_count": None}


def test_a_row_group_without_bounds_leaves_those_of_the_file_unknown(tmp_path: Path) -> None:
    """Missing or inexact stats treated as unknown membership."""
    some_nan = pa.array([1.0, 2.0, float("nan"), float("nan")])  # a group of NaN alone has no bounds
    assert stats_of(some_nan, tmp_path, row_group_size=2) == {"min": None, "max": None, "null_count": 0}
    some_null = pa.array([1.0, 2.0, None, None])  # a group of NULL alone needs none
    assert stats_of(some_null, tmp_path, row_group_size=2) == {"min": 1.0, "max": 2.0, "null_count": 2}
    assert stats_of(pa.nulls(2, pa.int64()), tmp_path) == {"min": None, "max": None, "null_count": 2}


@pytest.mark.parametrize(
    ("column", "low", "high"),
    [
        (pa.array([1, 2**32 - 1], pa.uint32()), 1, 2**32 - 1),
        (pa.array([1, 2**64 - 1], pa.uint64()), 1, 2**64 - 1),
        (pa.array([Decimal("-1.50"), Decimal("2.00")]), Decimal("-1.50"), Decimal("2.00")),
        (pa.array([b"\x01", b"\xff"]), b"\x01", b"\xff"),
        (
            pa.array([1_001, 1_999], pa.timestamp("ns")),
            datetime(1970, 1, 1, 0, 0, 0, 1),
            datetime(1970, 1, 1, 0, 0, 0, 2),
        ),
        (
            pa.array([0, 1], pa.timestamp("us", "UTC")),
            datetime(1970, 1, 1, tzinfo=UTC),
            datetime(1970, 1, 1, 0, 0, 0, 1, UTC),
        ),
        (pa.array([0, 86_399_999_999_001], pa.time64("ns")), None, None),  # rounded up it would be midnight
        (pa.array([1.0, 2.0], pa.float16()), None, None),
    ],
)
def test_bounds_are_python_values_that_nothing_lies_outside_of(
    column: pa.Array, low: Any, high: Any, tmp_path: Path
) -> None:
    """Unsigned ones are not negative, and nanoseconds are not cut."""
    assert stats_of(column, tmp_path, row_group_size=1) == {"min": low, "max": high, "null_count": 0}


def test_a_file_without_rows(tmp_path: Path) -> None:
    assert stats_of(pa.array([], pa.int64()), tmp_path) == {"min": None, "max": None, "null_count": 0}
