"""A folder of Parquet files as one table: which files are its data, and how changes to it are committed."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from lockgate.errors import StorageError
from lockgate.storage import staging
from lockgate.storage.local import LocalStorage, explained
from lockgate.storage.locks import FileLock
from lockgate.storage.s3_address import is_s3
from lockgate.targets import journal
from lockgate.targets.journal import Change

LOCK_NAME = ".lockgate_lock"
DEFAULT_LOCK_TIMEOUT = 60.0
_SUMMARY = "_metadata"  # lists the row groups of all files, and so is wrong as soon as one of them changes


@dataclass(frozen=True)
class RecoveryReport:
    """What opening a dataset after a crash had to do."""

    path: str
    finished: str | None = None  # the id of the change that was rolled forward
    files_moved: int = 0
    files_removed: int = 0
    staging_swept: list[str] = field(default_factory=list)
    staging_kept: list[str] = field(default_factory=list)  # sealed by a run that `lockgate resume` can finish
    uploads_aborted: list[str] = field(default_factory=list)  # on S3: the objects that they would have become
    uploads_kept: list[str] = field(default_factory=list)  # young, or of a run that can be resumed

    def __str__(self) -> str:
        said = []
        if self.uploads_aborted:
            said.append(f"aborted {len(self.uploads_aborted)} open upload(s) of dead writers")
        if self.uploads_kept:
            said.append(f"kept {len(self.uploads_kept)} open upload(s) that may still be needed")
        if self.finished:
            said.append(
                f"finished the interrupted change {self.finished}: "
                f"{self.files_moved} files moved in, {self.files_removed} removed"
            )
        if self.staging_swept:
            said.append(f"swept {len(self.staging_swept)} staging folder(s) of dead writers")
        if self.staging_kept:
            said.append(
                f"kept {len(self.staging_kept)} staged result(s) of an unfinished run; `lockgate runs` shows it"
            )
        return f"{self.path}: " + ("; ".join(said) if said else "nothing to recover")


def is_hidden(name: str) -> bool:
    """Names that readers such as Spark do not take for data; `_day=1` is a partition of a column named `_day`."""
    return name.startswith(".") or (name.startswith("_") and "=" not in name)


class FolderTarget:
    """A dataset folder. Change it inside `with target.locked():`, which recovers it first."""

    def __init__(self, root: Path, storage: LocalStorage, *, lock_timeout: float = DEFAULT_LOCK_TIMEOUT) -> None:
        self.root = root
        self.storage = storage
        self.lock_timeout = lock_timeout

    def files(self) -> list[str]:
        """The data files, relative to the folder, sorted: Parquet files with no hidden part in their path."""
        with explained("list", self.root):
            return sorted(self._walk(self.root, ""))

    def _walk(self, folder: Path, prefix: str) -> Iterator[str]:
        if not folder.is_dir():
            return
        with explained("list", folder), os.scandir(folder) as entries:
            for entry in entries:
                if entry.name == journal.JOURNAL_NAME and prefix:
                    raise StorageError(
                        f"{folder} was written to as a dataset of its own, and that write is not finished",
                        in_place="nothing was changed",
                        hint=f"run `lockgate recover {folder}`, then try again",
                    )
                if is_hidden(entry.name):
                    continue
                with explained("look at", Path(entry.path)):
                    is_folder = entry.is_dir()
                if entry.is_symlink() and is_folder:
                    raise StorageError(
                        f"{entry.path} is a link to a folder inside a dataset; what is behind it may not be ours",
                        in_place="nothing was changed",
                        hint="move the files into the dataset, or the link out of it",
                    )
                if is_folder:
                    yield from self._walk(Path(entry.path), f"{prefix}{entry.name}/")
                elif entry.name.lower().endswith(".parquet"):
                    yield prefix + entry.name

    def refuse_delta(self) -> None:
        """The files of a Delta table are what its log says; changed behind its back, the table would be broken."""
        try:
            with explained("look at", self.root):
                is_delta = (self.root / "_delta_log").is_dir()
        except StorageError as error:
            error.in_place = "nothing was written"
            raise
        if is_delta:
            raise StorageError(
                f"{self.root} is a Delta table, not a plain folder of Parquet files",
                in_place="nothing was written",
                hint="choose another folder",
            )

    @contextmanager
    def locked(self) -> Iterator[RecoveryReport]:
        """Hold the writers' lock; on the way in, finish what a dead writer had decided and sweep what it had not."""
        self.storage.make_folders(self.root)
        with FileLock(self.root / LOCK_NAME) as lock:
            lock.acquire(self.lock_timeout)
            yield self._recover()

    def _recover(self) -> RecoveryReport:
        journal.remove_drafts(self.storage, self.root)
        pending = journal.read(self.root)
        if pending:
            journal.carry_out(self.storage, self.root, pending)
        swept = staging.sweep(self.storage, self.root)
        return RecoveryReport(
            path=str(self.root),
            finished=pending.identity if pending else None,
            files_moved=len(pending.moves) if pending else 0,
            files_removed=len(pending.removes) if pending else 0,
            staging_swept=[str(p) for p in swept],
            staging_kept=[str(p) for p in staging.areas(self.root) if staging.is_sealed(p)],
        )

    def commit(self, change: Change) -> None:
        """Decide the change, then carry it out. The caller holds the lock and has made the staged files durable."""
        names = [*(final for _, final in change.moves), *change.removes]
        # os.path, since a name that is too long is simply not there
        stale = tuple(name for name in _said_of(names) if os.path.exists(self.root / name))
        change = replace(change, clears=stale)
        journal.write(self.storage, self.root, change)
        journal.carry_out(self.storage, self.root, change)


