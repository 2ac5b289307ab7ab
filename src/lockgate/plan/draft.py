"""A plan in the making: what each pass gets, and what it gives to the next."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from lockgate.config import Profile
from lockgate.language.diagnostics import Diagnostic
from lockgate.language.program import Program, Statement
from lockgate.language.statements import CheckStep, CreateTableStep, ExportStep, LoadStep, SourceStep

if TYPE_CHECKING:
    from lockgate.destinations.protocol import Destination


@dataclass(frozen=True)
class TableRead:
    """A statement reads what another one makes; both by their index in the program."""

    name: str  # as it is spelled where it is defined
    producer: int


@dataclass(frozen=True)
class Draft:
    """Never changed in place: a pass returns a new one. Names are compared without case, as Spark does."""

    program: Program
    pipeline: str
    project: Path
    profile: Profile
    find: Callable[[str], Destination | None]
    types: Callable[[], tuple[str, ...]]
    diagnostics: tuple[Diagnostic, ...] = ()
    sources: Mapping[str, int] = field(default_factory=dict)  # folded name -> index
    versions: Mapping[str, tuple[int, ...]] = field(default_factory=dict)  # folded table name -> indices, in text order
    reads: tuple[tuple[TableRead, ...], ...] = ()  # of each statement, repeated where it reads twice
    order: tuple[int, ...] = ()
    shared: frozenset[int] = frozenset()

    @property
    def statements(self) -> tuple[Statement, ...]:
        return self.program.statements

    def complaining(self, diagnostics: Iterable[Diagnostic]) -> Draft:
        return replace(self, diagnostics=(*self.diagnostics, *diagnostics))

    def following_version(self, index: int) -> int | None:
        """The statement that makes the next version of the table that this one makes."""
        statement = self.statements[index]
        if not isinstance(statement, LoadStep | CreateTableStep):
            return None
        made = self.versions.get(statement.table_name.casefold(), ())
        position = made.index(index) + 1 if index in made else len(made)
        return made[position] if position < len(made) else None


def name_of(statement: Statement) -> str:
    """The name a step goes by."""
    if isinstance(statement, SourceStep | CheckStep):
        return statement.name
    if isinstance(statement, ExportStep):
        return statement.label
    return statement.table_name
