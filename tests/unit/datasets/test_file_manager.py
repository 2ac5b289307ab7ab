"""Test staging and atomic replace operations; test cleanup on success and failure paths."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from pyarrow import fs

from lockgate.datasets.file_manager import IncrementalFileManager
from lockgate.errors import StorageError
from lockgate.storage.local import LocalStorage
from lockgate.targets.folder import LOCK_NAME, FolderTarget, recover
from support.faults import Fault, FaultyStorage, run_in_child, was_killed

OLD = {"a.parquet": "old a", "p=1/b.parquet": "old b"}
NEW = {"a.parquet": "new a", "p=1/b.parquet": "new b", "p=2/c.parquet": "new c"}


@pytest.fixture
def base(tmp_path: Path) -> Path:
    for name, text in OLD.items():
        (tmp_path / "ds" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "ds" / name).write_text(text)
    return tmp_path / "ds"


def content(base: Path) -> dict[str, str]:
    return {name: (base / name).read_text() for name in FolderTarget(base, LocalStorage()).files()}


def staged(manager: IncrementalFileManager, base: Path) -> tuple[list[str], list[str]]:
    folder = Path(manager.create_staging_directory(str(base)))
    sources = []
    for number, text in enumerate(NEW.values()):
        (folder / f"{number}.parquet").write_text(text)
        sources.append(str(folder / f"{number}.parquet"))
    return sources, [f"{base}/{name}" for name in NEW]


def leftovers(base: Path) -> list[str]:
    return [p.name for p in base.iterdir() if p.name.startswith(".") and p.name != LOCK_NAME]


def test_staging_is_hidden_inside_the_dataset_and_ours_while_we_live(base: Path) -> None:
    manager = IncrementalFileManager()
    folder = Path(manager.create_staging_directory(str(base)))
    assert folder.parent == base.resolve()
    assert re.fullmatch(r"\.staging_[0-9a-f]{32}", folder.name)
    recover(base)
    assert folder.is_dir()
    assert content(base) == OLD
    manager.cleanup_staging_files()
    assert leftovers(base) == []


def test_all_files_are_replaced(base: Path) -> None:
    (base / "a.parquet").chmod(0o640)
    manager = IncrementalFileManager()
    manager.atomic_replace_files(*staged(manager, base), filesystem=fs.LocalFileSystem())
    assert content(base) == NEW
    assert (base / "a.parquet").stat().st_mode & 0o777 == 0o640
    manager.cleanup_staging_files()
    assert leftovers(base) == []
    manager.atomic_replace_files([], [])


def test_relative_paths(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(base.parent)
    with IncrementalFileManager() as manager:
        sources, _ = staged(manager, Path("ds"))
        manager.atomic_replace_files([os.path.relpath(s) for s in sources], [f"ds/{name}" for name in NEW])
    assert content(base) == NEW
    assert leftovers(base) == []


def test_cleanup_on_failure(base: Path) -> None:
    def failing() -> None:
        with IncrementalFileManager() as manager:
            staged(manager, base)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        failing()
    assert content(base) == OLD
    assert leftovers(base) == []


@pytest.mark.parametrize(
    "case",
    ["lengths", "gone", "source outside", "target outside", "dots", "hidden", "folder", "twice", "link", "chain"],
)
def test_what_a_journal_could_not_finish_is_refused_before_anything_changes(base: Path, case: str) -> None:
    (base.parent / "other").mkdir()
    (base.parent / "other/x.parquet").write_text("other")
    (base / "way out").symlink_to(base.parent / "other")
    with IncrementalFileManager() as manager:
        sources, targets = staged(manager, base)
        match case:
            case "lengths":
                targets.pop()
            case "gone":
                Path(sources[1]).unlink()
            case "source outside":
                sources[1] = str(base.parent / "other/x.parquet")
            case "target outside":
                targets[1] = str(base.parent / "other/x.parquet")
            case "dots":
                targets[1] = f"{base}/../other/x.parquet"
            case "hidden":
                targets[1] = f"{base}/.lockgate_journal"
            case "folder":
                targets[1] = f"{base}/p=1"
            case "twice":
                targets[1] = targets[0]
            case "link":
                targets[1] = f"{base}/way out/x.parquet"
            case "chain":
                sources[1] = targets[0]
        with pytest.raises(StorageError) as caught:
            manager.atomic_replace_files(sources, targets)
        assert caught.value.in_place
        assert caught.value.hint
    (base / "way out").unlink()
    assert content(base) == OLD
    assert (base.parent / "other/x.parquet").read_text() == "other"
    assert leftovers(base) == []


def test_a_manager_replaces_only_where_it_stages(base: Path) -> None:
    with pytest.raises(StorageError, match="stages for") as caught:
        IncrementalFileManager().atomic_replace_files([str(base / "a.parquet")], [str(base / "b.parquet")])
    assert caught.value.hint


def test_a_remote_filesystem_is_refused(base: Path) -> None:
    with IncrementalFileManager() as manager, pytest.raises(StorageError, match="local"):
        manager.atomic_replace_files(*staged(manager, base), filesystem=fs.SubTreeFileSystem("/", fs.LocalFileSystem()))
    assert content(base) == OLD


def steps_of_a_replacement(base: Path) -> list[tuple[str, Path]]:
    storage = FaultyStorage()
    with IncrementalFileManager(storage) as manager:
        sources, targets = staged(manager, base)
        storage.steps.clear()
        manager.atomic_replace_files(sources, targets)
        return list(storage.steps)


def test_sources_are_on_disk_before_the_journal_is(base: Path) -> None:
    steps = steps_of_a_replacement(base)
    journal = next(i for i, (_, path) in enumerate(steps) if ".lockgate_journal" in path.name)
    synced = [path.name for step, path in steps[:journal] if step == "fsync"]
    assert [name for name in synced if name.endswith(".parquet")] == ["0.parquet", "1.parquet", "2.parquet"]
    assert any(step == "fsync_folder" and path.name.startswith(".staging_") for step, path in steps[:journal])


@pytest.mark.parametrize("fault", ["EIO", "kill before", "kill after"])
def test_whatever_fails_or_dies_it_is_all_or_nothing(tmp_path: Path, fault: Fault) -> None:
    """At every step: after recovery the dataset is wholly old or wholly new, and nothing is left behind."""

    def fresh(name: str) -> Path:
        for file, text in OLD.items():
            (tmp_path / name / file).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name / file).write_text(text)
        return tmp_path / name

    count = len(steps_of_a_replacement(fresh("count")))
    outcomes = []
    for at in range(count):
        base = fresh(f"{fault}-{at}")

        def attempt(base: Path = base, at: int = at) -> None:
            storage = FaultyStorage()
            with IncrementalFileManager(storage) as manager:
                sources, targets = staged(manager, base)
                storage.at, storage.fault = len(storage.steps) + at, fault
                manager.atomic_replace_files(sources, targets)

        if fault == "EIO":
            with pytest.raises(StorageError):
                attempt()
        else:
            assert was_killed(run_in_child(attempt))
        recover(base)
        found = content(base)
        assert found in (OLD, NEW), at
        outcomes.append(found == NEW)
        assert leftovers(base) == [], at
    assert outcomes == sorted(outcomes)  # from one step on it is decided
    assert set(outcomes) == {False, True}
