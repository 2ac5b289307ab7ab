"""From the address of a log to its store."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote

from lockgate.config import redact_address
from lockgate.errors import ArgumentError
from lockgate.txlog.store import Store


def store_at(url: str, *, root: Path | None, pool_size: int, timeout: float) -> Store:
    """The store of an address: `sqlite:///file` (relative to `root`), `sqlite:////absolute`, `postgresql://…`."""
    if pool_size < 1 or timeout <= 0:
        raise ArgumentError("pool_size must be at least 1 and timeout more than 0", in_place="nothing was opened")
    scheme, separator, rest = url.partition("://")
    if separator and scheme == "sqlite" and rest.startswith("/") and len(rest) > 1:
        from lockgate.txlog.sqlite_store import SqliteStore

        path = Path(unquote(rest[1:]))
        return SqliteStore((root or Path.cwd()) / path, timeout=timeout, pool_size=pool_size)
    if separator and scheme in ("postgresql", "postgres"):
        try:
            from lockgate.txlog.postgres_store import PostgresStore
        except ImportError as error:
            raise ArgumentError(
                "a log in PostgreSQL needs packages that are not installed",
                in_place="nothing was opened",
                hint="pip install 'lockgate[postgres]'",
            ) from error
        return PostgresStore(url, timeout=timeout, pool_size=pool_size)
    raise ArgumentError(
        f"{redact_address(url)!r} is not the address of a log",
        in_place="nothing was opened",
        hint='write "sqlite:///file", "sqlite:////absolute/file" or "postgresql://user@host/database"',
    )
