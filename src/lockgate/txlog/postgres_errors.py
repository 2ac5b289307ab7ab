"""PostgreSQL's errors as ours, told apart by SQLSTATE."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

from lockgate.errors import DatabaseError, LogError, TimeoutError

LOCK_TIMEOUT = ("55P03", "57014")
UNIQUE_VIOLATION = "23505"
# The server is going down, starting, or the connection is no more.
_GONE = ("57P01", "57P02", "57P03", "57P05")
_RETRY = "commit again"
_HINTS = {
    "28": "correct the user or the password of the log's address",
    "3D": "create that database, or correct the address of the log",
    "40": _RETRY,
    "42": "give this user the rights to the log's tables, or run `lockgate table migrate`",
    "25": "give the address of the primary server: this one takes no writes",
    "53": "give the server more room (disk, memory, connections), then commit again",
    "08": "check that the server is up and can be reached, then try again",
}


def is_connection_lost(error: psycopg.Error) -> bool:
    """Whether nobody is there any more who could tell how the statement ended."""
    state = error.sqlstate
    if state is None:
        return isinstance(error, (psycopg.OperationalError, psycopg.InterfaceError))
    return state in _GONE or state.startswith("08")


def translated(error: psycopg.Error, address: str, in_place: str) -> LogError:
    state = error.sqlstate
    said = str(error).strip().partition("\n")[0] or type(error).__name__
    if state in LOCK_TIMEOUT:
        return TimeoutError(
            f"the log {address} was locked by another writer for too long (SQLSTATE {state})",
            in_place=in_place,
            hint="try again, or open the log with a longer timeout",
        )
    if isinstance(error, psycopg.errors.ConnectionTimeout):
        return TimeoutError(f"the log {address} did not answer in time", in_place=in_place, hint=_HINTS["08"])
    if state is None or is_connection_lost(error):
        return DatabaseError(f"the log {address} cannot be reached: {said}", in_place=in_place, hint=_HINTS["08"])
    return DatabaseError(
        f"the log {address} failed: {said} (SQLSTATE {state})", in_place=in_place, hint=_HINTS.get(state[:2])
    )


@contextmanager
def explained(address: str, in_place: str) -> Iterator[None]:
    try:
        yield
    except psycopg.Error as error:
        raise translated(error, address, in_place) from error
