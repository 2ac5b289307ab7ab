"""`restore`: a new version with the files of an old one."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

import lockgate
from support.care import elsewhere, ids, rows


def test_every_version_comes_back_and_other_readers_see_it(orders: lockgate.Table) -> None:
    then = {v: orders.at(version=v).to_arrow().sort_by("id") for v in range(5)}
    for version in (1, 4, 0, 3):
        before = orders.version
        done = orders.restore(version=version)
        assert (done.version, done.restored) == (before + 1, version)
        assert orders.to_arrow().sort_by("id").equals(then[version])
        assert elsewhere(orders).equals(then[version])
    assert orders.history()[0].operation == "RESTORE"
    assert orders.history()[0].metrics["numRestoredFiles"] == "3"


def test_by_timestamp(orders: lockgate.Table) -> None:
    moment = next(h.time for h in orders.history() if h.version == 2)
    assert orders.restore(timestamp=moment).restored == 2
    assert ids(orders) == [1, 2]


def test_what_is_the_same_already_makes_no_version(orders: lockgate.Table) -> None:
    done = orders.restore(version=4)
    assert (done.version, done.files_added, done.files_removed) == (4, 0, 0)
    assert orders.version == 4


def test_schema_and_properties_come_back(orders: lockgate.Table) -> None:
    more = pa.table({"id": [9], "x": ["n"], "day": ["d1"], "y": [1.5]})
    orders.append(more, schema="evolve")
    orders.restore(version=2)
    assert orders.schema.names == ["id", "x", "day"]
    orders.restore(version=5)
    assert orders.schema.names == ["id", "x", "day", "y"] or set(orders.schema.names) == {"id", "x", "day", "y"}
    assert ids(orders) == [1, 2, 3, 9]


def test_files_that_are_gone_are_named_and_nothing_changes(orders: lockgate.Table) -> None:
    names = orders.at(version=3).files().column("path").to_pylist()
    lost = next(n for n in names if n not in orders.files().column("path").to_pylist())
    Path(orders.location, lost).unlink()
    with pytest.raises(lockgate.StorageError, match="1 of its files are gone") as caught:
        orders.restore(version=3)
    assert lost in caught.value.message
    assert orders.version == 4


def test_a_file_that_is_not_what_it_was_is_refused(orders: lockgate.Table) -> None:
    names = orders.at(version=3).files().column("path").to_pylist()
    other = next(n for n in names if n not in orders.files().column("path").to_pylist())
    Path(orders.location, other).write_bytes(b"PAR1")
    with pytest.raises(lockgate.StorageError, match="do not have their size"):
        orders.restore(version=3)


def test_statistics_and_partition_values_are_those_of_before(orders: lockgate.Table) -> None:
    before = orders.at(version=3).files().sort_by("path")
    orders.restore(version=3)
    after = orders.files().sort_by("path")
    for name in ("path", "stats", "partition_values", "size", "modification_time"):
        assert after.column(name).equals(before.column(name)), name
    published = Path(orders.location, "_delta_log", f"{5:020}.json").read_text().splitlines()
    assert all(json.loads(line)["add"]["dataChange"] for line in published if "add" in json.loads(line))


def test_what_was_committed_meanwhile_is_decided_upon_again(
    orders: lockgate.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    from lockgate.tables import restoring

    real, appended = restoring._require_there, []

    def slow(*args: object) -> None:
        real(*args)  # type: ignore[arg-type]
        if not appended:
            appended.append(orders.append(rows((7, "late", "d1"))).version)

    monkeypatch.setattr(restoring, "_require_there", slow)
    done = orders.restore(version=3)
    assert (appended, done.version) == ([5], 6)
    assert ids(orders) == [1, 2, 3]  # the row that came in between is not of version 3


def test_there_is_no_such_version(orders: lockgate.Table) -> None:
    with pytest.raises(lockgate.TableNotFound):
        orders.restore(version=99)
    with pytest.raises(lockgate.ArgumentError):
        orders.restore()
