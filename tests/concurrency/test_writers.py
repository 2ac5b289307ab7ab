"""Several processes write to one destination at once."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from lockgate.storage.local import LocalStorage
from lockgate.targets.folder import FolderTarget
from support.arrow_run import arrow_run, export
from support.leftovers import leftovers

WRITERS = 8


def in_parallel(count: int, work: Callable[[int], None]) -> None:
    """Fork `count` processes that start together; each must end well."""
    start_read, start_write = os.pipe()
    children = []
    for number in range(count):
        child = os.fork()
        if child == 0:
            os.close(start_write)
            os.read(start_read, 1)  # returns when every process is ready and the parent closes its end
            try:
                work(number)
            except BaseException:
                import traceback

                traceback.print_exc()
                os._exit(70)
            os._exit(0)
        children.append(child)
    os.close(start_read)
    os.close(start_write)
    assert [os.waitpid(child, 0)[1] for child in children] == [0] * count


def folder_rows(folder: Path) -> list[int]:
    files = FolderTarget(folder, LocalStorage()).files()
    return sorted(x for f in files for x in pq.read_table(folder / f)["id"].to_pylist())


def write(project: Path, destination: str, kind: str, mode: str, number: int, ids: list[int]) -> None:
    run = f"2026-01-01T00-00-00-{number:04x}"
    # A project each, as different machines or checkouts would have; the destination is the same.
    step = export(str(project / destination), kind, mode)
    arrow_run(project / f"project{number}", [(step, pa.table({"id": ids}))], run=run).execute()


def test_appends_to_one_folder_lose_and_repeat_nothing(tmp_path: Path) -> None:
    def work(number: int) -> None:
        for turn in range(3):
            write(tmp_path, "shared", "PARQUET", "APPEND", number * 10 + turn, [number * 10 + turn])

    in_parallel(WRITERS, work)
    assert folder_rows(tmp_path / "shared") == sorted(n * 10 + t for n in range(WRITERS) for t in range(3))
    assert leftovers(tmp_path) == []


def test_of_replaces_at_once_the_later_one_wins_whole(tmp_path: Path) -> None:
    def work(number: int) -> None:
        write(tmp_path, "folder", "PARQUET", "REPLACE", number, [number] * 100)
        write(tmp_path, "file.csv", "CSV", "REPLACE", number + 100, [number] * 100)

    in_parallel(WRITERS, work)
    rows = folder_rows(tmp_path / "folder")
    assert len(rows) == 100
    assert len(set(rows)) == 1
    lines = (tmp_path / "file.csv").read_text().split()[1:]
    assert len(lines) == 100
    assert len(set(lines)) == 1
    assert leftovers(tmp_path) == []


def test_a_reader_sees_the_old_file_or_the_new_one(tmp_path: Path) -> None:
    write(tmp_path, "file.csv", "CSV", "REPLACE", 0, [0] * 500)

    def work(number: int) -> None:
        if number == 0:
            for turn in range(1, 10):
                write(tmp_path, "file.csv", "CSV", "REPLACE", turn, [turn] * 500)
            return
        for _ in range(300):
            lines = (tmp_path / "file.csv").read_text().split()[1:]
            assert len(lines) == 500
            assert len(set(lines)) == 1

    in_parallel(3, work)


def test_runs_of_one_project_at_once_keep_their_own_records(tmp_path: Path) -> None:
    def work(number: int) -> None:
        run = f"2026-01-01T00-00-00-{number:04x}"
        arrow_run(tmp_path, [(export("out/p", "PARQUET", "APPEND"), pa.table({"id": [number]}))], run=run).execute()

    in_parallel(WRITERS, work)
    assert folder_rows(tmp_path / "out/p") == list(range(WRITERS))
    from lockgate.running.state import RunState

    assert {r.status for r in RunState(tmp_path / ".lockgate").runs()} == {"published"}
