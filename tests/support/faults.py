"""A storage that stops, fails or records at a chosen step."""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Literal, TypeVar

from lockgate.storage.local import LocalStorage

T = TypeVar("T")
Fault = Literal["kill before", "kill after", "EIO", "ENOSPC"]


class FaultyStorage(LocalStorage):
    """Counts the steps that change the disk; at step `at` (from 0) it does what `fault` says."""

    def __init__(self, at: int | None = None, fault: Fault = "EIO", only: tuple[str, ...] = ()) -> None:
        self.at = at
        self.fault = fault
        self.only = only
        self.steps: list[tuple[str, Path]] = []

    def _do(self, step: str, path: Path, action: Callable[[], T]) -> T:
        number = len(self.steps)
        self.steps.append((step, path))
        if number != self.at or (self.only and step not in self.only):
            return action()
        if self.fault == "kill before":
            os.kill(os.getpid(), signal.SIGKILL)
        if self.fault == "kill after":
            action()
            os.kill(os.getpid(), signal.SIGKILL)
        number = errno.ENOSPC if self.fault == "ENOSPC" else errno.EIO
        raise OSError(number, os.strerror(number), str(path))


def run_in_child(action: Callable[[], None]) -> int:
    """Run `action` in a forked process; returns its wait status, so that a kill can be told from an end."""
    child = os.fork()
    if child == 0:
        try:
            action()
        except BaseException:
            import traceback

            traceback.print_exc()
            os._exit(70)
        os._exit(0)
    return os.waitpid(child, 0)[1]


def was_killed(status: int) -> bool:
    return os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
