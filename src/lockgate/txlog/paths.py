"""File names as Delta's log spells them: URIs relative to the table, percent-encoded once."""

from __future__ import annotations

import re
from urllib.parse import quote, unquote

_SAFE = "/=:@!$&'()*+,;~"  # a `%`, a space or anything else outside ASCII is encoded
_SCHEME = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]*:")


def as_uri(relative: str) -> str:
    """The spelling in the log of a file name relative to the table's folder.

    >>> as_uri("day=a b/50%.parquet")
    'day=a%20b/50%25.parquet'
    """
    spelled = quote(relative, safe=_SAFE)
    return f"./{spelled}" if _SCHEME.match(spelled.partition("/")[0]) else spelled


def from_uri(uri: str) -> str:
    """The file name relative to the table's folder that a spelling in the log stands for.

    >>> from_uri("day=a%20b/50%25.parquet")
    'day=a b/50%.parquet'
    """
    return unquote(uri).removeprefix("./")


def problem_of(uri: str) -> str | None:
    """Why a spelling does not name a file inside the table; None where it does.

    >>> problem_of("../elsewhere/x.parquet")
    'it leaves the table'
    """
    if not uri:
        return "it is empty"
    if _SCHEME.match(uri) or uri.startswith("/"):
        return "it is absolute, so it leaves the table"
    plain = "%" not in uri
    name = uri if plain else unquote(uri, errors="surrogateescape")
    if "\0" in name:
        return "it holds the character NUL"
    if ".." in name and ".." in name.split("/"):
        return "it leaves the table"
    if name.startswith("/"):
        return "it is absolute, so it leaves the table"
    if name.endswith("/"):
        return "it names a folder"
    return None
