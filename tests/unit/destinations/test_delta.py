"""TYPE DELTA: what each mode makes of a table, without Spark."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest

import lockgate
from lockgate.destinations.delta import DeltaDestination
from lockgate.destinations.protocol import ExportRequest
from lockgate.running.result import RunResult
from support.arrow_run import arrow_run, export

Rows = list[dict[str, Any]]


class Runs:
    """Runs of one project, each with an id of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.count = 0

    def __call__(self, *exports: Any) -> RunResult:
        self.count += 1
        return arrow_run(self.folder, list(exports), run=f"2026-01-01T00-00-00-{self.count:04d}").execute()

    def rows(self, name: str) -> Rows:
        with lockgate.open_table(name, log=f"sqlite:///{self.folder}/.lockgate/log.db") as table:
            rows = table.to_arrow().to_pylist()
            theirs = deltalake.DeltaTable(table.location)
            assert theirs.version() == table.version
            assert len(theirs.to_pyarrow_table()) == len(rows)
            return sorted(rows, key=repr)


@pytest.fixture
def runs(tmp_path: Path) -> Runs:
    return Runs(tmp_path)


def table(*ids: int, x: str = "x", kind: pa.DataType = pa.int64()) -> pa.Table:
    return pa.table({"id": pa.array(ids, kind), "x": pa.array([x] * len(ids), pa.string())})


MODES = {
    "REPLACE": ([(2, "new"), (3, "new")], (2, 0, 2)),
    "APPEND": ([(1, "old"), (2, "new"), (2, "old"), (3, "new")], (2, 0, 0)),
    "UPSERT": ([(1, "old"), (2, "new"), (3, "new")], (1, 1, 0)),
    "INSERT": ([(1, "old"), (2, "old"), (3, "new")], (1, 0, 0)),
    "UPDATE": ([(1, "old"), (2, "new")], (0, 1, 0)),
    "FULL_MERGE": ([(2, "new"), (3, "new")], (1, 1, 1)),
    "DEDUPLICATE": ([(1, "old"), (2, "new"), (3, "new")], (1, 1, 0)),
}


@pytest.mark.parametrize("mode", MODES)
def test_rows_counts_and_version_of_each_mode(runs: Runs, mode: str) -> None:
    keys = [] if mode in ("REPLACE", "APPEND") else ["id"]
    runs((export("s.t", "DELTA", "APPEND"), table(1, 2, x="old")))
    done = runs((export("s.t", "DELTA", mode, keys), table(2, 3, x="new"))).exports[0]
    rows, counts = MODES[mode]
    assert [tuple(row.values()) for row in runs.rows("s.t")] == rows
    assert (done.inserted, done.updated, done.deleted) == counts
    assert done.version == 1


def test_an_update_makes_no_table_and_an_empty_result_makes_one(runs: Runs) -> None:
    done = runs(
        (export("s.none", "DELTA", "UPDATE", ["id"]), table(1)),
        (export("s.empty", "DELTA", "REPLACE"), table()),
        (export("s.merged", "DELTA", "UPSERT", ["id"]), table()),
    )
    assert [e.version for e in done.exports] == [None, 0, 0]
    assert (runs.rows("s.empty"), runs.rows("s.merged")) == ([], [])
    with pytest.raises(lockgate.TableNotFound):
        runs.rows("s.none")


def test_appended_rows_are_cast_where_nothing_is_lost(runs: Runs) -> None:
    runs((export("s.t", "DELTA", "APPEND"), table(1)))
    runs((export("s.t", "DELTA", "APPEND"), table(2, kind=pa.int16())))
    assert [row["id"] for row in runs.rows("s.t")] == [1, 2]
    wide = pa.table({"id": pa.array([2**70], pa.decimal128(38, 0)), "x": ["x"]})
    with pytest.raises(lockgate.SchemaMismatchError, match="id"):
        runs((export("s.t", "DELTA", "APPEND"), wide))
    assert [row["id"] for row in runs.rows("s.t")] == [1, 2]
    assert not any(runs.folder.rglob(".staging*"))


