"""Whether a transaction was committed, known also when the reply to COMMIT is lost.

Before COMMIT is sent, the transaction's number is on record in the staging area. Whoever finds that record asks the
server what became of that transaction, on a new connection. Nothing is guessed.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

from lockgate.config import Profile
from lockgate.destinations.postgres_session import ServerError, Session, session
from lockgate.destinations.postgres_watchdog import answer_within
from lockgate.destinations.protocol import Outcome
from lockgate.errors import ConfigError, OutcomeUnknown, StorageError
from lockgate.storage.local import LocalStorage, explained

_RECORD, _DRAFT = "commit", "commit.draft"
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 1.0  # seconds between two questions

LONGEST_ANSWER = 15.0  # seconds for one question, its connection included: a server may take it and never answer

Verdict = Literal["committed", "aborted"]


@dataclass(frozen=True)
class Intent:
    """A transaction that was about to be committed, and what it does."""

    transaction: str
    server: str  # its identity: another server has other transactions of the same numbers
    outcome: Outcome
    done: bool = False


class Forgotten(OutcomeUnknown):
    """The server can never tell: it has forgotten the transaction, or is not the one that had it."""


class CommitRecord:
    """The file in a staging area that says which transaction publishes it."""

    def __init__(self, area: Path) -> None:
        self.path = area / _RECORD
        self._draft = area / _DRAFT

    def read(self) -> Intent | None:
        with explained("read", self.path):
            try:
                raw = self.path.read_bytes()
            except FileNotFoundError:
                return None
        try:
            found = json.loads(raw)
            return Intent(found["transaction"], found["server"], _outcome(found["outcome"]), found["done"])
        except (ValueError, KeyError, TypeError) as error:
            raise StorageError(
                f"{self.path} cannot be used: {error}",
                in_place="whether the table has the rows cannot be told from here",
                hint="bring the file back from a copy, then resume; or give the run up with `lockgate run --supersede`",
            ) from error

    def write(self, storage: LocalStorage, intent: Intent) -> None:
        """On disk when this returns."""
        storage.remove(self._draft)  # a crash may have left it
        storage.write(self._draft, json.dumps(asdict(intent)).encode())
        storage.replace(self._draft, self.path)
        storage.fsync_folder(self.path.parent)

    def mark_done(self, storage: LocalStorage, intent: Intent) -> None:
        self.write(storage, replace(intent, done=True))

    def forget(self, storage: LocalStorage) -> None:
        storage.remove(self.path)


def _outcome(record: Mapping[str, Any]) -> Outcome:
    return Outcome(**{**record, "paths": tuple(record["paths"])})


def server_identity(opened: Session) -> str:
    """What tells this server from every other, and from itself after a fail-over, which may have lost transactions.
    Empty where a service hides it."""
    found = []
    for question in (
        "SELECT system_identifier::text AS answer FROM pg_catalog.pg_control_system()",
        "SELECT substring(pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_lsn()) for 8) AS answer",
        "SELECT oid::text AS answer FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database()",
    ):
        answer = "?"
        with suppress(ServerError):
            answer = str(opened.rows(question)[0]["answer"])
        found.append(answer)
    return "/".join(found)


def settle(intent: Intent, profile: Profile, connection: str, patience: float) -> Verdict:
    """Ask until there is an answer, for so many seconds; the last question may take longer, but not for ever.
    OutcomeUnknown: there is no answer."""
    end = time.monotonic() + patience
    pause = _FIRST_PAUSE
    while True:
        try:
            verdict = answer_within(LONGEST_ANSWER, partial(_asked_anew, profile, connection, intent))
            if verdict is not None:
                return verdict
            reason = f"transaction {intent.transaction} is still in progress"
        except ServerError as error:
            reason = error.message
        except ConfigError as error:  # the connection is gone from the profile
            raise _unknown(connection, error.message, OutcomeUnknown) from error
        if time.monotonic() + pause > end:
            raise _unknown(connection, reason, OutcomeUnknown)
        time.sleep(pause)
        pause = min(pause * 2, _LONGEST_PAUSE)


def _asked_anew(profile: Profile, connection: str, intent: Intent) -> Verdict | None:
    with session(profile, connection) as opened:
        return _ask(opened, intent)


def _ask(opened: Session, intent: Intent) -> Verdict | None:
    if opened.rows("SELECT pg_catalog.pg_is_in_recovery() AS standby")[0]["standby"]:
        raise ServerError("the server is a standby now", None, {})
    now = server_identity(opened)
    if now != intent.server:
        reason = (
            f"the server is not the one of that commit ({intent.server}), or was rolled back or failed over ({now})"
        )
        raise _unknown(opened.label, reason, Forgotten)
    try:
        status = opened.rows("SELECT pg_catalog.pg_xact_status($1::text::xid8) AS status", intent.transaction)
    except ServerError as error:
        if error.lost:
            raise
        raise _unknown(opened.label, error.message, Forgotten) from error
    match status[0]["status"]:
        case "committed":
            return "committed"
        case "aborted":
            return "aborted"
        case "in progress":
            return None
    raise _unknown(opened.label, f"the server has forgotten transaction {intent.transaction}", Forgotten)


def _unknown(connection: str, reason: str, kind: type[OutcomeUnknown]) -> OutcomeUnknown:
    if kind is Forgotten:
        hint = "look whether the table has the rows; then give the run up with `lockgate run --supersede`"
    else:
        hint = "see that the server can be reached"
    return kind(
        f"whether {connection} has committed is not known: {reason}",
        in_place="the table has all of the rows or none; what was staged is kept",
        hint=hint,
    )
