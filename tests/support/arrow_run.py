"""A real run whose rows come from Arrow tables instead of Spark: staging, sealing, publishing and records are the
product's own, and a run takes milliseconds, so that it can be killed at every step."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from lockgate.config import Project
from lockgate.destinations.protocol import StagedRows
from lockgate.errors import SchemaMismatchError
from lockgate.language.statements import ExportStep
from lockgate.plan.steps import Plan, Step
from lockgate.running.pipeline import PipelineRun
from lockgate.running.state import RunState
from lockgate.storage.local import LocalStorage
from lockgate.txlog.schema_json import schema_json


@dataclass
class ArrowRun(PipelineRun):
    tables: list[pa.Table] = field(default_factory=list)

    def _stage_and_check(self) -> None:
        self._make_areas()
        for export, table in zip(self._exports, self.tables, strict=True):
            assert export.area is not None
            rows = staged_rows(table, export.destination.layout(export.request).shape, export.area.rows)
            export.prepared = export.destination.stage(export.request, export.area, rows)
            export.result.status = "staged"
            export.result.rows = export.prepared.rows


def staged_rows(table: pa.Table, shape: str, root: Path) -> StagedRows:
    """Rows as Spark would have staged them, in two parts."""
    root.mkdir(parents=True)
    columns = tuple(table.column_names)
    schema = ""
    with suppress(SchemaMismatchError):  # of a type that only Arrow has
        schema = schema_json(table.schema)  # which is Spark's, too
    if shape != "rows":
        lines = [",".join("" if v is None else str(v) for v in row.values()) + "\n" for row in table.to_pylist()]
        table = pa.table({"line": pa.array(lines, pa.string())})
    half = table.num_rows // 2
    parts = []
    for number, piece in enumerate([table.slice(0, half), table.slice(half)]):
        part = root / f"part-{number:05d}-x.parquet"
        pq.write_table(piece, part)
        parts.append(part)
    return StagedRows(root, tuple(parts), columns, schema)


def arrow_run(
    folder: Path,
    exports: list[tuple[ExportStep, pa.Table]],
    *,
    run: str = "2026-01-01T00-00-00-aaaa",
    storage: LocalStorage | None = None,
    pipeline: str = "p.sql",
    **more: Any,
) -> ArrowRun:
    project = Project(folder)
    plan = Plan(pipeline, tuple(Step(step.label, "export", step) for step, _ in exports))
    return ArrowRun(
        plan=plan,
        project=project,
        run=run,
        open_session=lambda: None,  # type: ignore[arg-type,return-value]
        state=RunState(project.state),
        storage=storage or LocalStorage(),
        tables=[table for _, table in exports],
        **more,
    )


def export(destination: str, kind: str, mode: str = "REPLACE", keys: Sequence[str] = (), **options: Any) -> ExportStep:
    return ExportStep(
        sql_query="",
        destination_uri=destination,
        connector_type=kind,
        mode=mode,
        upsert_keys=list(keys),
        options=options,
    )


def snapshot(folder: Path) -> dict[str, bytes]:
    """Every file below a folder but our own record, with its bytes."""
    return {
        str(p.relative_to(folder)): p.read_bytes()
        for p in sorted(folder.rglob("*"))
        if p.is_file() and ".lockgate/" not in str(p.relative_to(folder)) and p.name != ".lockgate_lock"
    }