def _said_of(names: Iterable[str]) -> Iterator[str]:
    """Files that describe data files, and that readers believe: the summary of all, and Hadoop's checksum of each."""
    yield _SUMMARY
    for name in names:
        folder, slash, file = name.rpartition("/")
        yield f"{folder}{slash}.{file}.crc"


def recover(path: str | Path, *, s3_connection: str | None = None) -> RecoveryReport:
    """Finish or undo an interrupted write to the dataset at `path`, or sweep dead staging beside a file.

    >>> import tempfile
    >>> print(recover(tempfile.mkdtemp()))  # doctest: +ELLIPSIS
    /...: nothing to recover
    """
    if is_s3(str(path)):
        from lockgate.targets.s3_recovery import recover_s3

        return recover_s3(str(path), connection=s3_connection)
    storage = LocalStorage()
    target = Path(path).resolve()
    if not target.is_dir():
        swept = sweep_dead_staging(storage, target.parent)
        kept = [str(p) for p in staging.areas(target.parent) if staging.is_sealed(p)]
        return RecoveryReport(path=str(target), staging_swept=[str(p) for p in swept], staging_kept=kept)
    if not needs_recovery(target):
        return RecoveryReport(path=str(target))
    with FolderTarget(target, storage).locked() as report:
        return report


def sweep_dead_staging(storage: LocalStorage, folder: Path) -> list[Path]:
    """Remove what dead writers left in `folder`, which may be a dataset: then only under its lock, and not while a
    decided change may still need it. Waits for nobody; whoever opens the dataset sweeps too."""
    if not (folder / LOCK_NAME).exists() and not (folder / journal.JOURNAL_NAME).exists():
        return staging.sweep(storage, folder)
    with FileLock(folder / LOCK_NAME) as lock:
        if not lock.try_acquire() or (folder / journal.JOURNAL_NAME).exists():
            return []
        return staging.sweep(storage, folder)


def needs_recovery(root: Path) -> bool:
    """Whether a write to this folder may have been interrupted. Looks only, so that any folder can be asked."""
    return (root / journal.JOURNAL_NAME).exists() or any(staging.areas(root)) or staging.has_dead_unborn(root)
