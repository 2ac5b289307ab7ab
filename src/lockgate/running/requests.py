"""The exports of a plan as their destinations see them."""

from __future__ import annotations

from collections.abc import Iterator

from lockgate.config import Project
from lockgate.destinations import registry
from lockgate.destinations.protocol import Destination, ExportRequest
from lockgate.language.statements import ExportStep
from lockgate.plan.steps import Plan


def delta_tables(plan: Plan) -> list[str]:
    """The Delta tables that a plan writes to."""
    exports = [step.statement for step in plan.exports if isinstance(step.statement, ExportStep)]
    return sorted({export.destination_uri for export in exports if export.connector_type.upper() == "DELTA"})


def export_requests(plan: Plan, project: Project, run: str) -> Iterator[tuple[int, ExportRequest, Destination]]:
    """Each export with the number of its step among all steps, in the plan's order."""
    number = 0
    for step_number, step in enumerate(plan.steps):
        statement = step.statement
        if not isinstance(statement, ExportStep):
            continue
        number += 1
        request = ExportRequest(
            destination=statement.destination_uri,
            type=statement.connector_type.upper(),
            mode=statement.mode,
            options=statement.options,
            keys=tuple(statement.upsert_keys),
            order_by=tuple(statement.order_by),
            project=project.root,
            profile=project.profile,
            run=run,
            number=number,
        )
        destination = registry.find(request.type)
        assert destination is not None, "the planner refuses unknown types"
        yield step_number, request, destination
