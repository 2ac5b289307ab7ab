"""A merge leaves every file alone that it need not write: the same bytes, the same time, the same inode."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lockgate.datasets.entry import merge, write_dataset
from support.merge_places import fast_folder
from support.merge_reading import values

FILES = 100
TOUCHED = "p=1/042.parquet"
EVERY_STRATEGY = ("insert", "update", "upsert", "full_merge", "deduplicate")


@pytest.fixture
def folder() -> Iterator[Path]:
    with fast_folder() as place:
        for number in range(FILES):
            file = place / f"p={number // 40}" / f"{number:03d}.parquet"
            file.parent.mkdir(exist_ok=True)
            pq.write_table(pa.table({"id": ids(number), "v": ["old"] * 3}), file)
        (place / "README.txt").write_text("not data")
        yield place


def ids(number: int) -> list[int]:
    # The ranges of neighbours overlap, so that bounds alone do not say which file holds a key.
    return [number * 10, number * 10 + 2, number * 10 + 15]


def identity(file: Path) -> tuple[Any, ...]:
    state = file.stat()
    return state.st_ino, state.st_mtime_ns, state.st_mode, file.read_bytes()


def identities(folder: Path) -> dict[str, tuple[Any, ...]]:
    files = [f for f in folder.rglob("*") if f.is_file() and not f.name.startswith(".")]
    return {f.relative_to(folder).as_posix(): identity(f) for f in files}


def source_for(strategy: str) -> tuple[pa.Table, dict[str, Any]]:
    """Rows that change one file; for full_merge they are all rows, of which one differs."""
    if strategy == "full_merge":
        everything = [(i, str(n // 40), "new" if i == 422 else "old") for n in range(FILES) for i in ids(n)]
        keys, parts, texts = zip(*everything, strict=True)
        return pa.table({"id": keys, "v": texts, "p": parts}), {"skip_unchanged": True}
    return pa.table({"id": [422, 5_000], "v": ["new", "new"], "p": ["1", "1"]}), {}


@pytest.mark.parametrize("engine", ["arrow", "duckdb"])
@pytest.mark.parametrize("strategy", EVERY_STRATEGY)
def test_one_file_of_a_hundred_is_touched(folder: Path, strategy: str, engine: str) -> None:
    before = identities(folder)
    source, options = source_for(strategy)
    result = merge(source, folder, strategy=strategy, key_columns="id", engine=engine, **options)
    after = identities(folder)
    touched = {name for name in before if after.get(name) != before[name]}
    assert touched == (set() if strategy == "insert" else {TOUCHED})
    assert [name.removeprefix(f"{folder}/") for name in result.rewritten_files] == sorted(touched)
    assert len(after) - len(before) == (0 if strategy in ("update", "full_merge") else 1)
    found = values(folder, "id", "v")
    assert found[422] == ("old" if strategy == "insert" else "new")
    assert (5_000 in found) == (strategy not in ("update", "full_merge"))


@pytest.mark.parametrize("engine", ["arrow", "duckdb"])
def test_a_key_that_lies_within_bounds_and_in_no_file_touches_none(folder: Path, engine: str) -> None:
    before = identities(folder)
    source = pa.table({"id": [421], "v": ["new"], "p": ["1"]})
    assert merge(source, folder, strategy="update", key_columns="id", engine=engine).updated == 0
    assert identities(folder) == before


def test_an_append_touches_none(folder: Path) -> None:
    before = identities(folder)
    write_dataset(pa.table({"id": [5_000], "v": ["new"], "p": ["1"]}), folder)
    after = identities(folder)
    assert {name: after[name] for name in before} == before
    assert len(after) == FILES + 2


def test_an_overwrite_removes_data_and_nothing_else(folder: Path) -> None:
    before = identities(folder)
    write_dataset(pa.table({"id": [5_000], "v": ["new"], "p": ["1"]}), folder, mode="overwrite", partition_by="p")
    assert identity(folder / "README.txt") == before["README.txt"]
    assert values(folder, "id", "v") == {5_000: "new"}


@pytest.mark.parametrize("engine", ["arrow", "duckdb"])
def test_a_dry_run_touches_nothing_at_all(folder: Path, engine: str) -> None:
    before = identities(folder), sorted(folder.rglob("*"))
    source, _ = source_for("upsert")
    merge(source, folder, strategy="upsert", key_columns="id", engine=engine, dry_run=True)
    assert (identities(folder), sorted(folder.rglob("*"))) == before
