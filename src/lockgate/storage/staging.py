"""Staging areas: hidden folders beside a destination where its next content is made ready.

An area belongs to the process that holds the lock on its `owner` file. An area whose owner is dead is swept by
whoever comes next, unless it is *sealed*: then a run has promised to publish it, and only that run's record may
decide about it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from lockgate.storage.local import LocalStorage
from lockgate.storage.locks import FileLock, is_held

PREFIX = ".staging_"
_UNBORN = ".staging-new_"  # not yet locked by its owner, so not yet to be judged by a sweep
_UNBORN_IS_DEAD_AFTER = 3600.0
_OWNER = "owner"
_SEALED = "sealed"


@dataclass
class StagingArea:
    """One `.staging_<id>` folder. `rows` is where Spark writes; the rest of the folder is the destination's."""

    path: Path
    storage: LocalStorage
    made_folders: list[Path] = field(default_factory=list)
    _lock: FileLock | None = None

    @classmethod
    def create(cls, storage: LocalStorage, beside: Path, identity: str, *, undisturbed: bool = False) -> StagingArea:
        """Make an area inside the folder `beside`, making that folder too where it is missing. `undisturbed`: the
        caller holds the lock without which nobody sweeps there, so the area needs no other name while it is made."""
        made = storage.make_folders(beside)
        final = area_path(beside, identity)
        unborn = final if undisturbed else _unborn_path(final)
        try:
            # Not synced: an area matters only once it is sealed, and sealing syncs it with its folder.
            storage.make_scratch_folder(unborn)
            owner = {"id": identity, "made_folders": [str(p) for p in made]}
            storage.write_scratch(unborn / _OWNER, json.dumps(owner).encode())
            lock = FileLock(unborn / _OWNER)
            lock.try_acquire()
            if unborn != final:
                storage.replace(unborn, final)
        except BaseException:
            storage.remove_tree(unborn)
            _remove_made(storage, made)
            raise
        return cls(final, storage, made, lock)

    @classmethod
    def reopen(cls, storage: LocalStorage, path: Path) -> StagingArea:
        """An area left by a run that is being resumed or swept."""
        made: list[Path] = []
        with suppress(OSError, ValueError, KeyError):
            made = [Path(p) for p in json.loads((path / _OWNER).read_bytes())["made_folders"]]
        return cls(path, storage, made)

    @property
    def rows(self) -> Path:
        return self.path / "rows"

    @property
    def exists(self) -> bool:
        return self.path.is_dir()

    def seal(self) -> None:
        """Promise to publish: from now on no sweep touches this area."""
        if not (self.path / _SEALED).exists():
            self.storage.write(self.path / _SEALED, b"")
            self.storage.fsync_folder(self.path)
            self.storage.fsync_folder(self.path.parent)

    def discard(self) -> None:
        """Remove the area, and the folders that were made for it if nothing else came to live in them."""
        self.release()
        if is_sealed(self.path):  # first, so that what a failing removal leaves is swept by whoever comes next
            self.storage.remove(self.path / _SEALED)
        self.storage.remove_tree(self.path)
        if _unborn_path(self.path).exists():
            self.storage.remove_tree(_unborn_path(self.path))
        _remove_made(self.storage, self.made_folders)

    def release(self) -> None:
        if self._lock:
            self._lock.release()
            self._lock = None


def area_path(beside: Path, identity: str) -> Path:
    """Where the area of that identity is, or will be: known before it is made, so that it can be on record first."""
    return beside / f"{PREFIX}{identity}"


def _unborn_path(area: Path) -> Path:
    return area.with_name(_UNBORN + area.name.removeprefix(PREFIX))


def areas(folder: Path) -> Iterator[Path]:
    """The staging areas inside `folder`, whoever owns them."""
    with suppress(FileNotFoundError, NotADirectoryError):
        yield from sorted(p for p in folder.iterdir() if p.name.startswith(PREFIX) and p.is_dir())


def is_sealed(area: Path) -> bool:
    return (area / _SEALED).exists()


def has_dead_unborn(folder: Path) -> bool:
    """Whether somebody died long ago while making an area."""
    with suppress(FileNotFoundError, NotADirectoryError):
        return any(_is_dead(p) for p in folder.iterdir() if p.name.startswith(_UNBORN))
    return False


def _is_dead(unborn: Path) -> bool:
    return time.time() - unborn.stat().st_mtime > _UNBORN_IS_DEAD_AFTER


def sweep(storage: LocalStorage, folder: Path) -> list[Path]:
    """Remove the areas in `folder` that a dead process left unsealed; returns them."""
    swept = []
    for area in areas(folder):
        if is_held(area / _OWNER) or is_sealed(area):  # in this order: an owner may seal and die in between
            continue
        StagingArea.reopen(storage, area).discard()
        swept.append(area)
    with suppress(FileNotFoundError, NotADirectoryError):
        for unborn in [p for p in folder.iterdir() if p.name.startswith(_UNBORN)]:
            if _is_dead(unborn):
                storage.remove_tree(unborn)
                swept.append(unborn)
    return swept


def _remove_made(storage: LocalStorage, made: list[Path]) -> None:
    for folder in reversed(made):
        if not storage.remove_folder_if_empty(folder):
            break
