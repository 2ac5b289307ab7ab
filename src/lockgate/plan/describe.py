"""A plan in words: as JSON for machines, as rows of text for people."""

from __future__ import annotations

from typing import Any

from lockgate.destinations.keyed_engine import asked_engine, engine_in_words
from lockgate.language.statements import CreateTableStep, ExportStep, LoadStep
from lockgate.modes import KEYED_MODES
from lockgate.plan.steps import Plan, Step

HEADING = ("#", "step", "name", "reads", "writes", "mode")


def to_json(plan: Plan) -> dict[str, Any]:
    """The plan as `lockgate plan --json` prints it; `exports` are shaped like those of a run, with no counts yet."""
    return {
        "pipeline": plan.pipeline,
        "steps": [
            {
                "name": step.name,
                "kind": step.kind,
                "reads": list(step.reads),
                "mode": _mode(step),
                "place": str(step.statement.place),
            }
            for step in plan.steps
        ],
        "exports": [_export(step.statement) for step in plan.exports if isinstance(step.statement, ExportStep)],
    }


def to_rows(plan: Plan) -> list[tuple[str, ...]]:
    """The plan as a table of text, heading first."""
    rows: list[tuple[str, ...]] = [HEADING]
    for number, step in enumerate(plan.steps, start=1):
        rows.append((str(number), step.kind, step.name, ", ".join(step.reads), _writes(step), _mode_in_words(step)))
    return rows


def _export(export: ExportStep) -> dict[str, Any]:
    return {
        "name": export.label,
        "destination": export.destination_uri,
        "type": export.connector_type,
        "mode": export.mode,
        "keys": list(export.upsert_keys),
        "status": "planned",
        "inserted": None,
        "updated": None,
        "deleted": None,
        "rows": None,
        "version": None,
        "files": {"rewritten": None, "added": None, "preserved": None},
        "engine": _engine(export),
        "engine_reason": _engine_reason(export),
    }


def _engine(export: ExportStep) -> str:
    """What writes the files: Spark, or for a keyed mode the engine that is asked for."""
    return asked_engine(export.options) if export.mode in KEYED_MODES else "spark"


def _engine_reason(export: ExportStep) -> str | None:
    """How it is chosen, where there is a choice."""
    keyed = export.mode in KEYED_MODES and export.connector_type.upper() == "PARQUET"
    return engine_in_words(export.options) if keyed else None


def engine_lines(plan: Plan) -> list[str]:
    """Which engine does each merge, and why."""
    exports = [step.statement for step in plan.steps if isinstance(step.statement, ExportStep)]
    return [f"{e.mode} {e.destination_uri}: {reason}" for e in exports if (reason := _engine_reason(e))]


def _mode(step: Step) -> str | None:
    statement = step.statement
    return statement.mode if isinstance(statement, LoadStep | CreateTableStep | ExportStep) else None


def _mode_in_words(step: Step) -> str:
    statement = step.statement
    if not isinstance(statement, LoadStep | CreateTableStep | ExportStep):
        return ""
    words = statement.mode
    if statement.upsert_keys:
        words += f" KEY ({', '.join(statement.upsert_keys)})"
    if statement.order_by:
        words += f" ORDER BY {', '.join(statement.order_by)}"
    return words


def _writes(step: Step) -> str:
    statement = step.statement
    if isinstance(statement, ExportStep):
        return f"{statement.destination_uri} ({statement.connector_type})"
    if isinstance(statement, LoadStep | CreateTableStep):
        return f"table {statement.table_name}" + (", kept for several readers" if step.shared else "")
    return ""
