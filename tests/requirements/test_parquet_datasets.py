"""requirements/parquet-datasets.md: one test for each of its scenarios, by its title."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lockgate
from lockgate import (
    ConservativeMembershipChecker,
    DuckDBDatasetIO,
    IncrementalFileManager,
    MergeFileMetadata,
    MergeResult,
    ParquetMetadataAnalyzer,
    PartitionPruner,
    PyArrowDatasetIO,
    confirm_affected_files,
    parse_hive_partition_path,
    plan_incremental_rewrite,
    validate_partition_column_immutability,
    write_dataset,
)

Files = Callable[..., str]
Rows = Callable[[], list[dict[str, Any]]]


def stamps(path: Path) -> dict[str, tuple[bytes, int, int]]:
    found = [f for f in path.rglob("*.parquet") if ".staging" not in str(f)]
    return {str(f): (f.read_bytes(), f.stat().st_mtime_ns, f.stat().st_ino) for f in found}


def test_partition_pruning_reduces_candidate_files(path: Path, file: Files) -> None:
    """Requirement: Incremental Merge Planning Uses Partition and Statistics Pruning
    Scenario: Partition pruning reduces candidate files"""
    first = file("day=2025-01-01/a.parquet", {"id": [1, 2]})
    other = file("day=2025-01-02/b.parquet", {"id": [1, 2]})
    source = pa.table({"id": [1], "day": [date(2025, 1, 1)]})
    schema = pa.schema([("day", pa.date32())])
    plan = plan_incremental_rewrite(str(path), source, ["id"], partition_schema=schema)
    assert plan.affected_files == [first]
    assert plan.unaffected_files == [other]


def test_partition_pruning_treats_unknown_partition_values_conservatively(path: Path, file: Files) -> None:
    """Requirement: Incremental Merge Planning Uses Partition and Statistics Pruning
    Scenario: Partition pruning reduces candidate files (AND: unknown values are not pruned)"""
    known = file("day=2025-01-01/a.parquet", {"id": [1]})
    unknown = file("elsewhere/b.parquet", {"id": [1]})
    source = pa.table({"id": [1], "day": ["2025-01-02"]})
    files = ParquetMetadataAnalyzer().analyze_dataset_files(str(path))
    assert PartitionPruner().identify_candidate_files(files, ["id"], source) == [unknown]
    assert known not in plan_incremental_rewrite(str(path), source, ["id"]).affected_files


def test_statistics_pruning_excludes_non_overlapping_files(path: Path, file: Files) -> None:
    """Requirement: Incremental Merge Planning Uses Partition and Statistics Pruning
    Scenario: Statistics pruning excludes non-overlapping files"""
    near, far = file("a.parquet", {"id": [1, 5]}), file("b.parquet", {"id": [100, 200]})
    plan = plan_incremental_rewrite(str(path), [3], ["id"])
    assert plan.affected_files == [near]
    assert plan.unaffected_files == [far]
    assert plan.affected_rows == 2


def test_missing_or_inexact_stats_treated_as_unknown_membership(path: Path, file: Files) -> None:
    """Requirement: Conservative Pruning Preserves Correctness
    Scenario: Missing or inexact stats treated as unknown membership"""
    missing = file("a.parquet", {"id": ["x"]}, write_statistics=False)
    inexact = file("b.parquet", {"id": ["y" * 5000 + "a", "y" * 5000 + "c"]})
    plan = plan_incremental_rewrite(str(path), ["y" * 5000 + "b"], ["id"])
    assert plan.affected_files == [missing, inexact]


def test_update_replaces_full_rows(backend: Any, path: Path, file: Files, rows: Rows) -> None:
    """Requirement: Full Row Replacement Semantics / Scenario: Update replaces full rows"""
    file("f.parquet", {"id": [1, 2], "a": ["old", "old"], "b": [1, 2]})
    source = pa.table({"id": [1], "a": pa.array([None], pa.string()), "b": [9]})
    backend.merge(source, path, strategy="update", key_columns=["id"])
    assert rows()[0] == {"id": 1, "a": None, "b": 9}


def test_reject_partition_movement_on_update(backend: Any, path: Path, file: Files) -> None:
    """Requirement: Partition Columns Cannot Change (Initial Implementation)
    Scenario: Reject partition movement on update"""
    file("day=2025-01-01/a.parquet", {"id": [1], "x": ["a"]})
    before = stamps(path)
    source = pa.table({"id": [1], "x": ["b"], "day": [date(2025, 1, 2)]})
    for strategy in ("update", "upsert"):
        with pytest.raises(ValueError, match="partition columns cannot change for existing keys"):
            backend.merge(source, path, strategy=strategy, key_columns=["id"], partition_by=["day"])
    assert stamps(path) == before


def test_append_writes_new_parquet_files_only(backend: Any, path: Path, file: Files, rows: Rows) -> None:
    """Requirement: `write_dataset` Supports Append and Overwrite / Scenario: Append writes new parquet files only"""
    file("a.parquet", {"id": [1]})
    before = stamps(path)
    backend.write_dataset(pa.table({"id": [2]}), path, mode="append")
    after = stamps(path)
    assert {name: after[name] for name in before} == before
    assert len(after) == 2
    assert [row["id"] for row in rows()] == [1, 2]


def test_overwrite_replaces_parquet_data_files(backend: Any, path: Path, file: Files, rows: Rows) -> None:
    """Requirement: `write_dataset` Supports Append and Overwrite / Scenario: Overwrite replaces parquet data files"""
    old = file("a.parquet", {"id": [1]})
    (path / "README.txt").write_text("kept")
    result = backend.write_dataset(pa.table({"id": [2]}), path, mode="overwrite")
    assert not Path(old).exists()
    assert (path / "README.txt").read_text() == "kept"
    assert [row["id"] for row in rows()] == [2]
    assert result.removed_files == [old]


def test_append_returns_written_file_metadata(backend: Any, path: Path) -> None:
    """Requirement: Return File Metadata for Newly Written Files / Scenario: Append returns written file metadata"""
    result = backend.write_dataset(pa.table({"id": list(range(5))}), path, mode="append", max_rows_per_file=2)
    assert sorted(f.row_count for f in result.files) == [1, 2, 2]
    assert {f.path for f in result.files} == {str(f) for f in path.rglob("*.parquet")}
    assert {f.path: f.row_count for f in result.files} == {
        f.path: pq.read_metadata(f.path).num_rows for f in result.files
    }
    assert result.total_rows == 5


def test_insert_appends_only_new_keys(backend: Any, path: Path, file: Files) -> None:
    """Requirement: `merge` Supports Insert, Update, Upsert (DuckDB) / Scenario: Insert appends only new keys"""
    file("a.parquet", {"id": [1], "x": ["old"]})
    before = stamps(path)
    result = backend.merge(pa.table({"id": [1, 2], "x": ["new", "new"]}), path, strategy="insert", key_columns=["id"])
    (added,) = result.inserted_files
    assert pq.ParquetFile(added).read().to_pylist() == [{"id": 2, "x": "new"}]
    assert {name: stamps(path)[name] for name in before} == before


def test_update_preserves_unaffected_rows(backend: Any, path: Path, file: Files, rows: Rows) -> None:
    """Requirement: `merge` Supports Insert, Update, Upsert (DuckDB) / Scenario: Update preserves unaffected rows"""
    file("a.parquet", {"id": [1, 2], "x": ["old", "old"]})
    backend.merge(pa.table({"id": [2], "x": ["new"]}), path, strategy="update", key_columns=["id"])
    assert rows() == [{"id": 1, "x": "old"}, {"id": 2, "x": "new"}]


def test_composite_keys_work_for_upsert(backend: Any, path: Path, file: Files, rows: Rows) -> None:
    """Requirement: `merge` Supports Insert, Update, Upsert (DuckDB) / Scenario: Composite keys work for upsert"""
    file("a.parquet", {"id": [1, 2], "category": ["A", "B"], "x": ["old", "old"]})
    source = pa.table({"id": [1, 1], "category": ["A", "B"], "x": ["new", "new"]})
    result = backend.merge(source, path, strategy="upsert", key_columns=["id", "category"])
    assert (result.updated, result.inserted) == (1, 1)
    assert [(r["id"], r["category"], r["x"]) for r in rows()] == [(1, "A", "new"), (1, "B", "new"), (2, "B", "old")]


def test_conservative_pruning_key_scan_confirmation(backend: Any, path: Path, file: Files) -> None:
    """Requirement: `merge` Supports Insert, Update, Upsert (DuckDB)
    Scenario: Conservative pruning + key-scan confirmation"""
    holds = [file(f"holds-{i}.parquet", {"id": [i * 100 + 50], "x": ["old"]}) for i in range(5)]
    overlaps = [file(f"overlaps-{i}.parquet", {"id": [i * 100 + 1, i * 100 + 99], "x": ["o", "o"]}) for i in range(5)]
    far = [file(f"far-{i}.parquet", {"id": [i + 10_000], "x": ["old"]}) for i in range(5)]
    blind = file("blind.parquet", {"id": [77], "x": ["old"]}, write_statistics=False)
    keys = [50, 150]
    before = stamps(path)

    plan = plan_incremental_rewrite(str(path), keys, ["id"])
    assert set(far).isdisjoint(plan.affected_files)
    assert blind in plan.affected_files
    assert sorted(confirm_affected_files(plan.affected_files, ["id"], keys)) == sorted(holds[:2])

    result = backend.merge(pa.table({"id": keys, "x": ["n", "n"]}), path, strategy="update", key_columns=["id"])
    assert sorted(result.rewritten_files) == sorted(holds[:2])
    for name in [*holds[2:], *overlaps, *far, blind]:
        assert stamps(path)[name] == before[name]


@pytest.mark.parametrize("io", [DuckDBDatasetIO, PyArrowDatasetIO])
def test_upsert_returns_metadata_for_rewritten_and_inserted_files(io: Any, path: Path, file: Files) -> None:
    """Requirement: Merge Returns File Metadata (DuckDB), Merge Returns File Metadata (PyArrow)
    Scenario: Upsert returns metadata for rewritten and inserted files"""
    rewritten = file("a.parquet", {"id": [1, 2], "x": ["old", "old"]})
    preserved = file("b.parquet", {"id": [30], "x": ["old"]})
    source = pa.table({"id": [2, 9], "x": ["new", "new"]})
    result = io().merge(source, path, strategy="upsert", key_columns=["id"])
    described = {m.path: (m.operation, m.row_count) for m in result.files}
    (inserted,) = result.inserted_files
    assert described == {rewritten: ("rewritten", 2), preserved: ("preserved", 1), inserted: ("inserted", 1)}
    assert result.rewritten_files == [rewritten]
    assert result.preserved_files == [preserved]


def test_parquet_metadata_is_the_default_metadata_source(backend: Any, path: Path, file: Files) -> None:
    """Requirement: Merge Returns File Metadata (DuckDB)
    Scenario: Parquet metadata is the default metadata source"""
    file("a.parquet", {"id": [1, 2, 3], "x": ["old"] * 3})
    source = pa.table({"id": [2, 9], "x": ["new"] * 2})
    result = backend.merge(source, path, strategy="upsert", key_columns=["id"])
    for metadata in result.files:
        assert metadata.row_count == pq.read_metadata(metadata.path).num_rows
        assert metadata.size_bytes == Path(metadata.path).stat().st_size


def test_update_rewrites_only_affected_files(path: Path, file: Files, rows: Rows) -> None:
    """Requirement: `merge` Supports Insert, Update, Upsert (PyArrow)
    Scenario: Update rewrites only affected files"""
    names = [file(f"{i}.parquet", {"id": [i, i + 100], "x": ["old", "old"]}) for i in range(10)]
    before = stamps(path)
    source = pa.table({"id": [3, 55], "x": ["new", "new"]})
    result = PyArrowDatasetIO().merge(source, path, strategy="update", key_columns=["id"])
    assert result.rewritten_files == [names[3]]
    assert {n: s for n, s in stamps(path).items() if n != names[3]} == {
        n: s for n, s in before.items() if n != names[3]
    }
    assert 55 not in [row["id"] for row in rows()]
    assert result.inserted == 0


PATHS = {
    "/data/year=2024/month=12/file.parquet": {"year": "2024", "month": "12"},
    "year=2024/file.parquet": {"year": "2024"},
    "s3://bucket/data/day=2025-01-01/x.parquet": {"day": "2025-01-01"},
    "/data/plain/file.parquet": {},
    "/data/city=New%2FYork/f.parquet": {"city": "New/York"},
    "/data/city=Z%C3%BCrich/f.parquet": {"city": "Zürich"},
    "/data/n=007/f.parquet": {"n": "007"},
    "/data/n=__HIVE_DEFAULT_PARTITION__/f.parquet": {"n": None},
    "/data/expr=a=b/f.parquet": {"expr": "a=b"},
    "/data/year=2024/not=a=partition.parquet": {"year": "2024"},
}


@pytest.mark.parametrize("given", PATHS)
def test_hive_partition_parsing_with_various_path_formats(given: str) -> None:
    """Testing Requirements: Test Hive partition parsing with various path formats"""
    assert parse_hive_partition_path(given) == PATHS[given]


def test_partition_column_immutability_validation() -> None:
    """Testing Requirements: Test partition column immutability validation"""
    target = pa.table({"id": [1, 2], "day": ["mon", "tue"]})
    validate_partition_column_immutability(pa.table({"id": [1, 9], "day": ["mon", "wed"]}), target, ["id"], ["day"])
    with pytest.raises(ValueError, match="partition columns cannot change for existing keys"):
        validate_partition_column_immutability(pa.table({"id": [2], "day": ["wed"]}), target, ["id"], ["day"])


def test_staging_and_atomic_replace_operations(path: Path, file: Files) -> None:
    """Testing Requirements: Test staging and atomic replace operations"""
    targets = [file(f"{n}.parquet", {"id": [i]}) for i, n in enumerate("ab")]
    manager = IncrementalFileManager()
    staging = Path(manager.create_staging_directory(str(path)))
    assert staging.name.startswith(".staging_")
    assert staging.parent == path
    staged = [str(staging / f"{n}.parquet") for n in "ab"]
    for i, name in enumerate(staged):
        pq.write_table(pa.table({"id": [i + 10]}), name)
    manager.atomic_replace_files(staged, targets)
    assert [pq.ParquetFile(t).read()["id"].to_pylist() for t in targets] == [[10], [11]]
    manager.cleanup_staging_files()
    assert not staging.exists()


@pytest.mark.parametrize("fails", [False, True])
def test_cleanup_on_success_and_failure_paths(backend: Any, path: Path, file: Files, fails: bool) -> None:
    """Testing Requirements: Test cleanup on success and failure paths"""
    file("a.parquet", {"id": [1], "x": ["old"]})
    if fails:
        (path / "b.parquet").write_bytes(b"PAR1 this is no Parquet file PAR1")
        with pytest.raises(lockgate.DatasetMergeError, match=r"b\.parquet"):
            backend.merge(pa.table({"id": [1], "x": ["new"]}), path, "upsert", ["id"])
    else:
        backend.merge(pa.table({"id": [1], "x": ["new"]}), path, "upsert", ["id"])
    assert [p.name for p in path.rglob(".staging*")] == []


def test_conservative_membership_without_statistics(path: Path, file: Files) -> None:
    """Behavior / Conservative Pruning: when metadata is insufficient, files are marked as affected."""
    file("a.parquet", {"id": [1]}, write_statistics=False)
    (metadata,) = ParquetMetadataAnalyzer().analyze_dataset_files(str(path))
    assert ConservativeMembershipChecker().file_might_contain_keys(metadata, ["id"], [12345])


def test_null_free_keys(backend: Any, path: Path) -> None:
    """Behavior / Merge Invariants 3: key columns must not contain NULL values in source data."""
    with pytest.raises(ValueError, match="id"):
        backend.merge(pa.table({"id": pa.array([None], pa.int64())}), path, "upsert", ["id"])


def test_merge_operations_api() -> None:
    """API / Merge Operations: the fields of the results, in their order, and the parameters of merge."""
    metadata = [f.name for f in dataclasses.fields(MergeFileMetadata)]
    assert metadata == ["path", "row_count", "operation", "size_bytes"]
    result = [f.name for f in dataclasses.fields(MergeResult)]
    assert result[:11] == [
        "strategy", "source_count", "target_count_before", "target_count_after", "inserted", "updated", "deleted",
        "files", "rewritten_files", "inserted_files", "preserved_files",
    ]  # fmt: skip
    assert list(inspect.signature(lockgate.merge).parameters)[:2] == ["source", "path"]


def test_merge_takes_the_arguments_of_the_api(backend: Any, path: Path) -> None:
    """API / Merge Operations: merge(data, path, strategy, key_columns, partition_columns, filesystem, …)"""
    from pyarrow import fs

    result = backend.merge(
        data=pa.table({"id": [1, 2], "day": ["a", "b"]}),
        path=str(path),
        strategy="upsert",
        key_columns=["id"],
        partition_columns=["day"],
        filesystem=fs.LocalFileSystem(),
        compression="snappy",
        max_rows_per_file=5_000_000,
        row_group_size=500_000,
    )
    assert result.inserted == 2
    assert sorted(f.parent.name for f in path.rglob("*.parquet")) == ["day=a", "day=b"]


def test_write_dataset_refuses_another_mode(path: Path) -> None:
    """Requirement: `write_dataset` Supports Append and Overwrite: mode in {"append", "overwrite"}"""
    with pytest.raises(lockgate.ConfigError, match="upsert"):
        write_dataset(pa.table({"id": [1]}), path, mode="upsert")  # type: ignore[arg-type]
    assert not path.exists()
