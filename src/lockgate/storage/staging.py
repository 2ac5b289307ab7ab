"""Staging areas: hidden folders beside a destination where its next content is made ready.

An area belongs to the process that holds the lock on its `owner` file. An area whose owner is dead is swept by
whoever comes next, unless it is *sealed*: then a run has promised to publish it, and only that run's record may
decide about it.

A *shared* area is filled by several processes, perhaps on several machines, so no lock can speak for them. Until one
process adopts it to publish it, it lives as long as the process that was written down as its keeper. Where nobody can
tell about that process, it lives for a day after it was last touched.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lockgate.storage.local import LocalStorage, explained
from lockgate.storage.locks import FileLock, is_held
from lockgate.storage.processes import is_alive, process_note

PREFIX = ".staging_"
_UNBORN = ".staging-new_"  # not yet locked by its owner, so not yet to be judged by a sweep
_UNBORN_IS_DEAD_AFTER = 3600.0
_SHARED_IS_DEAD_AFTER = 24 * 3600.0
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
        return cls(path, storage, [Path(p) for p in _owner_of(path).get("made_folders", ())])

    @classmethod
    def adopt(cls, storage: LocalStorage, beside: Path, identity: str) -> StagingArea:
        """Become the owner of a shared area. Who still writes to it under its old name finds it gone."""
        final = area_path(beside, identity)
        lock = FileLock(_unborn_path(final) / _OWNER)
        lock.try_acquire()
        storage.replace(_unborn_path(final), final)
        area = cls.reopen(storage, final)
        area._lock = lock
        return area

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


def share(storage: LocalStorage, beside: Path, identity: str, *, keeper: int) -> Path:
    """Make a shared area inside the folder `beside` and return it. `keeper` is a process that lives as long as
    anybody fills the area."""
    made = storage.make_folders(beside)
    shared = _unborn_path(area_path(beside, identity))
    try:
        storage.make_scratch_folder(shared)
        owner = {"id": identity, "made_folders": [str(p) for p in made], "keeper": process_note(keeper)}
        storage.write_scratch(shared / _OWNER, json.dumps(owner).encode())
    except BaseException:
        storage.remove_tree(shared)
        _remove_made(storage, made)
        raise
    return shared


def touch(shared: Path) -> None:
    """Say that a shared area is in use."""
    with explained("write to", shared):
        os.utime(shared)


def abandon(storage: LocalStorage, beside: Path, identity: str) -> None:
    """Remove a shared area, adopted or not, unless its new owner is at work; one that is gone already is fine."""
    final = area_path(beside, identity)
    if _unborn_path(final).is_dir():
        StagingArea.adopt(storage, beside, identity).discard()  # renamed first: nobody fills it while it is removed
    elif final.is_dir() and not is_held(final / _OWNER):
        StagingArea.reopen(storage, final).discard()


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
    idle = time.time() - unborn.stat().st_mtime
    keeper = _owner_of(unborn).get("keeper")
    if not isinstance(keeper, dict):
        return idle > _UNBORN_IS_DEAD_AFTER
    alive = is_alive(keeper)
    return idle > _SHARED_IS_DEAD_AFTER if alive is None else not alive


def _owner_of(area: Path) -> dict[str, Any]:
    """What the area's owner wrote down; nothing where it cannot be read."""
    with suppress(OSError, ValueError):
        owner = json.loads((area / _OWNER).read_bytes())
        if isinstance(owner, dict):
            return owner
    return {}


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
