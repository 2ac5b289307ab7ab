"""Listing a dataset, planning a merge from metadata, and confirming the plan by a scan of the keys."""

from __future__ import annotations

import math
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import fs

from lockgate.errors import DatasetMergeError, SchemaMismatchError, StorageError
from lockgate.merging import planning
from lockgate.merging.planning import confirm_affected_files, list_dataset_files, plan_incremental_rewrite


def write(root: Path, name: str, table: dict[str, Any] | pa.Table, **options: Any) -> str:
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table if isinstance(table, pa.Table) else pa.table(table), root / name, **options)
    return f"{root}/{name}"


@pytest.fixture
def days(tmp_path: Path) -> Path:
    for day in ("2025-01-01", "2025-01-02"):
        for number in range(2):
            write(tmp_path, f"day={day}/{number}.parquet", {"id": range(number * 10, number * 10 + 10)})
    write(tmp_path, "nowhere.parquet", {"id": range(100)})
    return tmp_path


def names(root: Path, files: list[str]) -> list[str]:
    assert all(file.startswith(f"{root}/") for file in files)
    return [file.removeprefix(f"{root}/") for file in files]


def test_hidden_names_are_not_data(tmp_path: Path) -> None:
    for name in ("a.parquet", "p=1/b.PARQUET", "_day=1/c.parquet"):
        write(tmp_path, name, {"id": [1]})
    for name in ("_hidden.parquet", ".b.parquet", ".staging_x/rows/c.parquet", "_delta_log/d.parquet", "README.txt"):
        write(tmp_path, name, {"id": [1]})
    expected = ["_day=1/c.parquet", "a.parquet", "p=1/b.PARQUET"]
    assert names(tmp_path, list_dataset_files(str(tmp_path))) == expected
    inside = fs.SubTreeFileSystem(str(tmp_path.parent), fs.LocalFileSystem())
    assert list_dataset_files(tmp_path.name, inside) == [f"{tmp_path.name}/{name}" for name in expected]


def test_paths_begin_with_the_dataset_as_it_was_given(days: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(days.parent)
    for given in (days.name, f"./{days.name}", f"{days.name}/"):
        files = list_dataset_files(given)
        assert len(files) == 5
        assert all(f.startswith(given) and "//" not in f and Path(f).exists() for f in files)
        assert sorted(plan_incremental_rewrite(given, [1], ["id"]).affected_files)[0].startswith(given)


def test_a_dataset_that_is_not_there_has_no_files(tmp_path: Path) -> None:
    assert list_dataset_files(str(tmp_path / "none")) == []
    assert plan_incremental_rewrite(str(tmp_path / "none"), [1], ["id"]).affected_files == []
    inside = fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem())
    assert list_dataset_files("none", inside) == []


def test_a_link_to_a_folder_is_refused(tmp_path: Path, days: Path) -> None:
    (tmp_path / "x").mkdir()
    (tmp_path / "x/link").symlink_to(days)
    with pytest.raises(StorageError, match="link"):
        list_dataset_files(str(tmp_path / "x"))


def test_statistics_pruning_excludes_non_overlapping_files(days: Path) -> None:
    """Statistics pruning excludes non-overlapping files."""
    plan = plan_incremental_rewrite(str(days), [15, 1000], ["id"])
    affected = ["day=2025-01-01/1.parquet", "day=2025-01-02/1.parquet", "nowhere.parquet"]
    assert names(days, plan.affected_files) == affected
    assert names(days, plan.unaffected_files) == ["day=2025-01-01/0.parquet", "day=2025-01-02/0.parquet"]
    assert (plan.new_files, plan.affected_rows) == ([], 120)


