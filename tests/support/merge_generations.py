"""Writers that put one number into every row of a dataset, so that a mix of two states shows."""

from __future__ import annotations

import tempfile
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from lockgate.datasets.entry import merge

FILES = 4
ROWS = 10
LASTING = tuple(range(FILES * ROWS))  # ids that every generation has
OWN = 1_000  # + generation: an id that only this generation has


def ids_of_file(number: int) -> list[int]:
    return list(range(number * ROWS, (number + 1) * ROWS))


def first_generation(folder: Path) -> None:
    folder.mkdir(parents=True)
    for number in range(FILES):
        pq.write_table(_rows(ids_of_file(number), 0), folder / f"{number}.parquet")
    pq.write_table(_rows([OWN], 0), folder / "own.parquet")


def _rows(ids: list[int], generation: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "generation": pa.array([generation] * len(ids), pa.int64())})


def write_generation(folder: Path, generation: int, engine: str) -> None:
    """Rewrites every file that stays, removes the last generation's own file, and adds one."""
    source = _rows([*LASTING, OWN + generation], generation)
    merge(source, folder, strategy="full_merge", key_columns="id", engine=engine, lock_timeout=20)


def write_generations_until_killed(folder: str, begin: int, engine: str, done: Any) -> None:
    """`done` is set to the last generation whose merge has returned: that one must survive."""
    # A killed process leaves its temporary files behind; here they go with the test's folder.
    tempfile.tempdir = str(Path(folder).parent)
    for generation in count(begin):
        write_generation(Path(folder), generation, engine)
        done.value = generation


def rewrite_pairs_of_files(folder: str, engine: str, times: int) -> None:
    """Upserts that each rewrite two of the files, and add and remove none."""
    for generation in range(1, times + 1):
        ids = ids_of_file(generation % FILES) + ids_of_file((generation + 1) % FILES)
        merge(_rows(ids, generation), Path(folder), strategy="upsert", key_columns="id", engine=engine)


def write_several_generations(folder: str, engine: str, times: int) -> None:
    for generation in range(1, times + 1):
        write_generation(Path(folder), generation, engine)
