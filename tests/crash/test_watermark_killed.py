"""kill -9 at every step of incremental runs that append: each row once, whichever run is killed and wherever."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lockgate.running.state import RunState
from lockgate.sources.watermark import PendingWatermark, Watermark
from lockgate.storage.local import LocalStorage
from support.arrow_run import ArrowRun, arrow_run, export
from support.faults import FaultyStorage, run_in_child, was_killed

TOTAL = 6  # rows of the source


def incremental_run(folder: Path, run: str, upto: int, storage: LocalStorage | None = None) -> ArrowRun:
    """A run that takes what is beyond the watermark when it reads: after earlier runs are settled, as a real one."""

    class Incremental(ArrowRun):
        def _stage_and_check(self) -> None:
            stored = self.state.watermarks("p.sql", "dev").get("s")
            base, read = (stored.version, int(stored.watermark.value)) if stored and stored.watermark else (0, 0)
            rows = pa.table({"id": pa.array(range(read + 1, upto + 1), pa.int64())})
            self.tables = [rows, rows]
            self._watermarks = {"s": PendingWatermark(base, Watermark("id", "number", str(upto), str(upto)))}
            super()._stage_and_check()

    exports = [
        (export("out/a", "PARQUET", "APPEND"), pa.table({})),
        (export("out/b", "PARQUET", "APPEND"), pa.table({})),
    ]
    ready = arrow_run(folder, exports, run=run, storage=storage)
    return Incremental(**{name: getattr(ready, name) for name in ArrowRun.__dataclass_fields__ if name != "result"})


def published(folder: Path, name: str) -> list[int]:
    return sorted(n for f in (folder / "out" / name).glob("*.parquet") for n in pq.read_table(f)["id"].to_pylist())


def steps(folder: Path) -> list[str]:
    storage = FaultyStorage()
    folder.mkdir()
    incremental_run(folder, "2026-01-01T00-00-00-aaaa", 4, storage).execute()
    return [step for step, _ in storage.steps]


@pytest.mark.parametrize("fault", ["kill before", "kill after"])
def test_each_row_once(tmp_path: Path, fault: str) -> None:
    kinds = steps(tmp_path / "count")
    assert len(kinds) > 20
    moved = set()
    for at, kind in enumerate(kinds):
        if (
            fault == "kill after" and kind == "rmdir"
        ):  # of a folder with files in it, which is refused: there is no after
            continue
        folder = tmp_path / str(at)
        folder.mkdir()
        status = run_in_child(
            lambda folder=folder, at=at: incremental_run(
                folder, "2026-01-01T00-00-00-aaaa", 4, FaultyStorage(at, fault)
            ).execute()
        )
        assert was_killed(status), f"step {at} was not reached"
        before = RunState(folder / ".lockgate").watermarks("p.sql", "dev")
        if before:  # it has moved only where everything was published
            assert published(folder, "a") == published(folder, "b") == [1, 2, 3, 4], at
        moved.add(bool(before))
        incremental_run(folder, "2026-01-02T00-00-00-bbbb", TOTAL).execute()
        assert published(folder, "a") == published(folder, "b") == [*range(1, TOTAL + 1)], at
        assert RunState(folder / ".lockgate").watermarks("p.sql", "dev")["s"].watermark.value == str(TOTAL)
    assert False in moved
