"""A table that is about to be changed, and changes that are tried again where another writer was faster."""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from lockgate.errors import VersionConflict
from lockgate.storage.local import LocalStorage
from lockgate.tables.opening import published
from lockgate.targets.delta import DeltaTarget

if TYPE_CHECKING:
    from lockgate.txlog.writer import TxnLogWriter

log = logging.getLogger("lockgate.merge")

TRIES = 5
_PAUSE = 0.05  # seconds, doubled each time, so that two who clash do not clash again

T = TypeVar("T")


@dataclass(frozen=True)
class Writable:
    name: str
    folder: Path
    log: TxnLogWriter
    storage: LocalStorage

    def target(self) -> DeltaTarget:
        """The table as it is now. One that was never committed to is not there yet."""
        there = self.log.current_version(self.name) >= 0
        snapshot = self.log.snapshot(self.name) if there else None
        return DeltaTarget(self.folder, self.name, self.log, self.storage, snapshot=snapshot)

    def publish(self) -> None:
        published(self.log, self.name)

    def changed(self, change: Callable[[DeltaTarget], T]) -> T:
        """Make a change that was planned on the newest version; plan it again a few times if it clashes."""
        for tried in range(1, TRIES + 1):
            try:
                return change(self.target())
            except VersionConflict as error:
                if tried == TRIES:
                    error.hint = f"the change was planned {TRIES} times; try again when fewer write to {self.name}"
                    raise
                log.info("%s was changed meanwhile, planning again: %s", self.name, error.message)
                time.sleep(_PAUSE * 2**tried * random.random())
        raise AssertionError("unreachable")
