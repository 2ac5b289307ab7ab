"""A real DuckDB connection that writes down what it is asked, and can be made to answer as another one would."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import Any

Rewriting = Callable[[str], str]


class RecordingConnection:
    """Passes everything on. `rewriting` may put another statement in the place of one."""

    def __init__(self, real: Any, rewriting: Rewriting = str, log: Log | None = None) -> None:
        self._real = real
        self._rewriting = rewriting
        self.log = log or Log()

    def execute(self, statement: str, *values: Any) -> Any:
        self.log.add(statement)
        return self._real.execute(self._rewriting(statement), *values)

    def sql(self, statement: str, *values: Any) -> Any:
        self.log.add(statement)
        return self._real.sql(self._rewriting(statement), *values)

    def register(self, name: str, table: Any) -> Any:
        self.log.registered.append(name)
        return self._real.register(name, table)

    def unregister(self, name: str) -> Any:
        self.log.unregistered.append(name)
        return self._real.unregister(name)

    def cursor(self) -> RecordingConnection:
        return RecordingConnection(self._real.cursor(), self._rewriting, self.log)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


class Log:
    """What a connection and its cursors were asked, by any thread."""

    def __init__(self) -> None:
        self._lock = Lock()
        self.statements: list[str] = []
        self.registered: list[str] = []
        self.unregistered: list[str] = []

    def add(self, statement: str) -> None:
        with self._lock:
            self.statements.append(" ".join(statement.split()))

    def having(self, words: str) -> list[str]:
        return [statement for statement in self.statements if words in statement]
