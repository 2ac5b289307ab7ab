"""A table that is about to be changed, and changes that are tried again where another writer was faster."""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

from lockgate.errors import VersionConflict
from lockgate.storage.local import LocalStorage
from lockgate.tables.opening import published
from lockgate.targets.delta import DeltaTarget
from lockgate.txlog.reading_features import DELETION_VECTORS

if TYPE_CHECKING:
    from lockgate.txlog.records import Snapshot
    from lockgate.txlog.writer import TxnLogWriter

log = logging.getLogger("lockgate.merge")

TRIES = 5
_PAUSE = 0.05  # seconds, doubled each time, so that two who clash do not clash again

T = TypeVar("T")


class Changeable(Protocol):
    """What a change needs of a table."""

    @property
    def name(self) -> str: ...
    @property
    def folder(self) -> Path: ...
    @property
    def storage(self) -> LocalStorage: ...
    def publish(self) -> None: ...
    def changed(self, change: Callable[[DeltaTarget], T], *, tries: int = ...) -> T: ...


@dataclass(frozen=True)
class LookedAt:
    """A table, or the place where one would be, for changes that are only planned."""

    name: str
    folder: Path
    storage: LocalStorage
    snapshot: Snapshot | None

    def publish(self) -> None:
        """There is nothing to publish."""

    def changed(self, change: Callable[[DeltaTarget], T], *, tries: int = 1) -> T:
        del tries
        return change(DeltaTarget(self.folder, self.name, None, self.storage, snapshot=self.snapshot))


@dataclass(frozen=True)
class Writable:
    name: str
    folder: Path
    log: TxnLogWriter
    storage: LocalStorage

    def target(self) -> DeltaTarget:
        """The table as it is now. One that was never committed to is not there yet."""
        there = self.log.current_version(self.name) >= 0
        snapshot = self.log.snapshot(self.name, understood=(DELETION_VECTORS,)) if there else None
        return DeltaTarget(self.folder, self.name, self.log, self.storage, snapshot=snapshot)

    def publish(self) -> None:
        published(self.log, self.name)

    def changed(self, change: Callable[[DeltaTarget], T], *, tries: int = TRIES) -> T:
        """Make a change that was planned on the newest version; plan it again a few times if it clashes."""
        for tried in range(1, tries + 1):
            try:
                return change(self.target())
            except VersionConflict as error:
                if tried == tries:
                    error.hint = f"the change was planned {tries} times; try again when fewer write to {self.name}"
                    raise
                log.info("%s was changed meanwhile, planning again: %s", self.name, error.message)
                time.sleep(_PAUSE * 2 ** min(tried, 5) * random.random())
        raise AssertionError("unreachable")
