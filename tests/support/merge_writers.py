"""What each of many writers does to one dataset. Functions of a module, so that processes can be started with them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

from lockgate.datasets.entry import merge, write_dataset
from lockgate.storage.locks import FileLock
from lockgate.targets.folder import LOCK_NAME

TURNS = 5
SHARED = "shared"
FIRST_COME = "first come"


def engine_of(number: int) -> str:
    return ("arrow", "duckdb")[number % 2]


def rows(pairs: dict[str, int]) -> pa.Table:
    return pa.table({"key": list(pairs), "value": pa.array(pairs.values(), pa.int64())})


def own_keys(number: int) -> list[str]:
    return [f"{number}-{each}" for each in range(3)]


def take_turns(folder: str, number: int, start: Any) -> None:
    """Upserts of keys that are this writer's own, and of one that all write; then an insert that only one can win."""
    start.wait()
    for turn in range(TURNS):
        source = rows(dict.fromkeys(own_keys(number), turn) | {SHARED: number * 100 + turn})
        merge(source, Path(folder), strategy="upsert", key_columns="key", engine=engine_of(number))
    source = rows({f"inserted by {number}": number, FIRST_COME: number, own_keys(number)[0]: -1})
    merge(source, Path(folder), strategy="insert", key_columns="key", engine=engine_of(number))


def upsert_own_rows(folder: str, number: int, start: Any) -> None:
    start.wait()
    for turn in range(3):
        source = rows(dict.fromkeys(own_keys(number), turn))
        merge(source, Path(folder), strategy="upsert", key_columns="key", engine=engine_of(number))


def append_own_rows(folder: str, number: int, start: Any) -> None:
    start.wait()
    for turn in range(3):
        write_dataset(rows({f"appended {number}-{turn}": turn}), Path(folder), mode="append")


def export_own_rows(folder: str, number: int, start: Any) -> None:
    """Runs of a pipeline that append to the dataset; a project each, as different machines would have."""
    from support.arrow_run import arrow_run, export

    start.wait()
    for turn in range(3):
        step = export(folder, "PARQUET", "APPEND")
        run = f"2026-01-01T00-00-00-{number * 16 + turn:04x}"
        project = Path(f"{folder}-project{number}")
        arrow_run(project, [(step, rows({f"exported {number}-{turn}": turn}))], run=run).execute()


def hold_the_lock(folder: str, held: Any, let_go: Any) -> None:
    with FileLock(Path(folder) / LOCK_NAME) as lock:
        lock.acquire(10)
        held.set()
        let_go.wait()
