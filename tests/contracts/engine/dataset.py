"""A dataset that tests make by hand, merge into, and read with none of the product's own code."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq

import lockgate
from lockgate import MergeResult

STRATEGIES = ("insert", "update", "upsert", "full_merge", "deduplicate")
CREATING = ("insert", "upsert", "full_merge", "deduplicate")
REPLACING = ("update", "upsert", "full_merge", "deduplicate")

Row = dict[str, Any]


@dataclass(frozen=True)
class Dataset:
    """One folder, and the implementation that merges into it."""

    root: Path
    implementation: Mapping[str, Any] = field(default_factory=dict)
    prepared: Callable[[Any], Any] | None = None  # makes a source what the implementation is to be given

    def add(self, name: str, table: pa.Table, **options: Any) -> Path:
        """A file of the dataset as somebody else wrote it."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(table, path, **options)
        return path

    def merge(self, source: Any, strategy: str = "upsert", key: Any = "id", **options: Any) -> MergeResult:
        source = self.prepared(source) if self.prepared else source
        return lockgate.merge(
            source, self.root, strategy=strategy, key_columns=key, **{**self.implementation, **options}
        )

    def files(self) -> list[Path]:
        return data_files(self.root)

    def rows(self) -> list[Row]:
        return [row for file in self.files() for row in rows_of(file, self.root)]

    def column(self, name: str) -> list[Any]:
        return [row[name] for row in self.rows()]

    def state(self) -> dict[str, Any]:
        """Every file and folder there is, the lock included. A DataFrame is staged in the folder before
        its rows can be checked, so the folder's own time changes then."""
        found = folder_state(self.root)
        return {k: v for k, v in found.items() if isinstance(v, tuple)} if self.prepared else found

    def contents(self) -> dict[str, Any]:
        """Every file but the lock, which is made by whoever comes first and stays."""
        lock = str(self.root / ".lockgate_lock")
        return {name: value for name, value in self.state().items() if isinstance(value, tuple) and name != lock}


def data_files(root: Path) -> list[Path]:
    return sorted(p for p in root.rglob("*.parquet") if not any(x.startswith(".") for x in p.relative_to(root).parts))


def rows_of(file: Path, root: Path) -> list[Row]:
    """The rows of a file; values of its partition folders are text, or None."""
    partition = {}
    for part in file.relative_to(root).parts[:-1]:
        name, _, text = part.partition("=")
        partition[unquote(name)] = None if text == "__HIVE_DEFAULT_PARTITION__" else unquote(text)
    # ParquetFile, since read_table would make columns of the folders' names by rules of its own
    with pq.ParquetFile(file) as opened:
        return [partition | row for row in opened.read().to_pylist()]


def folder_state(root: Path) -> dict[str, Any]:
    """Everything about a folder that a write could change: names, bytes, times, inodes, modes."""
    found: dict[str, Any] = {}
    for folder, _, files in os.walk(root):
        found[folder] = os.stat(folder).st_mtime_ns
        for name in files:
            path = Path(folder, name)
            status = path.stat()
            found[str(path)] = (path.read_bytes(), status.st_mtime_ns, status.st_ino, status.st_mode)
    return found


def as_multiset(rows: Iterable[Row]) -> Counter[str]:
    """Rows without an order. Spelled out, so that NaN equals NaN, and 1 differs from 1.0 and True."""
    return Counter(repr(sorted(row.items())) for row in rows)


def counts(result: MergeResult) -> dict[str, int]:
    return {name: getattr(result, name) for name in ("inserted", "updated", "deleted")}


def totals(result: MergeResult) -> tuple[int, int]:
    return result.target_count_before, result.target_count_after


def ids(*values: Any) -> pa.Table:
    """The smallest table with a key and something beside it."""
    return pa.table({"id": pa.array(values, pa.int64()), "x": pa.array([f"old {v}" for v in values], pa.string())})


def new(*values: Any) -> pa.Table:
    return pa.table({"id": pa.array(values, pa.int64()), "x": pa.array([f"new {v}" for v in values], pa.string())})
