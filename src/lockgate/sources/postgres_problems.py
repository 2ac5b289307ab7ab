"""What PostgreSQL says, as our errors. They are told apart by SQLSTATE, never by text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from lockgate.errors import SourceError
from lockgate.postgres.address import without
from lockgate.postgres.reach import hint_about

NOTHING = "nothing was published; every destination is as it was"

_HINTS = {
    "42P01": "is the name spelled as it is in the database, upper and lower case told apart, with its schema?",
    "42703": "is the column spelled as it is in the database, upper and lower case told apart?",
    "42501": "GRANT SELECT on the table, and USAGE on its schema, to the user of the connection",
    "3F000": "is the schema spelled as it is in the database?",
    "57014": "the server cancelled the query, as its statement_timeout says; raise it for this user",
    "53300": "the server has no connection left; set a smaller number of partitions",
    "25006": "a source only reads: its transaction is READ ONLY",
}
_SNAPSHOT_GONE = {"42704", "22023"}  # what SET TRANSACTION SNAPSHOT says of a snapshot that is not there


@contextmanager
def told(
    source: str, doing: str, secrets: Sequence[str] = (), *, snapshot: bool = False, address: str = ""
) -> Iterator[None]:
    """Errors of a driver as SourceErrors. `snapshot`: it is the snapshot that is asked for. `address`: it is a
    connection there."""
    import adbc_driver_manager
    import psycopg

    try:
        yield
    except OSError as error:  # Arrow's, in the middle of a stream: it has the server's words, and no SQLSTATE
        raise problem(source, f"{doing}: {_said(error, secrets)}") from error
    except (psycopg.Error, adbc_driver_manager.Error) as error:
        state = error.sqlstate
        if snapshot and state in _SNAPSHOT_GONE:
            raise problem(
                source,
                "the session that kept the snapshot of the database is gone, so that the rest of the rows cannot be "
                "read as they were",
                hint="run again; if the server ends long transactions (idle_in_transaction_session_timeout, "
                "transaction_timeout, an administrator), let it spare this one",
            ) from error
        hint = hint_about(address) if address and state is None else _HINTS.get(state or "")
        raise problem(source, f"{doing}: {_said(error, secrets)}", hint=hint) from error


def problem(source: str, message: str, hint: str | None = None) -> SourceError:
    """An error that knows its source, so that whoever catches it can show the place in the pipeline."""
    error = SourceError(message, hint=hint, in_place=NOTHING)
    error.source = source
    return error


def _said(error: Exception, secrets: Sequence[str]) -> str:
    diag = getattr(error, "diag", None)
    text = getattr(diag, "message_primary", None) or str(error)
    lines = [line.strip() for line in str(text).splitlines() if line.strip()]
    return without(secrets, "; ".join(lines) or type(error).__name__)
