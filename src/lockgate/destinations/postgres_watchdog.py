"""A limit on how long a server may take to answer, kept by this side.

A server that has stopped, or a proxy that has lost it, still takes what is sent: no time limit of the server and no
keepalive of the network sees that. The driver waits for as long as it takes, so the question is asked in a thread
that is left behind when its time is over.
"""

from __future__ import annotations

from collections.abc import Callable
from queue import Empty, SimpleQueue
from threading import Thread
from typing import TypeVar

from lockgate.destinations.postgres_session import ServerError

T = TypeVar("T")


def answer_within(seconds: float, question: Callable[[], T]) -> T:
    """The answer, or what was raised instead. ServerError: neither came in time."""
    answers: SimpleQueue[tuple[bool, object]] = SimpleQueue()

    def ask() -> None:
        try:
            answers.put((True, question()))
        except BaseException as error:  # raised again where it is waited for
            answers.put((False, error))

    # A daemon, so that the process may end while it waits.
    Thread(target=ask, name="lockgate postgres question", daemon=True).start()
    try:
        answered, found = answers.get(timeout=seconds)
    except Empty:
        raise ServerError(f"the server has not answered within {seconds:g} seconds", None, {}) from None
    if not answered:
        assert isinstance(found, BaseException)
        raise found
    return found  # type: ignore[return-value]
