"""A run with three keyed exports, one of each kind that publishing tells apart, and a writer that comes between."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import lockgate
from lockgate.storage.local import LocalStorage
from support.arrow_run import ArrowRun, arrow_run, export
from support.faults import Fault
from support.merge_faults import NumberedSteps
from support.merge_reading import values

RUN = "2026-01-01T00-00-00-aaaa"


def rows(**by_id: str) -> pa.Table:
    """`rows(_1="x")` is the row (1, "x")."""
    ids = [int(name.removeprefix("_")) for name in by_id]
    return pa.table({"id": pa.array(ids, pa.int64()), "v": list(by_id.values())})


def exports(first: pa.Table | None = None) -> list[Any]:
    """Files rewritten, added and left alone; a file removed and no other touched; nothing to do at all."""
    return [
        (export("out/a", "PARQUET", "UPSERT", ["id"]), first or rows(_2="ours", _40="ours")),
        (export("out/b", "PARQUET", "FULL_MERGE", ["id"], skip_unchanged=True), rows(_1="old")),
        (export("out/c", "PARQUET", "UPDATE", ["id"], skip_unchanged=True), rows(_1="old")),
    ]


def old_data(folder: Path) -> None:
    for name in ("a", "b", "c"):
        (folder / "out" / name).mkdir(parents=True)
        pq.write_table(rows(_1="old"), folder / "out" / name / "0.parquet")
        pq.write_table(rows(_2="old"), folder / "out" / name / "1.parquet")
    pq.write_table(rows(_3="old"), folder / "out/a/2.parquet")
    (folder / "out/b/README.txt").write_text("not data")


def content(folder: Path) -> dict[str, dict[int, str]]:
    return {name: values(folder / "out" / name, "id", "v") for name in ("a", "b", "c")}


ALL_OLD = {"a": {1: "old", 2: "old", 3: "old"}, "b": {1: "old", 2: "old"}, "c": {1: "old", 2: "old"}}
ALL_NEW = {"a": {1: "old", 2: "ours", 3: "old", 40: "ours"}, "b": {1: "old"}, "c": {1: "old", 2: "old"}}
COUNTS = [(1, 1, 0), (0, 0, 1), (0, 0, 0)]


def counts(result: Any) -> list[tuple[int, int, int]]:
    return [(e.inserted, e.updated, e.deleted) for e in result.exports]


def somebody_else_merges(folder: Path) -> None:
    """A row that the run also has, which it finds new or not, depending on who was first; and one of its own."""
    lockgate.merge(rows(_3="theirs", _40="theirs"), folder / "out/a", strategy="upsert", key_columns="id")


THEIRS_ALONE = {1: "old", 2: "old", 3: "theirs", 40: "theirs"}
OURS_FIRST = ({1: "old", 2: "ours", 3: "theirs", 40: "theirs"}, (1, 1, 0))
THEIRS_FIRST = ({1: "old", 2: "ours", 3: "theirs", 40: "ours"}, (0, 2, 0))


def keyed_run(folder: Path, storage: LocalStorage | None = None, between: Callable[[], None] | None = None) -> ArrowRun:
    """The run, not yet executed. `between`: what happens after all is staged and before anything is published."""
    run = arrow_run(folder, exports(), run=RUN, storage=storage)
    publish = run._publish

    def then_publish() -> None:
        if between:
            between()
        publish()

    run._publish = then_publish  # type: ignore[method-assign]
    return run


def execute(folder: str, at: int, fault: Fault, with_somebody_else: bool) -> None:
    """For a process of its own: the run with a fault at one of its steps."""
    place = Path(folder)
    between = (lambda: somebody_else_merges(place)) if with_somebody_else else None
    keyed_run(place, NumberedSteps(at, fault), between).execute()


def steps_of_a_run(folder: Path, with_somebody_else: bool = False) -> list[tuple[str, Path]]:
    old_data(folder)
    storage = NumberedSteps()
    keyed_run(folder, storage, (lambda: somebody_else_merges(folder)) if with_somebody_else else None).execute()
    return storage.steps


def publishing_begins(steps: list[tuple[str, Path]]) -> int:
    """The first step after the last area was sealed, which takes four."""
    return max(i for i, (step, path) in enumerate(steps) if step == "create" and path.name == "sealed") + 4
