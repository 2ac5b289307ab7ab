"""What a run tells while it works. The command line shows it; a caller from Python usually does not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Protocol


class Progress(Protocol):
    def phase(self, name: str) -> None:
        """One of plan, stage, check, publish begins."""

    def working(self, what: str, watch: Path | None = None) -> AbstractContextManager[None]:
        """Something long is under way; `watch` is a folder whose growth shows how far it is."""

    def done(self, what: str, detail: str = "") -> None:
        """One piece of work is finished."""

    def failed(self, what: str, detail: str) -> None:
        """One piece of work has found what must not be."""

    def note(self, text: str) -> None:
        """Something the user should know that is not an error."""


class Silent:
    def phase(self, name: str) -> None:
        del name

    @contextmanager
    def working(self, what: str, watch: Path | None = None) -> Iterator[None]:
        del what, watch
        yield

    def done(self, what: str, detail: str = "") -> None:
        del what, detail

    def failed(self, what: str, detail: str) -> None:
        del what, detail

    def note(self, text: str) -> None:
        del text
