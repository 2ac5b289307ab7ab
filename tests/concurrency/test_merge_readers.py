"""Readers who know nothing of locks read while merges publish: every file they open is whole."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support import merge_processes
from support.merge_generations import (
    FILES,
    ROWS,
    first_generation,
    ids_of_file,
    rewrite_pairs_of_files,
    write_several_generations,
)
from support.merge_places import fast_folder


@pytest.fixture
def place() -> Iterator[Path]:
    with fast_folder() as folder:
        yield folder


class Reader:
    """Opens the dataset file by file, over and over, and keeps what it saw."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.reads = 0
        self.gone: set[str] = set()
        self.generations: dict[str, set[int]] = {}

    def look(self) -> None:
        for file in sorted(self.folder.glob("[!._]*.parquet")):
            try:
                with file.open("rb") as opened:
                    table = pq.ParquetFile(opened).read()
            except FileNotFoundError:
                self.gone.add(file.name)
                continue
            self._check(file.name, table)
            self.reads += 1

    def _check(self, name: str, table: pa.Table) -> None:
        found = set(table["generation"].to_pylist())
        assert len(found) == 1, f"{name} is torn: {found}"
        if name.removesuffix(".parquet").isdigit():
            ids = table["id"].to_pylist()
            assert ids == ids_of_file(int(name.removesuffix(".parquet"))), f"rows of {name} are twice or missing"
        else:
            assert table.num_rows == 1
        self.generations.setdefault(name, set()).update(found)


def read_while(writer: Any, reader: Reader) -> None:
    while writer.is_alive():
        reader.look()
    assert merge_processes.end_of(writer) == 0
    reader.look()


@pytest.mark.parametrize(("engine", "times"), [("arrow", 200), ("duckdb", 25)])
def test_a_reader_sees_each_rewritten_file_whole(place: Path, engine: str, times: int) -> None:
    folder = place / "data"
    first_generation(folder)
    reader = Reader(folder)
    read_while(merge_processes.start(rewrite_pairs_of_files, str(folder), engine, times), reader)
    assert reader.gone == set(), "a file that is only ever rewritten was not there for a moment"
    assert reader.reads > FILES * 10
    assert all(len(reader.generations[f"{n}.parquet"]) > 3 for n in range(FILES)), "it never read beside the writer"


@pytest.mark.parametrize(("engine", "times"), [("arrow", 60), ("duckdb", 12)])
def test_only_a_file_that_a_merge_removes_may_be_gone(place: Path, engine: str, times: int) -> None:
    folder = place / "data"
    first_generation(folder)
    reader = Reader(folder)
    read_while(merge_processes.start(write_several_generations, str(folder), engine, times), reader)
    assert not any(name.removesuffix(".parquet").isdigit() for name in reader.gone)
    assert sum(pq.read_metadata(f).num_rows for f in folder.glob("*.parquet")) == FILES * ROWS + 1
