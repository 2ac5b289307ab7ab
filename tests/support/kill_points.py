"""The points at which a run can be killed, in every layer: each step on the disk, each transaction of the record of
runs and of the log, each statement to a server, each commit file. A run that is watched passes them in the same order
each time, so that one can be named and the run killed there."""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from lockgate.destinations.postgres_session import Session
from lockgate.running.state import RunState
from lockgate.storage.local import LocalStorage
from lockgate.txlog.postgres_store import PostgresStore, PostgresTransaction
from lockgate.txlog.publisher import Publisher
from lockgate.txlog.sqlite_store import SqliteStore, SqliteTransaction

Point = tuple[str, int]  # what is about to be done or was done, and how often it was before

_RECORD = ("begin", "staging", "adopt_watermarks", "publishing", "export_published", "export_discarded", "finish")


@dataclass
class Passed:
    """The points that were passed. At `at` the process ends, with nothing tidied up."""

    at: Point | None = None
    points: list[Point] = field(default_factory=list)
    _seen: Counter[str] = field(default_factory=Counter)

    def __call__(self, what: str) -> None:
        point = what, self._seen[what]
        self._seen[what] += 1
        self.points.append(point)
        if point == self.at:
            os.kill(os.getpid(), signal.SIGKILL)


def watch(passed: Passed) -> None:
    """Have every layer of this process say where it is. There is no way back: this is for a process of its own."""
    _steps_of_the_disk(passed)
    _transactions_of_the_record(passed)
    for owner, methods in (
        (SqliteTransaction, ("write", "commit")),
        (SqliteStore, ("change",)),
        (PostgresTransaction, ("write", "commit")),
        (PostgresStore, ("change",)),
        (Publisher, ("_put", "_mark")),
    ):
        for method in methods:
            _around(owner, method, passed, lambda *_, name=f"{owner.__name__} {method}": name)
    _around(Session, "run", passed, lambda _, sql: f"server {' '.join(sql.split()[:2])}")
    _around(Session, "copy", passed, lambda *_: "server COPY")


def _around(owner: type, method: str, passed: Passed, name: Callable[..., str]) -> None:
    real = getattr(owner, method)

    def watched(self: Any, *given: Any, **named: Any) -> Any:
        what = name(self, *given)
        passed(f"before {what}")
        done = real(self, *given, **named)
        passed(f"after {what}")
        return done

    setattr(owner, method, watched)


def _steps_of_the_disk(passed: Passed) -> None:
    def watched(self: LocalStorage, step: str, path: Any, action: Callable[[], Any]) -> Any:
        del self, path
        passed(f"before {step}")
        done = action()
        passed(f"after {step}")
        return done

    LocalStorage._do = watched  # type: ignore[method-assign,assignment]


def _transactions_of_the_record(passed: Passed) -> None:
    for method in _RECORD:
        _around(RunState, method, passed, lambda *_, name=f"record {method}": name)
    real = RunState._open

    @contextmanager
    def watched(self: RunState) -> Iterator[Any]:
        with real(self) as connection:
            yield connection
            if connection.in_transaction:
                passed("before the record commits")

    RunState._open = watched  # type: ignore[method-assign]
