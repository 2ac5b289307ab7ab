"""What a server refused, in words: told apart by SQLSTATE, never by its text, which is in the server's language."""

from __future__ import annotations

from lockgate.destinations.postgres_session import ServerError

_SHOWN = 300  # characters of what the server says

# The longest beginning of a SQLSTATE that is listed decides.
_ADVICE = {
    "08": "see that the server is up and can be reached, then run again",
    "22001": "shorten the value in the query, or widen the column",
    "22003": "the value is out of the column's range: correct it in the query, or widen the column",
    "22": "correct the value in the query, or cast it",
    "23502": "give the column a value in the query, or a default in the table",
    "23503": "rows of another table refer to these, or these to rows that are not there; publish those first",
    "23505": "the table has a row with that value already: MODE UPSERT with KEY replaces it, MODE INSERT leaves it",
    "23514": "the row breaks a rule of the table: correct it in the query",
    "23": "the row breaks a rule of the table: correct it in the query",
    "25006": "the server takes no writes (a standby, or default_transaction_read_only): connect to the primary",
    "28": "correct the user or the password of the connection",
    "3D000": "correct the database in the connection's url",
    "3F000": "create the schema, or name one that exists",
    "40": "another writer was in the way: run again",
    "42501": "grant what is missing; the page of TYPE POSTGRES lists the statements",
    "42P01": "create the table, or leave the option create at true",
    "53100": "the server's disk is full: free some space there, then run again",
    "53300": "the server takes no more connections: wait, or raise its limit",
    "53": "the server is out of resources: free some there, then run again",
    "54": "a limit of the server is exceeded",
    "55P03": "somebody holds a lock on the table: wait, or raise the option lock_timeout",
    "57014": "the statement took longer than its limit, or was cancelled: raise the option statement_timeout",
    "57P": "the server is shutting down or starting up: wait, then run again",
    "58": "the server could not use its disk: look at its log",
}
_NO_REPLY = "the connection was lost: see that the server is up and can be reached, then run again"


def told(error: ServerError) -> str:
    """What happened, with the column or the constraint where the server names it."""
    text = error.message
    detail = error.detail
    column = error.fields.get("COLUMN_NAME")
    if column and f'"{column}"' not in text:
        text = f'column "{column}": {text}'
    if detail:
        text = f"{text}: {detail}"
    text = text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
    return f"{text} (SQLSTATE {error.sqlstate})" if error.sqlstate else text


def advice(error: ServerError) -> str:
    if error.sqlstate is None:
        return error.hint or _NO_REPLY
    for length in range(len(error.sqlstate), 1, -1):
        if (found := _ADVICE.get(error.sqlstate[:length])) is not None:
            return found
    return "look at the server's log"
