"""Locks that die with their owner: flock on a file, so that a killed process holds nothing."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

from lockgate.errors import DatasetBusy
from lockgate.storage.local import explained

_PAUSE = 0.02


class FileLock:
    """An exclusive lock on a file. The file stays; only the kernel's lock on it counts."""

    def __init__(self, path: Path, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.path = path
        self._clock = clock
        self._handle: int | None = None

    def try_acquire(self) -> bool:
        """Take the lock if it is free now."""
        with explained("lock", self.path):
            while True:
                handle = _opened(self.path, os.O_CREAT)
                try:
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    os.close(handle)
                    return False
                except BaseException:
                    os.close(handle)
                    raise
                if _is_at(handle, self.path):
                    break
                os.close(handle)  # the file was removed meanwhile; the next one to come makes and locks another
        self._handle = handle
        return True

    def acquire(self, timeout: float) -> None:
        """Take the lock, waiting for a live owner at most `timeout` seconds."""
        give_up = self._clock() + timeout
        while not self.try_acquire():
            if self._clock() >= give_up:
                raise DatasetBusy(
                    f"another writer has held {self.path} for {timeout:g} s",
                    in_place="nothing was written",
                    hint="wait for it to finish and try again, or raise the timeout",
                )
            time.sleep(_PAUSE)

    def release(self) -> None:
        if self._handle is not None:
            # Not by closing alone: a child that was forked meanwhile shares the handle, and would keep the lock.
            fcntl.flock(self._handle, fcntl.LOCK_UN)
            os.close(self._handle)
            self._handle = None

    def __enter__(self) -> FileLock:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


def is_held(path: Path) -> bool:
    """Whether a live process holds the lock on `path`. A missing file is held by nobody."""
    try:
        handle = _opened(path)
    except FileNotFoundError:
        return False
    try:
        # Shared, so that two who only ask do not take each other for owners.
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False


def _opened(path: Path, flags: int = 0) -> int:
    """A handle to lock. One for reading will do where the file is another user's: locking needs no more."""
    try:
        return os.open(path, os.O_RDWR | os.O_CLOEXEC | flags, 0o666)
    except PermissionError:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)


def _is_at(handle: int, path: Path) -> bool:
    """Whether the locked file is still the one that others find under its name."""
    try:
        there = os.stat(path)
    except FileNotFoundError:
        return False
    here = os.fstat(handle)
    return (here.st_dev, here.st_ino) == (there.st_dev, there.st_ino)
