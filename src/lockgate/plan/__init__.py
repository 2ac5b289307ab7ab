"""Statements in, steps out: what a run will do and in which order. Pure passes; nothing is read or written.

sqlglot takes a while to import, so the passes are imported when a plan is made; the records of `steps` stay cheap.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from lockgate.config import Profile
from lockgate.errors import PipelineError
from lockgate.language.diagnostics import Diagnostic
from lockgate.language.program import Program
from lockgate.plan.steps import Plan, Step

if TYPE_CHECKING:
    from lockgate.destinations.protocol import Destination

__all__ = ["Plan", "Step", "check", "make_plan"]

_NO_PROFILE = Profile()


def make_plan(
    program: Program,
    *,
    pipeline: str,
    project: Path,
    profile: Profile = _NO_PROFILE,
    find: Callable[[str], Destination | None] | None = None,
) -> Plan:
    """The plan of a program; raises PipelineError with everything that is wrong, of the text and of the plan.

    SQL that Lockgate cannot parse is left to Spark.

    >>> from lockgate.language import parse
    >>> program = parse("CREATE TABLE b AS FROM a; CREATE TABLE a AS SELECT 1;")
    >>> [step.name for step in make_plan(program, pipeline="p.sql", project=Path()).steps]
    ['a', 'b']
    """
    from lockgate.plan.planning import draft_of, plan_of, problems_of

    draft = draft_of(program, pipeline, project, profile, find)
    problems = problems_of(draft, warnings=False)
    if problems:
        raise PipelineError(problems)
    return plan_of(draft)


def check(
    program: Program,
    *,
    pipeline: str,
    project: Path,
    profile: Profile = _NO_PROFILE,
    find: Callable[[str], Destination | None] | None = None,
) -> list[Diagnostic]:
    """Everything wrong with a program, in the order of its text; SQL that cannot be parsed counts here.

    >>> from lockgate.language import parse
    >>> [d.code for d in check(parse("EXPORT nothing TO 'x' TYPE CSV;"), pipeline="p.sql", project=Path())]
    ['unknown-table']
    """
    from lockgate.plan.planning import draft_of, problems_of

    return list(problems_of(draft_of(program, pipeline, project, profile, find), warnings=True))
