"""Writes to a dataset that a fault is to interrupt: what is there before, and what is done to it."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq

from lockgate.datasets.entry import merge, write_dataset
from lockgate.storage.local import LocalStorage
from support.faults import Fault
from support.merge_faults import NumberedSteps

LOCK_TIMEOUT = 5.0
ENGINES = ("arrow", "duckdb")


def rows(ids: list[int], value: str, **partition: Any) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "v": [value] * len(ids), **partition})


def checksum_file(file: Path) -> Path:
    """Where Hadoop, and so Spark, looks for the checksum of a file; one that is there and wrong makes it unreadable."""
    return file.with_name(f".{file.name}.crc")


def digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def _no_dataset(folder: Path) -> None:
    del folder


def _four_files(folder: Path) -> None:
    _write_tens(folder, ["0", "1", "2", "3"])


def _three_partitions(folder: Path) -> None:
    _write_tens(folder, ["p=a/0", "p=a/1", "p=b/0", "p=c/0"])


def _write_tens(folder: Path, names: list[str]) -> None:
    for number, name in enumerate(names):
        file = folder / f"{name}.parquet"
        file.parent.mkdir(parents=True, exist_ok=True)
        # By pyarrow, without Bloom filters: such files the DuckDB engine writes again by its own COPY.
        pq.write_table(rows(list(range(number * 10, number * 10 + 10)), "old"), file)
        checksum_file(file).write_text(digest(file))


@dataclass(frozen=True)
class Scenario:
    """`act` does the same every time; `repeatable` says that doing it twice is as doing it once."""

    name: str
    prepare: Callable[[Path], None]
    act: Callable[[Path, str, LocalStorage], Any]
    repeatable: bool = True
    engines: tuple[str, ...] = ENGINES

    @property
    def empty_source(self) -> pa.Table:
        """A source of the right columns and no rows, for a merge that has nothing to do."""
        parted = self.prepare is _three_partitions or self.prepare is _no_dataset
        return rows([], "none", **({"p": pa.array([], pa.string())} if parted else {}))


def _merging(strategy: str, source: pa.Table, **options: Any) -> Callable[[Path, str, LocalStorage], Any]:
    def act(folder: Path, engine: str, storage: LocalStorage) -> Any:
        return merge(
            source, folder, strategy=strategy, key_columns="id", engine=engine, storage=storage,
            lock_timeout=LOCK_TIMEOUT, **options,
        )  # fmt: skip

    return act


def _writing(mode: str, source: pa.Table, **options: Any) -> Callable[[Path, str, LocalStorage], Any]:
    def act(folder: Path, engine: str, storage: LocalStorage) -> Any:
        del engine
        return write_dataset(
            source, folder, mode=cast(Any, mode), storage=storage, lock_timeout=LOCK_TIMEOUT, **options
        )

    return act


_FLAT = rows([1, 11, 12, 100, 101], "new")
_PARTED = rows([1, 21, 100, 101], "new", p=["a", "b", "a", "d"])
_ONE_ENGINE = ("arrow",)  # a plain write asks no engine

SCENARIOS = {
    s.name: s
    for s in (
        Scenario("upsert", _four_files, _merging("upsert", _FLAT)),
        Scenario("upsert by partition", _three_partitions, _merging("upsert", _PARTED)),
        Scenario("creation", _no_dataset, _merging("upsert", _PARTED, partition_by="p"), engines=_ONE_ENGINE),
        Scenario("full_merge", _four_files, _merging("full_merge", _FLAT)),
        Scenario("full_merge by partition", _three_partitions, _merging("full_merge", _PARTED)),
        Scenario("update", _four_files, _merging("update", _FLAT)),
        Scenario("append", _four_files, _writing("append", _FLAT), repeatable=False, engines=_ONE_ENGINE),
        Scenario(
            "append by partition", _three_partitions, _writing("append", _PARTED), repeatable=False, engines=_ONE_ENGINE
        ),
        Scenario("overwrite", _four_files, _writing("overwrite", _FLAT), engines=_ONE_ENGINE),
        Scenario(
            "overwrite by partition", _three_partitions, _writing("overwrite", _PARTED, partition_by="p"),
            engines=_ONE_ENGINE,
        ),
    )
}  # fmt: skip

CASES = [(scenario.name, engine) for scenario in SCENARIOS.values() for engine in scenario.engines]


def act(name: str, engine: str, folder: str, at: int | None, fault: Fault) -> None:
    """What a process does that is to be interrupted; with `at` None it comes to its end."""
    # A killed process leaves its temporary files behind; here they go with the test's folder.
    tempfile.tempdir = str(Path(folder).parent)
    SCENARIOS[name].act(Path(folder), engine, NumberedSteps(at, fault))