def test_append_refuses_other_columns_and_takes_new_ones_if_told(runs: Runs) -> None:
    runs((export("s.t", "DELTA", "APPEND"), table(1)))
    more = table(2).append_column("y", pa.array([1.5]))
    with pytest.raises(lockgate.SchemaMismatchError, match='"y"'):
        runs((export("s.t", "DELTA", "APPEND"), more))
    runs((export("s.t", "DELTA", "APPEND", schema="evolve"), more))
    assert [row["y"] for row in runs.rows("s.t")] == [None, 1.5]


def test_replace_takes_the_columns_types_and_partitions_of_its_rows(runs: Runs) -> None:
    runs((export("s.t", "DELTA", "APPEND"), table(1)))
    runs((export("s.t", "DELTA", "REPLACE"), pa.table({"day": [date(2026, 1, 1)], "id": ["one"]})))
    assert runs.rows("s.t") == [{"day": date(2026, 1, 1), "id": "one"}]


def test_a_keyed_export_makes_a_partitioned_table(runs: Runs) -> None:
    moments = pa.array([datetime(2026, 1, 1, tzinfo=UTC)] * 2, pa.timestamp("us", "UTC"))
    rows = pa.table({"id": [1, 2], "p": ["a/b", None], "at": moments})
    step = export("s.t", "DELTA", "UPSERT", ["id"], partition_by=["p"])
    assert runs((step, rows)).exports[0].inserted == 2
    assert runs((step, rows)).exports[0].updated == 2
    with pytest.raises(lockgate.PartitionMoveError):
        runs((step, rows.set_column(1, "p", pa.array(["other", None]))))
    assert [row["p"] for row in runs.rows("s.t")] == ["a/b", None]


def test_nothing_to_change_makes_no_version(runs: Runs) -> None:
    step = export("s.t", "DELTA", "UPSERT", ["id"], skip_unchanged=True)
    assert runs((step, table(1, 2))).exports[0].version == 0
    done = runs((step, table(1, 2))).exports[0]
    assert (done.inserted, done.updated, done.version) == (0, 0, 0)


def test_another_writer_between_staging_and_publishing(runs: Runs) -> None:
    runs((export("s.t", "DELTA", "APPEND"), table(1, x="old")), (export("s.u", "DELTA", "APPEND"), table(1)))
    run = arrow_run(
        runs.folder,
        [
            (export("s.t", "DELTA", "UPSERT", ["id"]), table(1, 2, x="ours")),
            (export("s.u", "DELTA", "APPEND"), table(2)),
        ],
        run="2026-01-02T00-00-00-cccc",
    )
    real = run._publish

    def publish() -> None:
        with lockgate.open_table("s.t", log=f"sqlite:///{runs.folder}/.lockgate/log.db") as theirs:
            theirs.merge(table(1, 2, 3, x="theirs"), strategy="upsert", key_columns="id")
        real()

    run._publish = publish  # type: ignore[method-assign]
    done = run.execute().exports
    assert [(e.inserted, e.updated, e.version) for e in done] == [(0, 2, 2), (1, 0, 1)]
    assert [tuple(row.values()) for row in runs.rows("s.t")] == [(1, "ours"), (2, "ours"), (3, "theirs")]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"destination": "a/b"}, "cannot name a folder"),
        ({"destination": "_x"}, "hidden"),
        ({"options": {"engin": "arrow"}}, "no option 'engin'"),
        ({"options": {"engine": "arrow"}, "mode": "APPEND"}, "merges by key"),
        ({"options": {"schema": "evolve"}, "mode": "REPLACE"}, "merges by key"),
        ({"options": {"partition_by": ["a", "A"]}}, "more than once"),
        ({"order_by": ("x sideways",), "mode": "DEDUPLICATE"}, "ORDER BY"),
    ],
)
def test_what_check_finds(change: dict[str, Any], said: str) -> None:
    request = ExportRequest(**{"destination": "s.t", "type": "DELTA", "mode": "UPSERT", **change})
    assert any(said in complaint.message for complaint in DeltaDestination().problems(request))
    assert DeltaDestination().problems(ExportRequest("s.t", "DELTA", "APPEND", {"schema": "evolve"})) == []
