"""The exception that ends the reading of one statement; the reader turns it into a diagnostic and goes on."""

from __future__ import annotations

from lockgate.language.diagnostics import Diagnostic, Place


class Mistake(Exception):
    """Something wrong in a statement. `resume` is the file offset where the next statement seems to begin."""

    def __init__(
        self, place: Place, code: str, message: str, hint: str | None = None, *, resume: int | None = None
    ) -> None:
        super().__init__(message)
        self.diagnostic = Diagnostic(place, code, message, hint)
        self.resume = resume
