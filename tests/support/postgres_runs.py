"""A run without Spark whose exports go into PostgreSQL tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from lockgate.config import Profile, Project
from lockgate.plan.steps import Plan, Step
from lockgate.running.result import ExportResult
from lockgate.running.state import RunState
from lockgate.storage.local import LocalStorage
from support.arrow_run import ArrowRun, export


def postgres_run(
    folder: Path,
    profile: Profile,
    exports: Sequence[tuple[Any, pa.Table]],
    *,
    run: str = "2026-01-01T00-00-00-aaaa",
    storage: LocalStorage | None = None,
    **more: Any,
) -> ArrowRun:
    project = Project(folder, profile)
    return ArrowRun(
        plan=Plan("p.sql", tuple(Step(step.label, "export", step) for step, _ in exports)),
        project=project,
        run=run,
        open_session=lambda: None,  # type: ignore[arg-type,return-value]
        state=RunState(project.state),
        storage=storage or LocalStorage(),
        tables=[table for _, table in exports],
        **more,
    )


def to_table(name: str, mode: str = "REPLACE", keys: Sequence[str] = (), order_by: Sequence[str] = (), **options: Any):
    return replace(export(name, "POSTGRES", mode, keys, connection="pg", **options), order_by=list(order_by))


def write(
    folder: Path,
    profile: Profile,
    table: pa.Table,
    name: str,
    mode: str = "REPLACE",
    keys: Sequence[str] = (),
    *,
    run: str = "2026-01-01T00-00-00-aaaa",
    storage: LocalStorage | None = None,
    order_by: Sequence[str] = (),
    **options: Any,
) -> ExportResult:
    """One export, published."""
    exports = [(to_table(name, mode, keys, order_by, **options), table)]
    return postgres_run(folder, profile, exports, run=run, storage=storage).execute().exports[0]


def counts(result: ExportResult) -> tuple[int | None, int | None, int | None]:
    return result.inserted, result.updated, result.deleted
