"""The session that keeps a database still: its snapshot is what every task of a run reads."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from lockgate.config import Connection
from lockgate.errors import SourceError
from lockgate.postgres.address import full_address, secrets
from lockgate.sources.postgres_problems import problem, told

_SNAPSHOT = re.compile(r"[0-9A-Fa-f-]+")


@dataclass(frozen=True)
class Access:
    """How a worker reaches the database, and the snapshot that it is to see. There is a password in it."""

    conninfo: str = field(repr=False)
    secrets: tuple[str, ...] = field(repr=False)
    snapshot: str

    def __post_init__(self) -> None:
        if not _SNAPSHOT.fullmatch(self.snapshot):  # it goes into SQL that takes no parameter
            raise ValueError(f"not the name of a snapshot: {self.snapshot!r}")


class SnapshotSession:
    """A transaction that reads only, open until it is closed. The snapshot lasts as long as it does."""

    def __init__(self, connection: Connection, source: str) -> None:
        self.connection = connection.name
        address = full_address(connection)
        self._secrets = tuple(secrets(connection))
        with told(source, f"cannot connect to {self.connection}", self._secrets, address=address):
            self._session = _connected(address, source)
        self._secrets = (*self._secrets, self._session.info.password)
        try:
            with told(source, f"cannot take a snapshot of {self.connection}", self._secrets):
                self.access = self._begin(address)
        except SourceError:
            self.close()
            raise

    def _begin(self, address: str) -> Access:
        import psycopg
        from psycopg.conninfo import make_conninfo

        session = self._session
        session.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        session.read_only = True
        # It waits, idle, for as long as the tasks read.
        session.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
        if session.info.server_version >= 170000:
            session.execute("SET LOCAL transaction_timeout = 0")
        row = session.execute("SELECT pg_export_snapshot()").fetchone()
        assert row is not None
        # What this process knows from its environment or its password file, another machine does not.
        known = {"password": session.info.password} if session.info.password else {}
        known |= {"user": session.info.user, "dbname": session.info.dbname}
        conninfo = make_conninfo(address, **known)
        return Access(conninfo, tuple(filter(None, self._secrets)), str(row[0]))

    def ask(self, source: str, doing: str, statement: Any, values: Any = None) -> Any:
        """Run a statement in the transaction; a cursor with its rows. A statement that fails does not end it."""
        with told(source, doing, self._secrets), self._session.transaction():
            return self._session.execute(statement, values)

    @property
    def server_version(self) -> int:
        return int(self._session.info.server_version)

    @property
    def pid(self) -> int:
        return int(self._session.info.backend_pid)

    def close(self) -> None:
        self._session.close()


def _connected(address: str, source: str) -> Any:
    import psycopg

    try:
        return psycopg.connect(address)
    except psycopg.ProgrammingError:  # the address itself; the message quotes it, so it is not kept
        raise problem(source, "the url of the connection is not one that PostgreSQL's library understands") from None
