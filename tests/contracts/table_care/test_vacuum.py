"""`vacuum`: only files that no kept version and no writer needs."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import lockgate
from lockgate.storage.local import LocalStorage
from lockgate.storage.staging import StagingArea
from lockgate.tables.vacuum import VacuumResult, vacuum_table
from support.care import elsewhere, ids, rows

DAY = 24 * 3600.0


def vacuumed(
    table: lockgate.Table, *, days_later: float = 0.0, hours: float = 0.0, dry_run: bool = False
) -> VacuumResult:
    return vacuum_table(
        table._writable(),
        retention_hours=hours,
        check_retention=False,
        dry_run=dry_run,
        clock=lambda: time.time() + days_later * DAY,
    )


def data_files(table: lockgate.Table) -> set[str]:
    root = Path(table.location)
    return {p.relative_to(root).as_posix() for p in root.rglob("*.parquet") if "_delta_log" not in p.parts}


def test_the_dry_run_lists_what_goes_and_removes_nothing(orders: lockgate.Table) -> None:
    before = data_files(orders)
    said = vacuumed(orders, days_later=1, dry_run=True)
    assert (data_files(orders), orders.version) == (before, 4)
    done = vacuumed(orders, days_later=1)
    assert done.files == said.files != []
    assert data_files(orders) == before - set(done.files)
    assert done.bytes == said.bytes > 0


def test_the_newest_version_is_whole_and_other_readers_see_it(orders: lockgate.Table) -> None:
    rows_before = orders.to_arrow().sort_by("id")
    done = vacuumed(orders, days_later=1)
    assert orders.to_arrow().sort_by("id").equals(rows_before)
    assert elsewhere(orders).equals(rows_before)
    assert [h.operation for h in orders.history()[:2]] == ["VACUUM END", "VACUUM START"]
    assert done.oldest_kept == 4
    with pytest.raises(lockgate.StorageError, match="gone"):
        orders.at(version=3).to_arrow()


def test_the_default_keeps_a_week(orders: lockgate.Table) -> None:
    assert orders.vacuum().files == []
    assert vacuumed(orders, days_later=6.9, hours=168).files == []
    assert len(vacuumed(orders, days_later=7.1, hours=168).files) == 1


def test_a_shorter_retention_must_be_asked_for(orders: lockgate.Table) -> None:
    with pytest.raises(lockgate.ArgumentError, match="shorter"):
        orders.vacuum(1)
    with pytest.raises(lockgate.ArgumentError):
        orders.vacuum(-1, check_retention=False)
    assert orders.version == 4


def test_every_version_that_is_kept_can_be_read(orders: lockgate.Table) -> None:
    orders.overwrite(rows((8, "a", "d1")))
    orders.overwrite(rows((9, "b", None)))
    moment = next(h.timestamp for h in orders.history() if h.version == 4) / 1000
    later = 5 * DAY
    done = vacuum_table(  # version 4 was the newest then
        orders._writable(), retention_hours=later / 3600, check_retention=False, clock=lambda: moment + 0.0005 + later
    )
    assert done.oldest_kept == 4
    assert len(done.files) == 1
    for version in (4, 5, 6):
        orders.at(version=version).to_arrow()
    orders.restore(version=4)
    assert ids(orders) == [1, 2, 3]


def test_a_vacuumed_version_cannot_be_restored_even_where_files_are_left(orders: lockgate.Table) -> None:
    from lockgate.txlog.actions import Txn
    from lockgate.txlog.retention import VACUUM

    # As a vacuum leaves it that died between telling the log and the first file.
    orders._log.commit("orders", None, [Txn(VACUUM, 4)])
    with pytest.raises(lockgate.StorageError, match="vacuumed") as caught:
        orders.restore(version=3)
    assert "from 4 on" in str(caught.value.hint)
    assert len(vacuumed(orders, days_later=1).files) == 1  # and another one goes on


def test_a_version_that_came_back_is_not_vacuumed(orders: lockgate.Table) -> None:
    orders.restore(version=3)
    before = orders.to_arrow().sort_by("id")
    done = vacuumed(orders, days_later=30)
    assert len(done.files) == 1  # of version 4
    assert orders.to_arrow().sort_by("id").equals(before)


def test_a_restore_between_plan_and_removal_keeps_its_files(
    orders: lockgate.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    from lockgate.tables import vacuum

    real, came_back = vacuum._begin, []

    def first_restored(*args: object) -> None:
        came_back.append(orders.restore(version=3).version)
        real(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(vacuum, "_begin", first_restored)
    done = vacuumed(orders, days_later=1)
    assert done.files == []
    assert ids(orders) == [1, 2, 3]


def test_files_that_no_version_has_go_when_they_are_old(orders: lockgate.Table) -> None:
    placed = Path(orders.location, "day=d1", "part-lost-00000.parquet")
    pq.write_table(rows((5, "x", None)).select(["id", "x"]), placed)
    os.utime(placed, (1, 1))  # made long ago, but moved here just now
    assert "day=d1/part-lost-00000.parquet" not in vacuumed(orders, days_later=0.9).files
    done = vacuumed(orders, days_later=1.1)
    assert (done.files, done.unreferenced) == (["day=d1/part-lost-00000.parquet"], 1)
    assert done.oldest_kept == 4


def test_files_that_are_staged_stay_however_old_they_are(orders: lockgate.Table) -> None:
    area = StagingArea.create(LocalStorage(), Path(orders.location), "waits")
    staged = area.path / "new.parquet"
    pq.write_table(rows((5, "x", None)).select(["id", "x"]), staged)
    os.link(staged, Path(orders.location, "day=d1", "part-waits.parquet"))
    (Path(orders.location) / "day=d1" / "part-moved.parquet").write_bytes(b"moved here, the disk has no links")
    assert len(vacuumed(orders, days_later=100).files) == 1  # of version 3, not these two
    assert {"day=d1/part-waits.parquet", "day=d1/part-moved.parquet"} <= data_files(orders)
    area.discard()
    assert len(vacuumed(orders, days_later=100).files) == 2


def test_only_files_that_look_like_data_of_this_table_go(orders: lockgate.Table, tmp_path: Path) -> None:
    root = Path(orders.location)
    outside = tmp_path / "outside.parquet"
    outside.write_bytes(b"x")
    (root / "README.txt").write_text("keep")
    (root / "_hidden.parquet").write_bytes(b"x")
    (root / ".also.parquet").write_bytes(b"x")
    (root / "link.parquet").symlink_to(outside)
    (root / "folder").symlink_to(tmp_path)
    (root / "inner" / "_delta_log").mkdir(parents=True)
    (root / "inner" / "part.parquet").write_bytes(b"x")
    before = {p for p in root.rglob("*") if p.is_file()}
    done = vacuumed(orders, days_later=100)
    assert len(done.files) == 1
    assert before - {p for p in root.rglob("*") if p.is_file()} == {root / done.files[0]}
    assert outside.exists()


def test_what_is_not_published_yet_is_still_read_elsewhere(
    orders: lockgate.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_args: object, **_more: object) -> None:
        raise lockgate.StorageError("disk full")

    with monkeypatch.context() as patch:
        patch.setattr("lockgate.storage.local.LocalStorage.put_if_absent", full)
        orders.overwrite(rows((8, "a", "d1")))
        done = vacuumed(orders, days_later=1)
    assert done.oldest_kept == 4
    assert len(done.files) == 1
    assert ids(elsewhere(orders, 4)) == [1, 2, 3]


def test_tombstones_of_vacuumed_files_leave_the_checkpoints(orders: lockgate.Table) -> None:
    vacuumed(orders, days_later=1)  # 5 and 6
    for i in range(10, 15):
        orders.append(rows((i, "x", "d1")))
    checkpoint = pq.read_table(Path(orders.location, "_delta_log", f"{10:020}.checkpoint.parquet"))
    assert checkpoint.column("remove").null_count == checkpoint.num_rows
    assert ids(elsewhere(orders)) == [1, 2, 3, 10, 11, 12, 13, 14]
