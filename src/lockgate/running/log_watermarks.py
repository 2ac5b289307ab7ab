"""Watermarks in the log of Delta tables: committed with the rows that they stand for, in one transaction.

The project's own record has them too. Where the two differ, the newer one holds: a run that died between the two moved
the log's alone, and on a machine that is made anew for each run the log's is the only one.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from lockgate.config import Project
from lockgate.plan.steps import Plan
from lockgate.running.requests import delta_tables
from lockgate.sources.watermark import PendingWatermark, StoredWatermark, Watermark
from lockgate.txlog.commits import Note


def notes_of(
    pipeline: str, profile: str, tables: Iterable[str], pending: Mapping[str, PendingWatermark]
) -> tuple[Note, ...]:
    """What a run's transaction is to keep in the log."""
    prefix = _prefix(pipeline, profile, tables)
    return tuple(
        Note(prefix + source, mark.base, json.dumps(mark.watermark.to_json())) for source, mark in pending.items()
    )


def with_those_of_the_log(
    plan: Plan, project: Project, known: Mapping[str, StoredWatermark]
) -> Mapping[str, StoredWatermark]:
    """The watermarks of a pipeline, each as it is newest. A log that is not there is not made."""
    tables = delta_tables(plan)
    cursors = [step for step in plan.steps if "cursor" in getattr(step.statement, "params", {})]
    if not tables or not cursors:
        return known
    from lockgate.tables.opening import is_there, opened_log
    from lockgate.tables.places import log_address

    address = log_address(project)
    if not is_there(address):
        return known
    with opened_log(address) as log:
        found = log.notes(_prefix(plan.pipeline, project.profile.name, tables))
    newest = dict(known)
    for source, (version, text) in found.items():
        if version > newest.get(source, StoredWatermark()).version:
            newest[source] = StoredWatermark(version, Watermark.from_json(json.loads(text)))
    return newest


def _prefix(pipeline: str, profile: str, tables: Iterable[str]) -> str:
    """Several projects may share a log and call their pipelines the same; they do not write to the same tables."""
    return f"watermark {json.dumps([pipeline, profile, sorted(set(tables))])} "
