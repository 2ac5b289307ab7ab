"""An import is whole or not at all, refuses what is another's, and notices other writers."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import deltalake
import pyarrow as pa
import pytest

from lockgate.config import Project
from lockgate.errors import ArgumentError, DamagedLog, ForeignCommit, LogError, TableExists, TableNotFound
from lockgate.storage.log_folder import LocalLogFolder
from lockgate.tables.entry import create_table, open_table
from lockgate.tables.importing import import_existing
from lockgate.tables.opening import opened_log
from lockgate.tables.places import log_address
from lockgate.tables.releasing import release
from lockgate.txlog.existing_import import import_table
from lockgate.txlog.writer import TxnLogWriter

ROWS = pa.table({"id": [1, 2]})


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path / "project")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "lake" / "orders"
    for _ in range(3):
        deltalake.write_deltalake(str(place), ROWS, mode="append")
    return place


def tables_of(project: Project) -> list[str]:
    with opened_log(log_address(project)) as log:
        return [record.name for record in log.tables()]


def test_a_table_is_imported_once(project: Project, folder: Path) -> None:
    import_existing(project, "orders", folder)
    with pytest.raises(TableExists, match="orders") as raised:
        import_existing(project, "orders", folder)
    assert "nothing was imported" in (raised.value.in_place or "")
    with pytest.raises(TableExists, match="belongs to the table orders"):
        import_existing(project, "other", folder)
    with pytest.raises(TableExists, match="belongs to the table orders"):
        import_existing(project, "other", folder / ".." / "orders")
    assert tables_of(project) == ["orders"]


def test_a_place_inside_another_table_is_refused(project: Project, tmp_path: Path) -> None:
    outer = tmp_path / "outer"
    create_table("outer", pa.schema([("id", pa.int64())]), location=outer, log=log_address(project))
    deltalake.write_deltalake(str(outer / "inner"), ROWS)
    with pytest.raises(TableExists, match="belongs to the table outer"):
        import_existing(project, "inner", outer / "inner")


def test_a_folder_that_is_no_delta_table_is_refused(project: Project, tmp_path: Path) -> None:
    for place in (tmp_path, tmp_path / "missing"):
        with pytest.raises(ArgumentError, match="no Delta table") as raised:
            import_existing(project, "t", place)
        assert raised.value.in_place == "nothing was imported"


def test_a_refused_table_leaves_nothing_in_the_log(project: Project, folder: Path) -> None:
    (folder / "_delta_log" / f"{3:020}.json").write_text("{")
    with pytest.raises(DamagedLog) as raised:
        import_existing(project, "orders", folder)
    assert str(folder) in (raised.value.in_place or "")
    assert tables_of(project) == []


class GrowingFolder(LocalLogFolder):
    """Another writer commits whenever the folder has been listed."""

    def __init__(self, table: Path, times: int) -> None:
        super().__init__(table)
        self._table = table
        self._times = times

    def names(self) -> Sequence[tuple[str, int, int]]:
        found = super().names()
        if self._times:
            self._times -= 1
            deltalake.write_deltalake(str(self._table), ROWS, mode="append")
        return found


def test_commits_of_others_meanwhile_are_imported_too(project: Project, folder: Path) -> None:
    with opened_log(log_address(project)) as log:
        table = import_table(log, "orders", str(folder), GrowingFolder(folder, 2))
        assert table.last == log.current_version("orders") == 4


def test_a_table_that_never_rests_is_not_imported(project: Project, folder: Path) -> None:
    with opened_log(log_address(project)) as log:
        with pytest.raises(ForeignCommit, match="grew"):
            import_table(log, "orders", str(folder), GrowingFolder(folder, 1_000))
        assert log.tables() == []


def test_a_commit_of_another_writer_after_the_import_is_found(project: Project, folder: Path) -> None:
    import_existing(project, "orders", folder)
    deltalake.write_deltalake(str(folder), ROWS, mode="append")
    with open_table("orders", log=log_address(project)) as table:
        with pytest.raises(ForeignCommit):
            table.append(ROWS)
        assert table.version == 2
    assert deltalake.DeltaTable(str(folder)).version() == 3
    release(project, "orders")  # the way out, as the error says
    assert import_existing(project, "orders", folder).version == 3


KILLED = """
import os, sys
from pathlib import Path
from lockgate.config import Project
from lockgate.tables.importing import import_existing
from lockgate.txlog import sqlite_store

at, calls = int(sys.argv[3]), 0
def dying(method):
    def call(self, *args):
        global calls
        calls += 1
        if calls == at:
            os._exit(9)
        return method(self, *args)
    return call
for name in ("run", "load", "write", "rows", "commit"):
    setattr(sqlite_store.SqliteTransaction, name, dying(getattr(sqlite_store.SqliteTransaction, name)))
import_existing(Project(Path(sys.argv[1])), "orders", sys.argv[2])
"""


@pytest.mark.parametrize("at", [1, 2, 4, 8, 9, 10, 11])
def test_a_killed_import_leaves_nothing_and_can_be_done_again(at: int, project: Project, folder: Path) -> None:
    command = [sys.executable, "-c", KILLED, str(project.root), str(folder), str(at)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 9, done.stderr
    assert tables_of(project) == []
    assert import_existing(project, "orders", folder).version == 2


def test_release_publishes_what_is_pending(project: Project, folder: Path) -> None:
    import_existing(project, "orders", folder)
    with TxnLogWriter.open(log_address(project), publish=False) as log:
        metadata = log.snapshot("orders").metadata
        log.commit("orders", 3, [{"metaData": _changed(metadata.schema_string, metadata.id)}])
    assert deltalake.DeltaTable(str(folder)).version() == 2
    assert release(project, "orders").version == 3
    assert deltalake.DeltaTable(str(folder)).version() == 3
    assert tables_of(project) == []


def test_release_is_refused_while_something_cannot_be_published(project: Project, folder: Path) -> None:
    import_existing(project, "orders", folder)
    with TxnLogWriter.open(log_address(project), publish=False) as log:
        metadata = log.snapshot("orders").metadata
        log.commit("orders", 3, [{"metaData": _changed(metadata.schema_string, metadata.id)}])
    deltalake.write_deltalake(str(folder), ROWS, mode="append")  # takes the name of our version 3
    with pytest.raises(ForeignCommit) as raised:
        release(project, "orders")
    assert "at version 3; published are the versions up to 2" in (raised.value.in_place or "")
    assert tables_of(project) == ["orders"]


def test_release_of_what_is_not_there(project: Project, tmp_path: Path) -> None:
    with pytest.raises(TableNotFound):
        release(project, "nothing")
    with opened_log(log_address(project)) as log:
        log.create_table("empty", str(tmp_path / "empty"))
    with pytest.raises(LogError, match="no version"):
        release(project, "empty")


def _changed(schema: str, id_: str) -> dict[str, object]:
    return {
        "id": id_,
        "format": {"provider": "parquet", "options": {}},
        "schemaString": schema,
        "partitionColumns": [],
        "configuration": {"delta.logRetentionDuration": "interval 9 days"},
    }
