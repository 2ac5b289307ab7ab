"""What became of a call that was made elsewhere: in a process with less power than the test run."""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from lockgate.errors import LockgateError
from support import merge_processes

NOBODY = 65534


@dataclass(frozen=True)
class Outcome:
    """Nothing but text, so that it can come from another process."""

    error: str | None = None  # the class
    said: str = ""  # all that it says to a user
    is_ours: bool = False

    @property
    def is_refusal(self) -> bool:
        """An error of ours that says that nothing was written."""
        return self.is_ours and ("nothing was written" in self.said or "nothing was changed" in self.said)


def refusal_of(work: Callable[..., object], *given: Any) -> LockgateError | None:
    """The error of ours that the call ended in, where both an error and a result are right; None if it had a result."""
    try:
        work(*given)
    except LockgateError as error:
        return error
    return None


def outcome_of(work: Callable[..., object], *given: Any) -> Outcome:
    """Run `work`, a function of a module, in another process, and say how it ended."""
    answers = merge_processes.queue()
    code = merge_processes.run(_answer, answers, work, given)
    assert code == 0, f"the process ended with {code}"
    return Outcome(*answers.get())


def outcome_as_nobody(work: Callable[..., object], *given: Any) -> Outcome:
    """As `outcome_of`, without root's power to read and write everything, where the tests run as root."""
    return outcome_of(_as_nobody, work, *given)


def _as_nobody(work: Callable[..., object], *given: Any) -> None:
    # Imported while it may still read everything: what is imported late may be in a folder closed to others.
    import duckdb  # noqa: F401

    import lockgate.engines.duckdb
    import lockgate.engines.duckdb_types  # noqa: F401

    if os.getuid() == 0:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
    work(*given)


def _answer(answers: Any, work: Callable[..., object], given: tuple[Any, ...]) -> None:
    try:
        work(*given)
    except LockgateError as error:
        answers.put((type(error).__name__, error.render(), True))
    except BaseException as error:
        answers.put((type(error).__name__, traceback.format_exc(), False))
    else:
        answers.put((None, "", False))
