"""`prune`: old versions leave the log, kept ones are as they were."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import lockgate
from lockgate.txlog import pruning
from lockgate.txlog.commits import TableCommit
from support.care import elsewhere, ids
from support.care import rows as plain


def rows(*values: tuple[int, str, str]) -> pa.Table:
    return plain(*values).append_column("y", pa.nulls(len(values), pa.int64()))


@pytest.fixture
def busy(orders: lockgate.Table) -> lockgate.Table:
    """At version 25, with checkpoints at 10 and 20."""
    orders.add_column("y", pa.int64())
    orders.set_properties({"owner": "sales"})
    for i in range(7, 26):
        if i % 5:
            orders.append(rows((i, "v", f"d{i % 3}")))
        else:
            orders.merge(rows((1, f"m{i}", "d1")), strategy="upsert", key_columns="id")
    assert orders.version == 25
    return orders


def test_kept_versions_are_as_they_were(busy: lockgate.Table) -> None:
    old = {v: busy.at(version=v) for v in range(26)}
    then = {v: (at.files(), at.schema, at.properties) for v, at in old.items()}
    done = busy.prune(keep_versions=10)
    assert (done.oldest, done.versions) == (16, 16)
    assert done.rows > 16
    for version in range(16, 26):
        at = busy.at(version=version)
        assert at.files().sort_by("path").equals(then[version][0].sort_by("path"))
        assert (at.schema, at.properties) == then[version][1:]
    assert [h.version for h in busy.history()] == list(range(25, 15, -1))
    for version in (0, 15):
        with pytest.raises(lockgate.TableNotFound, match="its oldest 16"):
            busy.at(version=version)
    assert busy.prune(keep_versions=10).rows == 0
    busy.append(rows((99, "v", "d1")))
    busy.restore(version=16)
    assert 99 not in ids(busy)
    assert ids(elsewhere(busy)) == ids(busy)


def test_by_time(busy: lockgate.Table) -> None:
    moment = next(h.time for h in busy.history() if h.version == 20)
    assert busy.prune(older_than=moment).oldest == 20
    for wrong in ({}, {"keep_versions": 1, "older_than": moment}, {"keep_versions": 0}):
        with pytest.raises(lockgate.ArgumentError):
            busy.prune(**wrong)


def test_published_files_before_the_checkpoint_go_if_asked(busy: lockgate.Table) -> None:
    log = Path(busy.location, "_delta_log")
    before = {p.name for p in log.iterdir()}
    assert busy.prune(keep_versions=4).published_files == 0
    assert {p.name for p in log.iterdir()} == before
    done = busy.prune(keep_versions=4, published_too=True)
    left = sorted(p.name for p in log.iterdir())
    assert done.published_files == 21
    assert left[0] == f"{20:020}.checkpoint.parquet"
    for version in (22, 25):
        assert ids(elsewhere(busy, version)) == ids(busy.at(version=version))


def test_what_is_not_published_stays(busy: lockgate.Table) -> None:
    for i in range(3):
        busy._log.commit("orders", None, [], operation=f"LATER {i}")
    done = busy.prune(keep_versions=1)
    assert done.oldest == 25
    assert busy._log.publish("orders") == {"orders": 3}


def test_a_commit_that_read_a_pruned_version_clashes(busy: lockgate.Table) -> None:
    read = busy.set_properties({"delta.deletedFileRetentionDuration": "interval 0 days"})
    file = busy._log.snapshot("orders").files.column("path")[0].as_py()
    busy.overwrite(rows((1, "all", "d1")))
    busy.append(rows((2, "more", "d1")))
    busy.prune(keep_versions=1)
    late = TableCommit("orders", None, [], read_version=read, read_files=[file])
    with pytest.raises(lockgate.VersionConflict, match="pruned"):
        busy._log.commit_many([late])


def test_who_is_killed_while_pruning_leaves_whole_versions(
    busy: lockgate.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {v: busy.at(version=v).files().num_rows for v in range(26)}
    real, left = type(busy._log.store).change, []
    monkeypatch.setattr(pruning, "_AT_ONCE", 3)

    class Killed(BaseException):
        pass

    def change(self: object, *args: object) -> object:
        if len(left) == 0:
            raise Killed
        left.pop()
        return real(self, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(type(busy._log.store), "change", change)
    for steps in range(1, 30):
        left[:] = [1] * steps
        try:
            busy.prune(keep_versions=6)
        except Killed:
            pass
        else:
            break
        for record in busy.history():
            assert busy.at(version=record.version).files().num_rows == files[record.version]
    left[:] = [1] * 1000
    assert busy.prune(keep_versions=6).oldest == 20
    assert [h.version for h in busy.history()] == [25, 24, 23, 22, 21, 20]
    assert busy.prune(keep_versions=6).rows == 0
