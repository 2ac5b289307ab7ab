"""A target that is not there, or holds no file: four strategies make it, update leaves everything as it is."""

from __future__ import annotations

import pyarrow as pa
import pytest

from contracts.engine.dataset import CREATING, Dataset, as_multiset, counts, ids, new, totals


@pytest.mark.parametrize("strategy", CREATING)
@pytest.mark.parametrize("folder", ["absent", "empty"])
def test_it_is_created(dataset: Dataset, strategy: str, folder: str) -> None:
    if folder == "empty":
        dataset.root.mkdir()
    result = dataset.merge(new(1, 2), strategy)
    assert counts(result) == {"inserted": 2, "updated": 0, "deleted": 0}
    assert totals(result) == (0, 2)
    assert as_multiset(dataset.rows()) == as_multiset(new(1, 2).to_pylist())
    assert [str(f) for f in dataset.files()] == result.inserted_files
    assert result.rewritten_files == result.preserved_files == []


def test_update_does_nothing_and_creates_nothing(dataset: Dataset) -> None:
    result = dataset.merge(new(1, 2), "update")
    assert counts(result) == {"inserted": 0, "updated": 0, "deleted": 0}
    assert totals(result) == (0, 0)
    assert result.source_count == 2
    assert not dataset.root.exists()


def test_update_makes_no_file_in_an_empty_folder(dataset: Dataset) -> None:
    dataset.root.mkdir()
    assert dataset.merge(new(1), "update").updated == 0
    assert dataset.files() == []


@pytest.mark.parametrize("strategy", CREATING)
def test_parents_of_the_folder_are_made_too(dataset: Dataset, strategy: str) -> None:
    deep = Dataset(dataset.root / "a" / "b", dataset.implementation)
    assert deep.merge(new(1), strategy).inserted == 1
    assert len(deep.rows()) == 1


@pytest.mark.parametrize("strategy", CREATING)
def test_an_empty_source_makes_a_readable_schema(dataset: Dataset, strategy: str) -> None:
    result = dataset.merge(new(), strategy)
    assert counts(result) == {"inserted": 0, "updated": 0, "deleted": 0}
    assert dataset.rows() == []
    later = dataset.merge(ids(1), "upsert")
    assert later.inserted == 1


def test_hidden_files_and_other_kinds_of_files_are_no_target(dataset: Dataset) -> None:
    dataset.add("_old/a.parquet", pa.table({"y": [1]}))
    dataset.add(".kept/a.parquet", pa.table({"y": [1]}))
    (dataset.root / "README.txt").write_text("words")
    result = dataset.merge(new(1), "full_merge")
    assert totals(result) == (0, 1)
    assert (dataset.root / "README.txt").read_text() == "words"
    assert (dataset.root / "_old/a.parquet").exists()
    (dataset.root / ".kept/a.parquet").unlink()
    (dataset.root / ".kept").rmdir()
