"""A lock that is an object: made only if there is none, kept alive by its owner, taken over when its owner is dead.

It saves writers from working in vain. It is not what keeps them apart: a writer that was paused for longer than its
lease may believe that it still holds the lock. What it may not do then is said by the journal (see `s3_journal`).

Age is told by the clock of S3 alone, which dates the object and the answer: the clocks of writers do not matter.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable
from contextlib import suppress
from threading import Event, Thread
from types import TracebackType

from lockgate.errors import DatasetBusy, ObjectChanged, ObjectMissing, S3Error, S3Unreachable, StorageError
from lockgate.storage.s3 import S3Storage
from lockgate.storage.s3_address import S3Address

log = logging.getLogger("lockgate.merge")

LOCK_NAME = ".lockgate_lock"
LEASE = 30.0  # seconds without a sign of life, after which others may take the lock
_COARSE = 2.0  # seconds that S3's dates may be off, having no fractions
_PAUSE = 0.25


class S3Lock:
    def __init__(
        self,
        s3: S3Storage,
        root: S3Address,
        owner: str,
        *,
        lease: float = LEASE,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._s3 = s3
        self._root = root
        self._address = root.inside(LOCK_NAME)
        self._owner = owner
        self._beats = 0
        self._lease = lease
        self._clock = clock
        self._etag: str | None = None
        self._alive_until = 0.0
        self._ended = Event()
        self._beating: Thread | None = None

    def acquire(self, timeout: float) -> None:
        """Take the lock, waiting for a live owner at most `timeout` seconds."""
        give_up = self._clock() + timeout
        while not self._try():
            if self._clock() >= give_up:
                raise DatasetBusy(
                    f"another writer has held {self._address} for {timeout:g} s",
                    in_place="nothing was written",
                    hint="wait for it to finish and try again, or raise the timeout",
                )
            time.sleep(_PAUSE)
        self._beating = Thread(target=self._beat, name="lock", daemon=True)
        self._beating.start()

    def _try(self) -> bool:
        asked = self._clock()
        try:
            self._etag = self._s3.put(self._address, self._body(), new=True)
            self._alive_until = asked + self._lease
            self._refuse_store_without_conditions()
            return True
        except ObjectChanged:
            there = self._s3.read(self._address)
        if there is None:  # released meanwhile
            return False
        body, found = there
        owner, lease = _told(body)
        if owner != self._owner:  # else it is ours, and the answer to the first try was lost, or we are the next try
            if found.age <= lease + _COARSE:
                return False
            log.warning("%s: its owner has been silent for %.0f s; it is taken over", self._address, found.age)
        try:
            self._etag = self._s3.put(self._address, self._body(), if_match=found.etag)
        except (ObjectChanged, ObjectMissing):
            return False
        self._alive_until = asked + self._lease
        return True

    def _body(self) -> bytes:
        """Each of them differs, so that an owner who gives a sign of life is not overlooked."""
        self._beats += 1
        return json.dumps({"owner": self._owner, "lease": self._lease, "beat": self._beats}).encode()

    def _refuse_store_without_conditions(self) -> None:
        """A store that lets anybody put anything anywhere would let two writers in."""
        try:
            self._s3.put(self._address, self._body(), new=True)
        except ObjectChanged:
            return
        self._s3.delete(self._address)
        raise StorageError(
            f"the store of {self._root} does not heed If-None-Match, without which writers cannot be kept apart",
            in_place="nothing was written",
            hint="use a store that does, as Amazon S3, or write with TYPE DELTA or to a local folder",
        )

    @property
    def is_held(self) -> bool:
        return self._etag is not None and self._clock() < self._alive_until

    def require(self) -> None:
        """Raise if the lock was lost, so that nothing is begun in vain."""
        if not self.is_held:
            raise DatasetBusy(
                f"{self._address} was lost: this writer gave no sign of life for {self._lease:g} s",
                in_place="nothing was written",
                hint="try again",
            )

    def _beat(self) -> None:
        while not self._ended.wait(self._lease / 3):
            asked = self._clock()
            try:
                self._etag = self._s3.put(self._address, self._body(), if_match=self._etag)
            except S3Unreachable:
                continue
            except StorageError:
                if not self._is_ours_still():  # the answer to a first try may have been lost
                    self._alive_until = asked
                    return
            self._alive_until = asked + self._lease

    def _is_ours_still(self) -> bool:
        with suppress(StorageError):
            there = self._s3.read(self._address)
            if there is not None and _told(there[0])[0] == self._owner:
                self._etag = there[1].etag
                return True
        return False

    def release(self) -> None:
        """Let others in. If that fails, they come in when the lease is over."""
        self._ended.set()
        if self._beating is not None:
            self._beating.join()
        if self._etag is None:
            return
        try:
            self._s3.delete(self._address, if_match=self._etag)
        except (ObjectChanged, ObjectMissing):  # taken over
            return
        except S3Error as error:
            log.warning("the lock %s stays for %g s: %s", self._address, self._lease, error.message)
        finally:
            self._etag = None

    def __enter__(self) -> S3Lock:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


def _told(body: bytes) -> tuple[str, float]:
    """The owner and the lease of a lock, whoever wrote it."""
    try:
        told = json.loads(body)
        return str(told["owner"]), max(float(told["lease"]), 0.0)
    except (ValueError, KeyError, TypeError):
        return "", LEASE
