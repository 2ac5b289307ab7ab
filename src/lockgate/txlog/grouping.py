"""Group commit: what several threads ask for at the same time goes into one transaction.

The first thread to come commits for itself. Those who come meanwhile wait, and the first of them commits for all of
them. Nobody waits for company that may not come, and nobody is told of a success before the database's own COMMIT.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence

from lockgate.txlog.committer import Request

_LARGEST = 512


class Waiting:
    __slots__ = ("done", "gate", "request")

    def __init__(self, request: Request) -> None:
        self.request = request
        self.done = False
        self.gate = threading.Lock()
        self.gate.acquire()


class Group:
    """The committers of one table in this process."""

    def __init__(self, settle: Callable[[Sequence[Request]], None]) -> None:
        self._settle = settle
        self._mutex = threading.Lock()
        self._waiting: deque[Waiting] = deque()
        self._busy = False

    def commit(self, request: Request) -> None:
        """Return when the request has its outcome."""
        me = Waiting(request)
        with self._mutex:
            lead = not self._busy
            self._busy = True
            if not lead:
                self._waiting.append(me)
        if not lead:
            try:
                me.gate.acquire()  # opened by whoever committed for this one, or who leaves it the lead
            except BaseException:  # interrupted
                self._withdraw(me)
                raise
            if me.done:
                return
        self._lead(me)

    def _withdraw(self, me: Waiting) -> None:
        """Leave the queue; who is out of it already is being committed, or has the lead and must not keep it."""
        with self._mutex:
            if me in self._waiting:
                self._waiting.remove(me)
                return
        me.gate.acquire()
        if not me.done:
            self._lead(me)

    def _lead(self, me: Waiting) -> None:
        with self._mutex:
            batch = [me]
            while self._waiting and len(batch) < _LARGEST:
                batch.append(self._waiting.popleft())
        try:
            self._settle([each.request for each in batch])
        except BaseException as error:
            for each in batch[1:]:
                if not each.request.versions:
                    each.request.error = each.request.error or error
            raise
        finally:
            with self._mutex:
                successor = self._waiting.popleft() if self._waiting else None
                self._busy = successor is not None
            if successor is not None:
                successor.gate.release()
            for each in batch[1:]:
                each.done = True
                each.gate.release()
