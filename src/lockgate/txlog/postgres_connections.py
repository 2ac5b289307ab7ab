"""Connections to PostgreSQL, kept for reuse. Opening one fails at once with the server's own reason."""

from __future__ import annotations

import math
import select
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg

from lockgate.errors import DatabaseError, TimeoutError
from lockgate.txlog.postgres_errors import explained

Connection = psycopg.Connection[tuple[Any, ...]]


class Connections:
    """At most `size` at a time; who comes then waits for at most `timeout` seconds."""

    def __init__(self, url: str, address: str, *, size: int, timeout: float) -> None:
        self._url = url
        self._address = address
        self._timeout = timeout
        self._free = threading.Semaphore(size)
        self._idle: list[Connection] = []
        self._closed = False

    @contextmanager
    def lent(self, in_place: str) -> Iterator[Lent]:
        """A connection for the time of the block. It goes back as it came: outside a transaction, or not at all."""
        if not self._free.acquire(timeout=self._timeout):
            raise TimeoutError(
                f"all connections to the log {self._address} were in use for {self._timeout:g} s",
                in_place=in_place,
                hint="open the log with a larger pool_size, or a longer timeout",
            )
        try:
            lent = Lent(self, in_place)
            try:
                yield lent
            finally:
                lent.give_back()
        finally:
            self._free.release()

    def idle(self) -> Connection | None:
        try:
            return self._idle.pop()
        except IndexError:
            return None

    def new(self, in_place: str) -> Connection:
        if self._closed:
            raise DatabaseError(f"the log {self._address} was closed", in_place=in_place)
        patience = max(2, math.ceil(self._timeout))
        with explained(self._address, in_place):
            return psycopg.connect(
                self._url,
                autocommit=True,
                connect_timeout=patience,
                tcp_user_timeout=patience * 1000,
                application_name="lockgate",
            )

    def keep(self, connection: Connection) -> None:
        if self._closed or connection.closed or connection.broken:
            connection.close()
        else:
            self._idle.append(connection)

    def close(self) -> None:
        self._closed = True
        while self._idle:
            self._idle.pop().close()


class Lent:
    """A connection on loan. One that lay idle may have died meanwhile: `renew` gets a new one."""

    def __init__(self, home: Connections, in_place: str) -> None:
        self._home = home
        self._in_place = in_place
        idle = home.idle()
        self.was_idle = idle is not None
        self.connection = idle if idle is not None else home.new(in_place)

    def renew(self) -> None:
        self.connection.close()
        self.connection = self._home.new(self._in_place)
        self.was_idle = False

    def renew_if_gone(self) -> None:
        """Get a new one where the server has ended the idle one, as far as that can be told without asking."""
        if self.was_idle and select.select([self.connection.fileno()], [], [], 0)[0]:
            self.renew()

    def give_back(self) -> None:
        connection = self.connection
        if connection.closed:
            return
        try:
            if connection.info.transaction_status != psycopg.pq.TransactionStatus.IDLE:
                connection.execute("ROLLBACK")
        except psycopg.Error:  # what the server has of it is rolled back when the connection ends
            connection.close()
            return
        self._home.keep(connection)
