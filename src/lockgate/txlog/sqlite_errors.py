"""SQLite's errors as ours, told apart by their codes."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from lockgate.errors import DatabaseError, LogError, TimeoutError

BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
_HINTS = {
    sqlite3.SQLITE_FULL: "free some space on that disk, then commit again",
    sqlite3.SQLITE_IOERR: "look at that disk and its filesystem, then commit again",
    sqlite3.SQLITE_READONLY: "give this user write permission on the file and its folder",
    sqlite3.SQLITE_PERM: "give this user write permission on the file and its folder",
    sqlite3.SQLITE_CANTOPEN: "check that the folder of the log is there and that this user may write to it",
    sqlite3.SQLITE_CORRUPT: "restore the log from a backup; the tables' _delta_log folders hold what was published",
    sqlite3.SQLITE_NOTADB: "the address of the log names a file that is not a log; correct it",
}


def code_of(error: sqlite3.Error) -> int:
    """The primary result code; 0 where the error is not the database's."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def is_busy(error: sqlite3.Error) -> bool:
    return code_of(error) in BUSY


def translated(error: sqlite3.Error, address: str, in_place: str) -> LogError:
    code = code_of(error)
    name = getattr(error, "sqlite_errorname", type(error).__name__)
    if code in BUSY:
        return TimeoutError(
            f"the log {address} was locked by another writer for too long ({name})",
            in_place=in_place,
            hint="try again, or open the log with a longer timeout",
        )
    return DatabaseError(f"the log {address} failed: {error} ({name})", in_place=in_place, hint=_HINTS.get(code))


@contextmanager
def explained(address: str, in_place: str) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise translated(error, address, in_place) from error
