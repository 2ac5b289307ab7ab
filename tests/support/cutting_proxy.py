"""A proxy before a PostgreSQL server that cuts every connection at a chosen message of the protocol."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import BinaryIO, Literal

Side = Literal["client", "server"]


@dataclass(frozen=True)
class Cut:
    """Whose message of which number is the last; whether it still arrives; whether the server stays away after it, or
    takes connections and never answers."""

    side: Side
    number: int
    delivered: bool = False
    for_good: bool = False
    silent: bool = False


@dataclass
class CuttingProxy:
    """Messages of all connections are numbered together, those of clients and those of servers apart."""

    server: str  # the path of the server's socket
    cut: Cut | None = None
    then: Callable[[], None] | None = None  # what happens at the cut besides
    messages: dict[Side, list[tuple[str, bytes]]] = field(default_factory=lambda: {"client": [], "server": []})

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        self._is_cut = threading.Event()
        self._sockets: list[socket.socket] = []
        self._away = self._silent = False
        self.happened = False
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def revive(self) -> None:
        """The server can be reached again, and nothing more is cut."""
        if self.happened:
            self._is_cut.wait()
        with self._lock:
            self.cut, self._away, self._silent = None, False, False

    def close(self) -> None:
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)  # wakes who waits in accept
        self._listening.close()
        self._cut_all()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                if self._away:
                    client.close()
                    continue
                if self._silent:
                    with self._lock:
                        self._sockets.append(client)
                    continue
                # Messages go on one by one; each would else wait until the one before it is acknowledged.
                client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                server = socket.socket(socket.AF_UNIX)
                server.connect(self.server)
                with self._lock:
                    self._sockets += [client, server]
                threading.Thread(target=self._pump, args=(client, server, "client"), daemon=True).start()
                threading.Thread(target=self._pump, args=(server, client, "server"), daemon=True).start()

    def _pump(self, source: socket.socket, target: socket.socket, side: Side) -> None:
        first = side == "client"  # the start-up message has no type
        buffered = source.makefile("rb", buffering=1 << 18)
        with suppress(OSError):
            while message := _message(buffered, typed=not first):
                if not self._passes(side, "startup" if first else chr(message[0]), message, target):
                    return
                first = False
        for each in (source, target):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def _passes(self, side: Side, kind: str, message: bytes, target: socket.socket) -> bool:
        with self._lock:
            number = len(self.messages[side])
            self.messages[side].append((kind, message))
            cut = self.cut
            hit = cut is not None and not self.happened and (cut.side, cut.number) == (side, number)
            if hit:
                assert cut is not None
                self.happened, self._away, self._silent = True, cut.for_good, cut.silent
        try:
            if not hit or (cut and cut.delivered):
                target.sendall(message)
        finally:
            if hit:
                if self.then:
                    self.then()
                self._cut_all()
                self._is_cut.set()
        return not hit

    def _cut_all(self) -> None:
        with self._lock:
            sockets, self._sockets = self._sockets, []
        for each in sockets:
            # Not closed: another thread may be about to read, and the next connection would get the same number.
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)


def _message(source: BinaryIO, *, typed: bool) -> bytes:
    head = source.read(5 if typed else 4)
    if not head:
        return b""
    (length,) = struct.unpack("!I", head[-4:])
    return head + source.read(length - 4)
