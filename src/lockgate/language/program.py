"""What the parser hands to the planner."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from lockgate.language.diagnostics import Diagnostic
from lockgate.language.statements import CheckStep, CreateTableStep, ExportStep, LoadStep, SourceStep

Statement = SourceStep | LoadStep | CreateTableStep | CheckStep | ExportStep


@dataclass(frozen=True)
class Program:
    """The statements of a pipeline in the order of its text, SET, INCLUDE and IF being done with.

    `unsure` are names that a statement with an error would have defined: an unknown one is then no second error.
    `incomplete` says that whole statements may be missing, because an INCLUDE or the condition of an IF failed.
    """

    statements: tuple[Statement, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()
    warnings: tuple[Diagnostic, ...] = ()  # SQL that sqlglot cannot read
    parameters: dict[str, Any] = field(default_factory=dict)
    files: tuple[str, ...] = ()  # in the order they were read
    unsure: frozenset[str] = frozenset()
    incomplete: bool = False

    def sorted(self, diagnostics: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
        """Diagnostics without repetition by file, line and column; files in the order they were read."""
        order = {file: index for index, file in enumerate(self.files)}

        def key(diagnostic: Diagnostic) -> tuple[int, int, int]:
            place = diagnostic.place
            return order.get(place.file, len(order)), place.line, place.column

        return tuple(sorted(dict.fromkeys(diagnostics), key=key))
