"""Imports into a log in SQLite and in PostgreSQL are the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lockgate.config import Project
from lockgate.errors import TableExists, TableNotFound
from lockgate.tables.importing import import_existing
from lockgate.tables.releasing import release
from lockgate.txlog.reading_features import BOTH
from support.deletion_vectors import inline
from support.delta_logs import add, info, metadata, protocol, remove, write_checkpoint, write_log
from support.txlogs import Place, place

ODD = "ü \\ \\n \" ' \t $1 {} , %"
FEATURES = protocol(3, 7, ["deletionVectors", "domainMetadata"], ["deletionVectors"])


@pytest.fixture(params=["sqlite", "postgres"])
def somewhere(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    server = request.getfixturevalue("postgres") if request.param == "postgres" else None
    return place(tmp_path, request.param, server)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """What a commit can say, with texts that a database could stumble over."""
    stats = json.dumps({"numRecords": 3, "minValues": {"day": ODD}})
    many = [add(f"m{n}", {"day": str(n % 7)}, stats=stats) for n in range(500)]
    more: dict[str, Any] = {"baseRowId": 2**62, "defaultRowCommitVersion": 3, "clusteringProvider": ODD}
    domain = {"domain": "mine", "configuration": ODD, "removed": False}
    return write_log(
        tmp_path / "t",
        [info(note=ODD), FEATURES, metadata(partition_by=["day"], mine=ODD), *many],
        [info(), {"txn": {"appId": ODD, "version": -3}}, {"domainMetadata": domain}],
        [info(), remove("m0", deletionVector=None), add("a", {"day": ODD}, stats=stats, tags={ODD: ODD}, **more)],
        [info(), remove("a"), add("a", {"day": ODD}, stats=stats, deletionVector=inline([1]))],
        [info(), {"domainMetadata": {**domain, "removed": True}}, {"txn": {"appId": ODD, "version": 9}}],
    )


def test_a_history_is_the_same_in_both(somewhere: Place, table: Path, tmp_path: Path) -> None:
    with somewhere.open() as log:
        imported = import_existing(Project(tmp_path), "t", table, log=log)
        assert (imported.version, imported.files) == (4, 500)
        counts = [log.snapshot("t", version=v, understood=BOTH).files.num_rows for v in range(5)]
        assert counts == [500, 500, 500, 500, 500]
        newest = log.snapshot("t", understood=BOTH)
        assert newest.transactions[ODD].version == 9
        assert log.snapshot("t", version=1).transactions[ODD].version == -3
        assert log.snapshot("t", version=1).domains["mine"].configuration == ODD
        assert "mine" not in newest.domains
        assert newest.metadata.configuration["mine"] == ODD
        (row,) = [row for row in newest.files.to_pylist() if row["path"] == "a"]
        assert json.loads(row["partition_values"]) == {"day": ODD}
        assert json.loads(row["stats"])["minValues"]["day"] == ODD
        (before,) = [row for row in log.snapshot("t", version=2).files.to_pylist() if row["path"] == "a"]
        assert json.loads(before["tags"]) == {ODD: ODD}
        found = [action for change in log.changes("t", 2, 2) for action in change.actions]
        (added,) = [action for action in found if action.key == "add"]
        assert (added.base_row_id, added.clustering_provider) == (2**62, ODD)  # type: ignore[union-attr]
        record = log.table("t")
        assert (record.current_version, record.published_version, record.lag) == (4, 4, 0)
        with pytest.raises(TableExists):
            import_existing(Project(tmp_path), "t", table, log=log)


def test_a_table_is_written_to_released_and_imported_again(somewhere: Place, table: Path, tmp_path: Path) -> None:
    with somewhere.open(publish=False) as log:
        import_existing(Project(tmp_path), "t", table, log=log)
        assert log.commit("t", 5, [add("b", {"day": "1"}), remove("m1")]) == 5
        assert release(Project(tmp_path), "t", log=log).version == 5
        assert (table / "_delta_log" / f"{5:020}.json").exists()
        with pytest.raises(TableNotFound):
            log.table("t")
        again = import_existing(Project(tmp_path), "again", table, log=log)
        assert (again.version, again.files) == (5, 500)


def test_a_history_that_begins_with_a_checkpoint(somewhere: Place, tmp_path: Path) -> None:
    folder = tmp_path / "c"
    write_checkpoint(folder, 10, [protocol(), metadata(), add("a"), remove("z"), {"txn": {"appId": "x", "version": 1}}])
    write_log(folder, [info(), add("b")], first=11)
    with somewhere.open() as log:
        assert import_existing(Project(tmp_path), "c", folder, log=log).first_version == 10
        assert log.snapshot("c", version=10).files["path"].to_pylist() == ["a"]
        assert log.snapshot("c").transactions["x"].version == 1
        assert log.commit("c", 12, [add("n")]) == 12
        assert log.publish("c") == {"c": 1}
        with pytest.raises(TableNotFound, match="its newest is 12, its oldest 10"):
            log.snapshot("c", version=9)
        assert [record.version for record in log.history("c")] == [12, 11, 10]


def test_commit_times_stay_in_the_commits_where_the_table_asks_for_them(somewhere: Place, tmp_path: Path) -> None:
    folder = tmp_path / "i"
    far = 4_000_000_000_000  # later than any clock here says
    times = metadata(delta__enableInCommitTimestamps="true")
    write_log(folder, [info(inCommitTimestamp=far), protocol(1, 7, ["inCommitTimestamp"]), times])
    with somewhere.open() as log:
        import_existing(Project(tmp_path), "i", folder, log=log)
        log.commit("i", 1, [add("a"), {"commitInfo": {"inCommitTimestamp": 5}}])
        log.publish("i")
        assert log.snapshot("i").timestamp == far + 1
    line = (folder / "_delta_log" / f"{1:020}.json").read_text().splitlines()[0]
    assert json.loads(line)["commitInfo"]["inCommitTimestamp"] == far + 1
