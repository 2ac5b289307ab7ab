"""The paths of a table's files: as the log has them, URI-encoded once, and as the filesystem has them."""

from __future__ import annotations

from pathlib import PurePosixPath
from urllib.parse import quote, unquote, urlsplit

from lockgate.errors import StorageError

# "=" stays readable in partition folders; ":" does not, or a name could be read as a scheme.
_AS_IT_IS = "/=-_.~"


def encoded(name: str) -> str:
    """The name of a file, relative to its table, as an action has it.

    >>> encoded("city=New%2FYork/a b.parquet")
    'city=New%252FYork/a%20b.parquet'
    """
    return quote(name, safe=_AS_IT_IS)


def decoded(path: str) -> str:
    """The name of a file of the table, relative to it. A path that leads out of the table is refused.

    >>> decoded("city=New%252FYork/a%20b.parquet")
    'city=New%2FYork/a b.parquet'
    """
    name = unquote(path, errors="surrogateescape")
    parts = PurePosixPath(name)
    if not path or urlsplit(path).scheme or parts.is_absolute() or ".." in parts.parts or "\0" in name:
        raise StorageError(
            f"the log names the file {path!r}, which is not inside the table",
            in_place="nothing was read or written there",
            hint="a table whose files lie elsewhere, such as a shallow clone, is not taken",
        )
    return name
