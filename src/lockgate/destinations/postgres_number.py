"""The number of a transaction, such that nobody else's can ever be taken for it.

A server that crashes forgets the numbers that its log on disk does not hold yet, and gives them out again. Whoever
then asked what became of such a number would be told of another transaction: of a commit, where ours was lost. So the
log is brought to disk as far as this transaction before its number is put on record.
"""

from __future__ import annotations

from lockgate.config import Profile
from lockgate.destinations.postgres_session import Session, session

_FLUSHES = 170000  # the first server that brings its log to disk when it is asked


def lasting_number(opened: Session, version: int, profile: Profile, connection: str) -> str:
    """The number of the transaction that is open in this session, which has written something already."""
    number = opened.rows("SELECT pg_catalog.pg_current_xact_id()::text AS number")[0]["number"]
    if version >= _FLUSHES:
        opened.rows("SELECT pg_catalog.pg_logical_emit_message(false, 'lockgate', '', true)::text AS place")
        return str(number)
    # A commit brings to disk whatever was logged before it, by anybody.
    with session(profile, connection) as other:
        other.run("BEGIN")
        other.rows("SELECT pg_catalog.set_config('synchronous_commit', 'local', true) AS v")
        other.rows("SELECT pg_catalog.pg_logical_emit_message(true, 'lockgate', '')::text AS place")
        other.run("COMMIT")
    return str(number)
