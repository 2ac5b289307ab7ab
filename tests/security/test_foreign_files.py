"""What is in a dataset's folder and is no data of it stays as it is."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lockgate.datasets.entry import merge, write_dataset
from lockgate.errors import LockgateError
from support.merge_reading import values

FOREIGN = {
    "README.txt": b"about this dataset",
    "extra.csv": b"id,v\n1,x\n",
    "_SUCCESS": b"",
    ".DS_Store": b"\x00",
    "1.parquet.tmp": b"half a download",
    "1.parquet.bak": b"an old copy",
    "parquet": b"no suffix",
    "_temporary/0/part.parquet": b"of a job that is still running",
    ".hidden/part.parquet": b"not for us",
    "_delta.parquet": b"hidden by its name",
    "notes/todo.md": b"buy milk",
}


def rows(ids: list[int], value: str) -> pa.Table:
    return pa.table({"id": ids, "v": [value] * len(ids)})


@pytest.fixture
def dataset(place: Path) -> Path:
    folder = place / "data"
    folder.mkdir()
    for number in range(3):
        pq.write_table(rows([number * 10, number * 10 + 1], "old"), folder / f"{number}.parquet")
    for name, content in FOREIGN.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


def foreign(folder: Path) -> dict[str, tuple[bytes, int, int]]:
    files = {name: folder / name for name in FOREIGN}
    return {name: (f.read_bytes(), f.stat().st_mtime_ns, f.stat().st_ino) for name, f in files.items()}


@pytest.mark.parametrize("strategy", ["insert", "update", "upsert", "full_merge", "deduplicate"])
def test_a_merge_leaves_them_alone(dataset: Path, strategy: str, engine: str) -> None:
    before = foreign(dataset)
    merge(rows([1, 99], "new"), dataset, strategy=strategy, key_columns="id", engine=engine)
    assert foreign(dataset) == before


@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_a_write_leaves_them_alone(dataset: Path, mode: Literal["append", "overwrite"]) -> None:
    before = foreign(dataset)
    write_dataset(rows([1, 99], "new"), dataset, mode=mode)
    assert foreign(dataset) == before


def test_an_emptied_dataset_keeps_them(dataset: Path, engine: str) -> None:
    before = foreign(dataset)
    merge(rows([1], "x").slice(1), dataset, strategy="full_merge", key_columns="id", engine=engine)
    assert foreign(dataset) == before
    assert values(dataset, "id", "v") == {}


def test_a_checksum_file_of_hadoop_never_outlives_the_file_it_is_about(dataset: Path, engine: str) -> None:
    """Spark checks a file against `.name.crc` beside it: one that is stale makes the new file unreadable to it."""
    for number in range(3):
        (dataset / f".{number}.parquet.crc").write_bytes(b"crc\x00 of the old file")
    merge(rows([1, 11], "new"), dataset, strategy="upsert", key_columns="id", engine=engine)
    assert not (dataset / ".0.parquet.crc").exists()
    assert not (dataset / ".1.parquet.crc").exists()
    assert (dataset / ".2.parquet.crc").exists(), "that of a file that did not change is still true"
    write_dataset(rows([5], "new"), dataset, mode="overwrite")
    assert not (dataset / ".2.parquet.crc").exists()


def test_a_summary_of_all_files_never_outlives_a_change(dataset: Path, engine: str) -> None:
    (dataset / "_metadata").write_bytes(b"row groups of files as they were")
    merge(rows([1], "new"), dataset, strategy="upsert", key_columns="id", engine=engine)
    assert not (dataset / "_metadata").exists()


def test_a_path_that_is_a_file_is_refused(place: Path, engine: str) -> None:
    file = place / "file.parquet"
    pq.write_table(rows([1], "old"), file)
    before = file.read_bytes()
    for path in (file, file / "inside"):
        with pytest.raises(LockgateError, match=r"file\.parquet") as refused:
            merge(rows([1], "new"), path, strategy="upsert", key_columns="id", engine=engine)
        assert "nothing was written" in refused.value.render()
        with pytest.raises(LockgateError, match=r"file\.parquet"):
            write_dataset(rows([1], "new"), path)
    assert file.read_bytes() == before


@pytest.mark.parametrize("path", ["", "a\0b", "gs://bucket/data", "ftp://host/data"])
def test_a_path_that_is_none_of_a_local_folder_is_refused(path: str, engine: str) -> None:
    with pytest.raises(LockgateError) as refused:
        merge(rows([1], "new"), path, strategy="upsert", key_columns="id", engine=engine)
    assert "nothing was written" in refused.value.render()
