"""A plan: the statements of a pipeline as steps in the order they run."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from lockgate.language.statements import (
    CheckStep,
    CreateTableStep,
    ExportStep,
    LoadStep,
    PipelineStep,
    SourceStep,
)

StepKind = Literal["source", "load", "create", "check", "export"]
Statement = SourceStep | LoadStep | CreateTableStep | CheckStep | ExportStep

KIND_OF: dict[type[PipelineStep], StepKind] = {
    SourceStep: "source",
    LoadStep: "load",
    CreateTableStep: "create",
    CheckStep: "check",
    ExportStep: "export",
}


@dataclass(frozen=True)
class Step:
    """One statement with what it reads. `reads` are names of tables (or of the source, for a LOAD)."""

    name: str
    kind: StepKind
    statement: Statement
    reads: tuple[str, ...] = ()
    shared: bool = False  # its table is read by more than one step, so it is computed once and kept


@dataclass(frozen=True)
class Plan:
    pipeline: str
    steps: tuple[Step, ...]
    parameters: dict[str, Any] = field(default_factory=dict)  # values of the :names that the SQL binds

    @property
    def exports(self) -> tuple[Step, ...]:
        return tuple(s for s in self.steps if s.kind == "export")

    @property
    def checks(self) -> tuple[Step, ...]:
        return tuple(s for s in self.steps if s.kind == "check")
