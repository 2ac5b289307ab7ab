from __future__ import annotations

import os
from pathlib import Path

import pytest

from lockgate.errors import StorageError
from lockgate.storage.local import LocalStorage
from support.faults import FaultyStorage


def test_a_new_file_is_synced_before_create_returns(tmp_path: Path) -> None:
    storage = FaultyStorage()
    storage.write(tmp_path / "a", b"x")
    assert [s for s, _ in storage.steps] == ["create", "fsync"]


def test_a_file_that_could_not_be_finished_is_removed(tmp_path: Path) -> None:
    storage = FaultyStorage(at=1, fault="ENOSPC")
    with pytest.raises(StorageError, match="No space left on device") as caught:
        storage.write(tmp_path / "a", b"x")
    assert "free some space" in caught.value.render()
    assert list(tmp_path.iterdir()) == []


def test_create_never_overwrites(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("old")
    with pytest.raises(StorageError):
        LocalStorage().write(tmp_path / "a", b"new")
    assert (tmp_path / "a").read_text() == "old"


def test_make_folders_says_what_it_made_and_syncs_each_parent(tmp_path: Path) -> None:
    storage = FaultyStorage()
    made = storage.make_folders(tmp_path / "a" / "b")
    assert made == [tmp_path / "a", tmp_path / "a" / "b"]
    assert storage.steps == [
        ("mkdir", tmp_path / "a"),
        ("fsync_folder", tmp_path),
        ("mkdir", tmp_path / "a" / "b"),
        ("fsync_folder", tmp_path / "a"),
    ]
    assert storage.make_folders(tmp_path / "a") == []


def test_a_file_where_a_folder_is_needed(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x")
    with pytest.raises(StorageError):
        LocalStorage().make_folders(tmp_path / "a")
    with pytest.raises(StorageError):
        LocalStorage().make_folders(tmp_path / "a" / "b")


def test_a_missing_permission_is_named(tmp_path: Path) -> None:
    storage = FaultyStorage(at=0, fault="EIO")
    with pytest.raises(StorageError, match="Input/output error") as caught:
        storage.replace(tmp_path / "a", tmp_path / "b")
    assert str(tmp_path / "b") in caught.value.message


def test_attributes_are_kept(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    old.write_text("")
    new.write_text("")
    old.chmod(0o604)
    if os.geteuid() == 0:
        os.chown(old, 4321, 4321)
    LocalStorage().keep_attributes(old, new)
    assert new.stat().st_mode & 0o777 == 0o604
    assert new.stat().st_uid == old.stat().st_uid


def test_a_folder_with_something_in_it_stays(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "x").write_text("")
    assert not LocalStorage().remove_folder_if_empty(tmp_path / "a")
    (tmp_path / "a" / "x").unlink()
    assert LocalStorage().remove_folder_if_empty(tmp_path / "a")
    assert not LocalStorage().remove_folder_if_empty(tmp_path / "a")
