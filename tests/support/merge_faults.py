"""Faults for merges, whose files are staged by several threads at once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from threading import Lock
from typing import TypeVar

from support.faults import Fault, FaultyStorage

T = TypeVar("T")


class NumberedSteps(FaultyStorage):
    """As FaultyStorage, but one step at a time: no two threads get one number, so no number is passed over."""

    def __init__(self, at: int | None = None, fault: Fault = "EIO", only: tuple[str, ...] = ()) -> None:
        super().__init__(at, fault, only)
        self._one_at_a_time = Lock()

    def _do(self, step: str, path: Path, action: Callable[[], T]) -> T:
        with self._one_at_a_time:
            if len(self.steps) == self.at and self.fault == "kill after":
                # A step may end in an error that its caller expects, such as a folder that is not empty.
                super()._do(step, path, lambda: _in_any_case(action))
            return super()._do(step, path, action)


def _in_any_case(action: Callable[[], T]) -> T | None:
    try:
        return action()
    except OSError:
        return None
