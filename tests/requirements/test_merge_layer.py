"""requirements/merge-layer.md: one meaning of a merge, whichever engine does it."""

from __future__ import annotations

import inspect
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lockgate
from lockgate import (
    MergeStats,
    NullKeyError,
    SchemaMismatchError,
    compute_merge_stats,
    normalize_keys,
    validate_keys_and_schema,
)

Files = Callable[..., str]
Rows = Callable[[], list[dict[str, Any]]]
SOURCE = pa.table({"id": [1, 2], "x": ["a", "b"]})


def counts(result: Any) -> tuple[int, int, int]:
    return result.inserted, result.updated, result.deleted


@pytest.mark.parametrize("strategy", ["upsert", "insert"])
def test_empty_target_upsert_insert(backend: Any, path: Path, rows: Rows, strategy: str) -> None:
    """Edge Cases & Alignment / Empty target, UPSERT/INSERT: an initial load, all inserted, deleted = 0."""
    result = backend.merge(SOURCE, path, strategy, ["id"])
    assert counts(result) == (2, 0, 0)
    assert rows() == SOURCE.to_pylist()


@pytest.mark.parametrize("strategy", ["upsert", "insert"])
def test_empty_target_upsert_insert_of_a_target_with_files_but_no_rows(
    backend: Any, path: Path, file: Files, rows: Rows, strategy: str
) -> None:
    """Edge Cases & Alignment / Empty target, UPSERT/INSERT."""
    file("a.parquet", {"id": pa.array([], pa.int64()), "x": pa.array([], pa.string())})
    assert counts(backend.merge(SOURCE, path, strategy, ["id"])) == (2, 0, 0)
    assert rows() == SOURCE.to_pylist()


def test_empty_target_update(backend: Any, path: Path) -> None:
    """Edge Cases & Alignment / Empty target, UPDATE: a no-op with zero updated rows, on both engines."""
    assert counts(backend.merge(SOURCE, path, "update", ["id"])) == (0, 0, 0)
    assert not path.exists()


def test_full_merge_with_empty_source(backend: Any, path: Path, file: Files, rows: Rows) -> None:
    """Edge Cases & Alignment / FULL_MERGE with empty source: target empty, deleted = original row count."""
    file("a.parquet", {"id": [1, 2], "x": ["a", "b"]})
    file("b.parquet", {"id": [3], "x": ["c"]})
    result = backend.merge(SOURCE.slice(0, 0), path, "full_merge", ["id"])
    assert counts(result) == (0, 0, 3)
    assert rows() == []
    assert pq.read_table(path).schema.names == ["id", "x"]


def test_schema_incompatibility(backend: Any, path: Path, file: Files) -> None:
    """Edge Cases & Alignment / Schema incompatibility: raised where a value would be lost, promoted where none is."""
    file("a.parquet", {"id": [1], "x": pa.array([1], pa.int32())})
    with pytest.raises(SchemaMismatchError, match=r'"x".*string.*int32'):
        backend.merge(pa.table({"id": [1], "x": ["text"]}), path, "upsert", ["id"])
    with pytest.raises(SchemaMismatchError, match=str(2**40)):
        backend.merge(pa.table({"id": [1], "x": [2**40]}), path, "upsert", ["id"])
    assert backend.merge(pa.table({"id": [1], "x": [7]}), path, "upsert", ["id"]).updated == 1
    assert backend.merge(pa.table({"id": [1], "x": [2**40]}), path, "upsert", ["id"], schema="evolve").updated == 1


def test_normalizes_inputs() -> None:
    """High-Level Approach / 1. Normalizes inputs: key_columns becomes a list of strings."""
    assert normalize_keys("id") == ["id"]
    assert normalize_keys(["id", "day"]) == ["id", "day"]


def test_validates_inputs(backend: Any, path: Path, file: Files) -> None:
    """High-Level Approach / 2. Validates inputs: keys exist in source and target, and are never NULL."""
    file("a.parquet", {"id": [1], "x": ["a"]})
    with pytest.raises(SchemaMismatchError, match="code"):
        backend.merge(SOURCE, path, "upsert", ["code"])
    with pytest.raises(NullKeyError, match="id"):
        backend.merge(pa.table({"id": [1, None], "x": ["a", "b"]}), path, "upsert", ["id"])


