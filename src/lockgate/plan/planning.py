"""From a program to a plan: run the passes, then either make the steps or say what is wrong."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from lockgate.config import Profile
from lockgate.language.diagnostics import Diagnostic
from lockgate.language.program import Program
from lockgate.plan.draft import Draft, name_of
from lockgate.plan.passes import PASSES
from lockgate.plan.steps import KIND_OF, Plan, Step

if TYPE_CHECKING:
    from lockgate.destinations.protocol import Destination


def draft_of(
    program: Program,
    pipeline: str,
    project: Path,
    profile: Profile,
    find: Callable[[str], Destination | None] | None,
) -> Draft:
    """The draft after all passes."""
    from lockgate.destinations import registry

    draft = Draft(program, pipeline, project, profile, find or registry.find, registry.types)
    for improve in PASSES:
        draft = improve(draft)
    return draft


def problems_of(draft: Draft, *, warnings: bool) -> tuple[Diagnostic, ...]:
    """Everything wrong with the pipeline. Where the language has complained of a spot, the planner need not."""
    program = draft.program
    blamed = {(d.place.file, d.place.line, d.place.column) for d in program.diagnostics}
    own = [d for d in draft.diagnostics if (d.place.file, d.place.line, d.place.column) not in blamed]
    return program.sorted([*program.diagnostics, *(program.warnings if warnings else ()), *own])


def plan_of(draft: Draft) -> Plan:
    """The plan of a draft that has no problems."""
    steps = []
    for index in draft.order:
        statement = draft.statements[index]
        reads = tuple(dict.fromkeys(read.name for read in draft.reads[index]))
        steps.append(Step(name_of(statement), KIND_OF[type(statement)], statement, reads, shared=index in draft.shared))
    return Plan(draft.pipeline, tuple(steps), dict(draft.program.parameters))
