"""A dataset folder while a merge or a write holds it: recovered, locked, with a staging area of its own."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from lockgate.errors import LockgateError, StorageError
from lockgate.storage.local import LocalStorage, explained
from lockgate.storage.locks import FileLock
from lockgate.storage.staging import StagingArea
from lockgate.targets import journal
from lockgate.targets.described import NOTHING_TO_SAY, ChangeDetails, Described
from lockgate.targets.folder import LOCK_NAME, FolderTarget
from lockgate.targets.journal import Change

log = logging.getLogger("lockgate.merge")


_NOTHING = "nothing was written"
_ALL = "the change is in place, all of it"


class DatasetFolder(FolderTarget):
    """A folder as the target of merges."""

    def exists(self) -> bool:
        with explained("look at", self.root):
            return self.root.is_dir()

    @contextmanager
    def opened(self, identity: str, *, dry_run: bool = False, staging: Path | None = None) -> Iterator[OpenFolder]:
        """Hold the folder. A dry run makes no file and finishes nothing, so it refuses a folder that needs it.
        `staging`: where to stage, if not in an area that ends with the block."""
        folder = OpenFolder(self, identity, staging)
        try:
            self.refuse_delta()
            if dry_run:
                with self._looked_at():
                    yield folder
                return
            with self.locked():
                try:
                    yield folder
                finally:
                    folder.close()
        except LockgateError as error:
            if error.in_place is None:
                error.in_place = folder.what_is_in_place()
            raise
        except KeyboardInterrupt as error:
            error.args = (folder.what_is_in_place(),)
            raise

    @contextmanager
    def _looked_at(self) -> Iterator[None]:
        lock = FileLock(self.root / LOCK_NAME)
        if lock.path.exists():
            lock.acquire(self.lock_timeout)
        with lock:
            if journal.read(self.root) is not None:
                raise StorageError(
                    f"a write to {self.root} was interrupted after it was decided, and is not finished",
                    in_place="nothing was changed",
                    hint=f"run `lockgate recover {self.root}`, then try again",
                )
            yield


class OpenFolder:
    """What a merge sees of the folder."""

    def __init__(self, target: FolderTarget, identity: str, staging: Path | None = None) -> None:
        self._target = target
        self._identity = identity
        self._given = staging  # a folder in somebody's own staging area, who makes it last and discards it
        self._area: StagingArea | None = None
        self._in_place = _NOTHING

    def files(self) -> list[str]:
        return self._target.files()

    def described(self) -> Described | None:
        return None

    def name_when_rewritten(self, name: str, number: int) -> str:
        del number
        return name

    def path_of(self, name: str) -> str:
        return str(self._target.root / name)

    def staging(self) -> Path:
        if self._given is not None:
            if not self._given.is_dir():
                self._target.storage.make_scratch_folder(self._given)
            return self._given
        if self._area is None:
            self._area = StagingArea.create(self._target.storage, self._target.root, self._identity, undisturbed=True)
        return self._area.path

    def commit(
        self, moves: Mapping[str, Path], removes: Iterable[str], details: ChangeDetails = NOTHING_TO_SAY
    ) -> None:
        """The staged files are durable already; here their names become so, then the journal, then the swap."""
        del details
        root, storage = self._target.root, self._target.storage
        for folder in sorted({staged.parent for staged in moves.values()}):
            storage.fsync_folder(folder)
        storage.fsync_folder(root)
        gone = tuple(removes)
        change = Change(
            identity=self._identity,
            staging=self.staging().relative_to(root).as_posix() if moves else ".",
            moves=tuple((staged.relative_to(root).as_posix(), name) for name, staged in moves.items()),
            removes=gone,
        )
        made = self._make_way(change)
        try:
            self._target.commit(change)
        except BaseException:
            self._in_place = self._after_failure(change)
            if self._in_place == _NOTHING:
                _remove_empty(storage, made)
            raise
        self._in_place = _ALL

    def _make_way(self, change: Change) -> list[Path]:
        """A change that is decided must be possible: find out first. Returns the folders made for it."""
        root, storage = self._target.root, self._target.storage
        made: list[Path] = []
        try:
            for folder in sorted({(root / name).parent for _, name in change.moves}):
                made += storage.make_folders(folder)
            for folder in sorted({(root / n).parent for n in [*(f for _, f in change.moves), *change.removes]}):
                storage.require_writable(folder, beside=root)
        except LockgateError:
            _remove_empty(storage, made)
            raise
        return made

    def what_is_in_place(self) -> str:
        """What is true of the data when a step has failed."""
        return self._in_place

    def _after_failure(self, change: Change) -> str:
        root = self._target.root
        if self._is_decided():
            return (
                "the change is decided, and in place in part; "
                f"the next write, or `lockgate recover {root}`, finishes it"
            )
        left = [staged for staged, _ in change.moves] + list(change.removes)
        return _NOTHING if any((root / name).exists() for name in left) else _ALL

    def _is_decided(self) -> bool:
        return (self._target.root / journal.JOURNAL_NAME).exists()

    def close(self) -> None:
        """Discard what was staged, unless a decided change still needs it: then whoever comes next finishes it.
        What cannot be discarded now is swept by the next writer, so that is no failure of the write."""
        if self._area is None:
            return
        if self._is_decided():
            self._area.release()
        else:
            try:
                self._area.discard()
            except StorageError as error:
                log.warning("staged files could not be removed, the next write will: %s", error)
        self._area = None


def _remove_empty(storage: LocalStorage, folders: list[Path]) -> None:
    for folder in reversed(folders):
        with suppress(StorageError):  # an empty folder is in nobody's way
            storage.remove_folder_if_empty(folder)