def test_validates_inputs_without_forcing_full_materialization() -> None:
    """API Sketch / validate_keys_and_schema: lightweight descriptors that expose only the needed metadata will do."""

    class Described:
        schema = SOURCE.schema
        num_rows = 10**12

    validate_keys_and_schema(Described(), Described(), ["id"])
    with pytest.raises(SchemaMismatchError):
        validate_keys_and_schema(Described(), Described(), ["nowhere"])


SEMANTICS = {
    "upsert": ([(1, "old"), (2, "new"), (3, "new")], (1, 1, 0)),
    "insert": ([(1, "old"), (2, "old"), (3, "new")], (1, 0, 0)),
    "update": ([(1, "old"), (2, "new")], (0, 1, 0)),
    "full_merge": ([(2, "new"), (3, "new")], (1, 1, 1)),
    "deduplicate": ([(1, "old"), (2, "new"), (3, "new")], (1, 1, 0)),
}


@pytest.mark.parametrize("strategy", SEMANTICS)
def test_defines_canonical_strategy_semantics(backend: Any, path: Path, file: Files, rows: Rows, strategy: str) -> None:
    """High-Level Approach / 3. Defines canonical strategy semantics: kept, replaced and deleted rows of each."""
    file("a.parquet", {"id": [1, 2], "x": ["old", "old"]})
    expected, numbers = SEMANTICS[strategy]
    result = backend.merge(pa.table({"id": [2, 3], "x": ["new", "new"]}), path, strategy, ["id"])
    assert [(row["id"], row["x"]) for row in rows()] == expected
    assert counts(result) == numbers
    assert result.target_count_after == len(expected)


def test_computes_statistics() -> None:
    """High-Level Approach / 4. Computes statistics: one helper, from actual row counts."""
    stats = compute_merge_stats(
        strategy="upsert", target_before=3, target_after=5, inserted_rows=2, updated_rows=1, deleted_rows=0
    )
    assert isinstance(stats, MergeStats)
    assert isinstance(stats, dict)
    assert (stats.inserted, stats.updated, stats.deleted, stats.total) == (2, 1, 0, 5)
    assert stats == {"inserted": 2, "updated": 1, "deleted": 0, "total": 5}


def test_api_sketch() -> None:
    """API Sketch: the names and parameters that backends call."""
    assert list(inspect.signature(normalize_keys).parameters) == ["key_columns"]
    assert list(inspect.signature(validate_keys_and_schema).parameters)[:3] == ["source", "target", "key_columns"]
    named = inspect.signature(compute_merge_stats).parameters
    assert list(named) == [
        "strategy", "target_before", "target_after", "inserted_rows", "updated_rows", "deleted_rows",
    ]  # fmt: skip
    assert {p.kind for p in named.values()} == {inspect.Parameter.KEYWORD_ONLY}
    assert {s.value for s in lockgate.MergeStrategy} == set(SEMANTICS)


def test_backend_neutral() -> None:
    """Goals: merge semantics are independent of the engine; the core imports none."""
    program = (
        "import lockgate.merging.driver, lockgate.merging.schema, lockgate.merging.counts, sys;"
        "engines = ('duckdb', 'pyspark', 'lockgate.engines');"
        "print([m for m in sys.modules if m.startswith(engines)])"
    )
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"


def test_streaming_friendly(path: Path, file: Files, backend: Any) -> None:
    """Goals: no engine reads the whole dataset into memory. Files that hold no source key are not even opened for
    their rows: one that is damaged behind its footer does not disturb."""
    damaged = Path(file("b.parquet", {"id": list(range(5000, 9000)), "x": ["b"] * 4000}, use_dictionary=False))
    content = bytearray(damaged.read_bytes())
    content[100:5000] = b"\xff" * 4900
    damaged.write_bytes(content)
    file("a.parquet", {"id": [1], "x": ["a"]})
    assert backend.merge(SOURCE, path, "upsert", ["id"]).updated == 1
