"""Datasets in folders, and files, whose names mean something to SQL or to patterns."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import lockgate
from contracts.engine.dataset import Dataset, counts, ids, new

NAMES = [
    "it's",
    'a "b"',
    "a;b",
    "a -- b",
    "[x]",
    "star*",
    "what?",
    "{a,b}",
    "ünïcode 日本",
    " ",
    "a\nb",
    "$paths",
    "%41",
    "~",
]


@pytest.mark.parametrize("name", NAMES)
def test_as_the_folder_of_the_dataset(dataset: Dataset, name: str) -> None:
    inside = Dataset(dataset.root / name, dataset.implementation)
    inside.add("a.parquet", ids(1, 2))
    result = inside.merge(new(2, 3))
    assert counts(result) == {"inserted": 1, "updated": 1, "deleted": 0}
    assert sorted(inside.column("x")) == ["new 2", "new 3", "old 1"]
    assert [p.name for p in dataset.root.iterdir()] == [name]


@pytest.mark.parametrize("name", NAMES)
def test_as_the_name_of_a_file(dataset: Dataset, name: str) -> None:
    file = dataset.add(f"{name}.parquet", ids(1, 2))
    dataset.add("b.parquet", ids(3, 4))
    result = dataset.merge(new(2, 4), "update")
    assert result.updated == 2
    assert str(file) in result.rewritten_files
    assert sorted(dataset.column("x")) == ["new 2", "new 4", "old 1", "old 3"]


def test_a_path_may_be_text_a_path_or_relative(dataset: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset.root.mkdir()
    monkeypatch.chdir(dataset.root)
    for i, path in enumerate(["sub", Path("sub"), "./sub/", str(dataset.root / "sub"), f"file://{dataset.root}/sub"]):
        result = lockgate.merge(new(i), path, strategy="upsert", key_columns="id", **dataset.implementation)
        assert result.target_count_after == i + 1


def test_the_result_names_files_as_the_caller_named_the_dataset(
    dataset: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset.add("a.parquet", ids(1))
    monkeypatch.chdir(dataset.root.parent)
    result = lockgate.merge(new(1), "dataset/", strategy="upsert", key_columns="id", **dataset.implementation)
    assert result.rewritten_files == ["dataset/a.parquet"]


def test_a_dataset_behind_a_link(dataset: Dataset) -> None:
    dataset.add("a.parquet", ids(1, 2))
    link = dataset.root.parent / "link"
    link.symlink_to(dataset.root)
    behind = Dataset(link, dataset.implementation)
    assert behind.merge(new(2)).updated == 1
    assert link.is_symlink()
    assert dataset.column("x") == ["old 1", "new 2"]


def test_a_file_is_not_a_dataset(dataset: Dataset) -> None:
    path = dataset.add("a.parquet", ids(1))
    with pytest.raises(Exception, match="folder"):
        Dataset(path, dataset.implementation).merge(pa.table({"id": [1], "x": ["a"]}))
