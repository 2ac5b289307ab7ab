"""Why a connection was not made. libpq says it in words only, in the server's language, so the server is asked."""

from __future__ import annotations

_REFUSED = (
    "the server is up and has refused this connection: correct the user, the password or the database of the "
    "connection, or let the server's pg_hba.conf admit it"
)
_NOT_YET = "the server is up and takes no connections now: it starts, stops or has reached its limit; run again later"
_NO_ANSWER = "nothing answers there: see that the server is up, and that host and port of the connection are right"
_UNKNOWN = "see that the server is up, that host and port are right, and user and password too; then run again"


def hint_about(address: str) -> str:
    """What to do after a connection to this address has failed. No password is sent for it."""
    try:
        from psycopg.pq import PGconn, Ping
    except ImportError:
        return _UNKNOWN
    try:
        answer = Ping(PGconn.ping(address.encode()))
    except Exception:  # an address that libpq cannot read; whoever asks has an error to tell already
        return _UNKNOWN
    return {Ping.OK: _REFUSED, Ping.REJECT: _NOT_YET, Ping.NO_RESPONSE: _NO_ANSWER}.get(answer, _UNKNOWN)
