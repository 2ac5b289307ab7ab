"""kill -9 at every step of vacuum, compact and restore: every kept version stays whole, and doing it again finishes."""

from __future__ import annotations

import os
import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import lockgate
from lockgate.storage.local import LocalStorage
from lockgate.tables.table import Table
from lockgate.tables.vacuum import vacuum_table
from lockgate.txlog.writer import TxnLogWriter
from support import merge_processes
from support.care import SCHEMA, elsewhere, rows
from support.faults import Fault
from support.merge_faults import NumberedSteps
from support.merge_places import fast_folder

COMMITS = {"vacuum": 2, "compact": 1, "restore": 1}


def opened(folder: Path, storage: LocalStorage | None = None) -> Table:
    log = TxnLogWriter.open(f"sqlite:///{folder / 'log.db'}", publish=False)
    return Table("orders", folder / "orders", log, storage=storage)


def act(name: str, table: Table) -> Any:
    if name == "vacuum":
        return vacuum_table(
            table._writable(), retention_hours=0, check_retention=False, clock=lambda: time.time() + 2 * 86400
        )
    return table.compact() if name == "compact" else table.restore(version=2)


def killed_at_step(name: str, folder: str, at: int, fault: Fault) -> None:
    act(name, opened(Path(folder), NumberedSteps(at, fault)))


def killed_at_commit(name: str, folder: str, number: int, after: bool) -> None:
    real, seen = TxnLogWriter.commit_many, []

    def commit_many(self: TxnLogWriter, *given: Any, **named: Any) -> Any:
        seen.append(1)
        if len(seen) == number and not after:
            os.kill(os.getpid(), signal.SIGKILL)
        done = real(self, *given, **named)
        if len(seen) == number:
            os.kill(os.getpid(), signal.SIGKILL)
        return done

    TxnLogWriter.commit_many = commit_many  # type: ignore[method-assign]
    act(name, opened(Path(folder)))


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    """A folder with a table of five versions, and a copy beside it to begin from again."""
    with fast_folder() as folder:
        work = folder / "work"
        work.mkdir()
        address = f"sqlite:///{work / 'log.db'}"
        table = lockgate.create_table("orders", SCHEMA, location=work / "orders", partition_by="day", log=address)
        for i in range(1, 5):
            table.append(rows((i, f"v{i}", f"d{i % 2}")))
        table.merge(rows((1, "new", "d1"), (2, "new", "d0")), strategy="upsert", key_columns="id")
        table.close()
        shutil.copytree(work, folder / "kept")
        yield folder


def fresh(place: Path) -> Path:
    work = place / "work"
    shutil.rmtree(work, ignore_errors=True)
    shutil.copytree(place / "kept", work)
    return work


def check(name: str, work: Path, expected: list[Any], before: list[Any]) -> None:
    """What a killed action left is one of the two, and doing it again gives the second."""
    with opened(work) as table:
        assert told(table) in (before, expected)
        assert [str(r) for r in elsewhere(table).to_pylist()] in (before, expected)  # what is published, is whole
        act(name, table)
        table._log.publish("orders")
        assert told(table) == expected
        assert [str(r) for r in elsewhere(table).to_pylist()] == expected
        vacuum_table(table._writable(), retention_hours=0, check_retention=False, clock=lambda: time.time() + 2 * 86400)
        assert told(table) == expected
        files = {row["path"] for row in table.files().to_pylist()}
        root = work / "orders"
        on_disk = {p.relative_to(root).as_posix() for p in root.rglob("*.parquet") if "_delta_log" not in p.parts}
        assert on_disk == files  # nothing is lost, and nothing left
        assert not list(root.glob(".staging_*"))


def told(table: Table) -> list[str]:
    return [str(r) for r in table.to_arrow().sort_by("id").to_pylist()]


def steps_of(name: str, place: Path) -> tuple[int, list[str], list[str]]:
    work = fresh(place)
    storage = NumberedSteps()
    with opened(work, storage) as table:
        before = told(table)
        act(name, table)
        return len(storage.steps), before, told(table)


@pytest.mark.parametrize("name", ["vacuum", "compact"])
def test_killed_at_every_step_of_the_disk(place: Path, name: str) -> None:
    steps, before, expected = steps_of(name, place)
    assert steps > (1 if name == "vacuum" else 10)
    for at in range(steps):
        work = fresh(place)
        fault: Fault = "kill before" if at % 2 else "kill after"
        code = merge_processes.run(killed_at_step, name, str(work), at, fault)
        assert merge_processes.was_killed(code), f"step {at} was not reached: {code}"
        check(name, work, expected, before)


@pytest.mark.parametrize("name", ["vacuum", "compact", "restore"])
def test_killed_around_every_commit(place: Path, name: str) -> None:
    _, before, expected = steps_of(name, place)
    for number in range(1, COMMITS[name] + 1):
        for after in (False, True):
            work = fresh(place)
            code = merge_processes.run(killed_at_commit, name, str(work), number, after)
            assert merge_processes.was_killed(code), (number, after, code)
            check(name, work, expected, before)