@pytest.mark.parametrize("schema", [None, pa.schema([("day", pa.date32())]), pa.schema([("day", pa.string())])])
@pytest.mark.parametrize("day", ["2025-01-01", date(2025, 1, 1)])
def test_partition_pruning_reduces_candidate_files(
    days: Path, day: Any, schema: pa.Schema | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Partition pruning reduces candidate files: others are not even opened, unknown ones are not pruned."""
    opened: list[str] = []
    read = planning.read_footers
    monkeypatch.setattr(planning, "read_footers", lambda p, **o: opened.extend(p) or read(p, **o))
    source = pa.table({"id": [3], "day": [day]})
    plan = plan_incremental_rewrite(str(days), source, ["id"], partition_schema=schema)
    assert names(days, plan.affected_files) == ["day=2025-01-01/0.parquet", "nowhere.parquet"]
    assert names(days, opened) == ["day=2025-01-01/0.parquet", "day=2025-01-01/1.parquet", "nowhere.parquet"]


def test_the_partition_column_inside_the_key(days: Path) -> None:
    source = pa.table({"day": [date(2025, 1, 1), date(2025, 1, 2)], "id": [3, 13]})
    plan = plan_incremental_rewrite(str(days), source, ["day", "id"])
    expected = ["day=2025-01-01/0.parquet", "day=2025-01-02/1.parquet"]
    assert names(days, plan.affected_files) == [*expected, "nowhere.parquet"]
    assert names(days, confirm_affected_files(plan.affected_files, ["day", "id"], source)) == expected
    assert confirm_affected_files([f"{days}/day=2025-01-01/1.parquet"], ["day", "id"], source) == []


def test_rows_without_a_partition_value_belong_to_the_null_partition(tmp_path: Path) -> None:
    write(tmp_path, "day=__HIVE_DEFAULT_PARTITION__/a.parquet", {"id": [1]})
    write(tmp_path, "day=1/a.parquet", {"id": [1]})
    source = pa.table({"id": [1], "day": pa.array([None], pa.int32())})
    plan = plan_incremental_rewrite(str(tmp_path), source, ["id"])
    assert names(tmp_path, plan.affected_files) == ["day=__HIVE_DEFAULT_PARTITION__/a.parquet"]


def test_missing_or_inexact_stats_treated_as_unknown_membership(tmp_path: Path) -> None:
    """Missing or inexact stats treated as unknown membership."""
    write(tmp_path, "with.parquet", {"id": [1, 2]})
    write(tmp_path, "without.parquet", {"id": [1, 2]}, write_statistics=False)
    plan = plan_incremental_rewrite(str(tmp_path), [9], ["id"])
    assert names(tmp_path, plan.affected_files) == ["without.parquet"]


def test_a_corrupt_file_ends_the_plan_and_is_named(days: Path) -> None:
    (days / "bad.parquet").write_bytes(b"")
    with pytest.raises(DatasetMergeError, match=r"bad\.parquet"):
        plan_incremental_rewrite(str(days), [1], ["id"])


@pytest.mark.parametrize(
    "keys",
    [
        [(3, "A"), (50, "Z")],
        [{"id": 3, "category": "A"}, {"category": "Z", "id": 50}],
        {"id": [3], "category": ["A"]},
        pa.table({"category": ["A"], "id": [3]}),
        pa.array([{"id": 3, "category": "A"}]),
        pa.RecordBatch.from_pydict({"id": [3], "category": ["A"]}),
    ],
)
def test_keys_of_every_shape(tmp_path: Path, keys: Any) -> None:
    first = write(tmp_path, "a.parquet", {"id": [1, 3], "category": ["A", "A"]})
    second = write(tmp_path, "b.parquet", {"id": [1, 3], "category": ["B", "B"]})
    assert plan_incremental_rewrite(str(tmp_path), keys, ["id", "category"]).affected_files == [first]
    assert confirm_affected_files([first, second], ["id", "category"], keys) == [first]


@pytest.mark.parametrize("keys", [[1, "a"], [1, 2], pa.table({"x": [1]}), pa.array([1]), 7])
def test_keys_that_make_no_sense_are_refused(keys: Any) -> None:
    with pytest.raises(SchemaMismatchError, match="source_keys"):
        plan_incremental_rewrite("/none", keys, ["id", "category"])


def test_confirming_reads_the_key_columns_alone_and_only_row_groups_that_may_match(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Conservative pruning + key-scan confirmation."""
    table = pa.table({"id": [1, 3, 11, 13, 21, 23], "s": [{"id": 12}] * 6, "big": ["x"] * 6})
    path = write(tmp_path, "a.parquet", table, row_group_size=2)
    read: list[tuple[int, Any]] = []
    original = pq.ParquetFile.read_row_group

    def recorded(self: pq.ParquetFile, group: int, columns: Any = None) -> pa.Table:
        read.append((group, columns))
        return original(self, group, columns=columns)

    monkeypatch.setattr(pq.ParquetFile, "read_row_group", recorded)
    assert confirm_affected_files([path], ["id"], [12]) == []
    assert read == [(1, ["id"])]
    assert confirm_affected_files([path], ["id"], [12, 13, 23]) == [path]
    assert len(read) == 2  # the first row group with a key is enough


@pytest.mark.parametrize(
    ("stored", "keys", "holds"),
    [
        (pa.array([1, 2], pa.int32()), [2], True),
        (pa.array([1, 3], pa.int32()), [2**40, 2], False),
        (pa.array([1, 3], pa.int32()), [2**40, 3], True),
        (pa.array([1.0, math.nan]), [math.nan], True),
        (pa.array([1.0, -0.0]), [0.0], True),
        (pa.array(["a", "c"]).dictionary_encode(), ["c"], True),
        (pa.array(["a", "c"]).dictionary_encode(), ["b"], False),
        (pa.array(["a", "c"]), pa.array(["c"]).dictionary_encode(), True),
        (pa.array([Decimal("1.50"), Decimal("2.50")]), [Decimal("2.5")], True),
        (pa.array([1, 3], pa.timestamp("ns")), pa.array([2], pa.timestamp("ns")), False),
        (pa.array([1, None, 3]), [2], False),
        (pa.array([1, 3]), [None], False),
        (pa.array([date(2026, 1, 1)]), ["2026-01-01"], True),
    ],
)
def test_confirming_every_type_of_key(tmp_path: Path, stored: pa.Array, keys: Any, holds: bool) -> None:
    path = write(tmp_path, "a.parquet", {"id": stored})
    assert confirm_affected_files([path], ["id"], keys) == ([path] if holds else [])
    assert not holds or plan_incremental_rewrite(str(tmp_path), keys, ["id"]).affected_files == [path]


def test_a_file_without_the_key_column_holds_no_key(tmp_path: Path) -> None:
    old = write(tmp_path, "old.parquet", {"x": [1]})
    assert plan_incremental_rewrite(str(tmp_path), [1], ["id"]).affected_files == [old]
    assert confirm_affected_files([old], ["id"], [1]) == []


def test_confirming_through_a_given_filesystem(days: Path) -> None:
    inside = fs.SubTreeFileSystem(str(days), fs.LocalFileSystem())
    files = list_dataset_files("day=2025-01-01", inside)
    plan = plan_incremental_rewrite("day=2025-01-01", [13], ["id"], filesystem=inside)
    assert plan.affected_files == ["day=2025-01-01/1.parquet"]
    assert confirm_affected_files(files, ["id"], [13], filesystem=inside) == plan.affected_files


def test_a_file_damaged_behind_its_footer_is_named(tmp_path: Path) -> None:
    path = Path(write(tmp_path, "a.parquet", {"id": range(1000)}, use_dictionary=False))
    content = path.read_bytes()
    path.write_bytes(content[:4] + b"\xff" * 500 + content[504:])
    with pytest.raises(DatasetMergeError, match=r"a\.parquet"):
        confirm_affected_files([str(path)], ["id"], [500])
