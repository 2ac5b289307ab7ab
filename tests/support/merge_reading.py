"""A dataset as a reader sees it who knows nothing of Lockgate: its visible Parquet files, read by pyarrow."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow.parquet as pq

Row = tuple[tuple[str, Any], ...]


def data_files(folder: Path) -> list[Path]:
    """Parquet files with no hidden part in their path, sorted."""
    return sorted(_visible(folder)) if folder.is_dir() else []


def _visible(folder: Path) -> Iterator[Path]:
    for entry in folder.iterdir():
        if entry.name.startswith(".") or (entry.name.startswith("_") and "=" not in entry.name):
            continue
        if entry.is_dir() and not entry.is_symlink():
            yield from _visible(entry)
        elif entry.name.endswith(".parquet"):
            yield entry


def file_rows(file: Path, root: Path) -> list[Row]:
    """The rows of one file in their order, with the values of its partition folders as text."""
    folders = [part.split("=", 1) for part in file.relative_to(root).parts[:-1] if "=" in part]
    partition = [(unquote(name), unquote(value)) for name, value in folders]
    # Through a handle: a path with odd characters in it is then nobody's pattern.
    with file.open("rb") as opened:
        table = pq.ParquetFile(opened).read()
    columns = [table.column(i).to_pylist() for i in range(table.num_columns)]
    names = table.column_names
    return [(*zip(names, values, strict=True), *partition) for values in zip(*columns, strict=True)]


def by_file(folder: Path) -> dict[str, list[Row]]:
    return {file.relative_to(folder).as_posix(): file_rows(file, folder) for file in data_files(folder)}


def all_rows(folder: Path) -> Counter[Row]:
    """Every row of the dataset, and how often it is there."""
    return Counter(row for file in data_files(folder) for row in file_rows(file, folder))


def values(folder: Path, key: str, value: str) -> dict[Any, Any]:
    """One column by another; a key that is there twice is a failure."""
    found: dict[Any, Any] = {}
    for row in all_rows(folder).elements():
        columns = dict(row)
        assert columns[key] not in found, f"{columns[key]!r} is there twice"
        found[columns[key]] = columns[value]
    return found
