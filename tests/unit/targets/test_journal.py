from __future__ import annotations

import json
from pathlib import Path

import pytest

from lockgate.errors import JournalError, StorageError
from lockgate.storage.local import LocalStorage
from lockgate.targets import journal
from lockgate.targets.folder import FolderTarget, recover
from lockgate.targets.journal import JOURNAL_NAME, Change

CHANGE = Change(
    "one", ".staging_one", ((".staging_one/a", "new.parquet"), (".staging_one/b", "p=1/b.parquet")), ("old.parquet",)
)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / ".staging_one").mkdir()
    (tmp_path / ".staging_one/a").write_text("A")
    (tmp_path / ".staging_one/b").write_text("B")
    (tmp_path / "old.parquet").write_text("old")
    return tmp_path


def data(root: Path) -> dict[str, str]:
    return {f: (root / f).read_text() for f in FolderTarget(root, LocalStorage()).files()}


NEW = {"new.parquet": "A", "p=1/b.parquet": "B"}


def test_what_is_written_is_read(root: Path) -> None:
    assert journal.read(root) is None
    journal.write(LocalStorage(), root, CHANGE)
    assert journal.read(root) == CHANGE


def test_carried_out_once_or_half_twice_it_ends_the_same(root: Path) -> None:
    journal.write(LocalStorage(), root, CHANGE)
    (root / ".staging_one/a").replace(root / "new.parquet")  # as if a process had died here
    report = recover(root)
    assert data(root) == NEW
    assert report.finished == "one"
    assert "2 files moved in, 1 removed" in str(report)
    assert journal.read(root) is None
    assert str(recover(root)).endswith("nothing to recover")


def test_opening_the_folder_finishes_the_journal(root: Path) -> None:
    journal.write(LocalStorage(), root, CHANGE)
    with FolderTarget(root, LocalStorage()).locked():
        assert data(root) == NEW


def test_a_journal_that_misses_its_files_changes_nothing_more(root: Path) -> None:
    journal.write(LocalStorage(), root, CHANGE)
    (root / ".staging_one/b").unlink()
    with pytest.raises(JournalError, match=r"neither is there"):
        recover(root)
    assert (root / JOURNAL_NAME).exists()
    assert (root / "old.parquet").exists()


@pytest.mark.parametrize("evil", ["../outside.parquet", "/etc/passwd", "a/../../b", "", "a\0b"])
def test_a_journal_cannot_reach_out_of_its_folder(root: Path, evil: str) -> None:
    for change in (
        Change("x", ".s", (("a", evil),)),
        Change("x", ".s", ((evil, "a"),)),
        Change("x", ".s", (), (evil,)),
    ):
        journal.write(LocalStorage(), root, change)
        with pytest.raises(JournalError, match="cannot be used"):
            recover(root)
        (root / JOURNAL_NAME).unlink()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"body": {}, "sha256": "x"}', "null"])
def test_a_torn_or_foreign_journal_is_refused_and_kept(root: Path, text: str) -> None:
    (root / JOURNAL_NAME).write_text(text)
    with pytest.raises(JournalError, match="cannot be used"):
        recover(root)
    assert (root / JOURNAL_NAME).read_text() == text
    assert data(root) == {"old.parquet": "old"}


def test_a_changed_byte_is_found(root: Path) -> None:
    journal.write(LocalStorage(), root, CHANGE)
    record = json.loads((root / JOURNAL_NAME).read_text())
    record["body"]["removes"] = ["new.parquet"]
    (root / JOURNAL_NAME).write_text(json.dumps(record))
    with pytest.raises(JournalError, match="checksum"):
        recover(root)


def test_hidden_names_and_other_files_are_not_data(tmp_path: Path) -> None:
    for name in ("a.parquet", "p=1/b.parquet", "_tmp/c.parquet", ".x/d.parquet", "_e.parquet", ".f.parquet", "g.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    assert FolderTarget(tmp_path, LocalStorage()).files() == ["a.parquet", "p=1/b.parquet"]


def test_a_folder_that_is_emptied_goes_and_one_with_other_files_stays(root: Path) -> None:
    for name in ("x=1/y=2/a.parquet", "x=2/a.parquet", "x=2/README.txt"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("")
    change = Change("r", ".staging_one", (), ("x=1/y=2/a.parquet", "x=2/a.parquet"))
    FolderTarget(root, LocalStorage()).commit(change)
    assert not (root / "x=1").exists()
    assert (root / "x=2/README.txt").exists()


def test_a_link_to_a_folder_inside_a_dataset_is_refused_and_not_followed(root: Path, tmp_path_factory) -> None:
    archive = tmp_path_factory.mktemp("archive")
    (archive / "precious.parquet").write_text("keep")
    (root / "linked").symlink_to(archive)
    with pytest.raises(StorageError, match="is a link to a folder"):
        FolderTarget(root, LocalStorage()).files()
    journal.write(LocalStorage(), root, Change("x", ".staging_one", (), ("linked/precious.parquet",)))
    with pytest.raises(JournalError, match="a link leads out of the folder"):
        recover(root)
    assert (archive / "precious.parquet").read_text() == "keep"


def test_a_partition_of_a_column_with_an_underscore_is_data(tmp_path: Path) -> None:
    for name in ("_day=1/a.parquet", "_tmp/b.parquet"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text("")
    assert FolderTarget(tmp_path, LocalStorage()).files() == ["_day=1/a.parquet"]


def test_a_draft_that_was_never_decided_goes(root: Path) -> None:
    (root / f"{JOURNAL_NAME}.dead").write_text("{")
    (root / ".staging_one/owner").write_text("{}")
    recover(root)
    assert not (root / f"{JOURNAL_NAME}.dead").exists()
    assert data(root) == {"old.parquet": "old"}
