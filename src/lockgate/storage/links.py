"""Safe names for files with any name: links in a private folder, for tools that take paths as SQL or as patterns."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock

from lockgate.errors import StorageError
from lockgate.storage.local import explained
from lockgate.storage.locks import FileLock, is_held

_OWNER = ".lockgate_temporary"  # without it a folder is not one of ours, whatever its name
_MADE_JUST_NOW = 60.0  # seconds; its maker may not have locked it yet


class SafeNames:
    """Hands out a plain path for every path it is given. What is read or written there is the real file."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._names: dict[str, str] = {}
        self._real: dict[str, str] = {}
        self._lock = Lock()

    def of(self, path: str | Path) -> str:
        """The safe name of a file that is there."""
        return self._link(str(Path(path).absolute()), ".parquet")

    def inside(self, folder: Path) -> Path:
        """The safe name of a folder, for files that are to be made in it."""
        return Path(self._link(str(folder.absolute()), ""))

    def _link(self, real: str, suffix: str) -> str:
        with self._lock:
            if real not in self._names:
                safe = str(self.folder / f"f{len(self._names)}{suffix}")
                with explained("link", Path(real)):
                    Path(safe).symlink_to(real)
                self._names[real] = safe
                self._real[safe] = real
            return self._names[real]

    def spelled_out(self, text: str) -> str:
        """A message with real names in place of safe ones."""
        for safe in sorted(self._real, key=len, reverse=True):
            text = text.replace(safe, self._real[safe])
        return text


@contextmanager
def safe_names() -> Iterator[SafeNames]:
    """Links that are gone when the block ends."""
    with temporary_folder("lockgate-") as folder:
        yield SafeNames(Path(folder))


@contextmanager
def temporary_folder(prefix: str) -> Iterator[str]:
    """A folder that is gone when the block ends; those of processes that died in such a block go now."""
    try:
        folder = tempfile.TemporaryDirectory(prefix=prefix)
    except OSError as error:
        raise StorageError(
            f"cannot make a folder for temporary files: {error.strerror or error}",
            in_place="nothing was written",
            hint="free some space there, or set TMPDIR to another folder",
        ) from error
    with folder as name, FileLock(Path(name) / _OWNER) as lock:
        lock.try_acquire()
        _sweep(Path(name).parent, prefix)
        yield name


def _sweep(folder: Path, prefix: str) -> None:
    for left in folder.glob(f"{prefix}*"):
        with suppress(OSError):  # somebody else's, or swept by somebody else
            young = time.time() - left.stat().st_mtime < _MADE_JUST_NOW
            if not young and (left / _OWNER).is_file() and not is_held(left / _OWNER):
                shutil.rmtree(left)
