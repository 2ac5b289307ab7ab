"""Statements become DataFrames. Nothing is computed here; Spark only analyses, so every mistake in the SQL shows
before the first row is staged."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from lockgate.errors import LockgateError, RunError, SourceError
from lockgate.identifiers import quoted
from lockgate.language.diagnostics import Diagnostic
from lockgate.language.statements import (
    CheckStep,
    CreateTableStep,
    ExportStep,
    LoadStep,
    SourceStep,
    Sql,
)
from lockgate.plan.steps import Plan, Step
from lockgate.running.session import quietly
from lockgate.running.sources import read_source
from lockgate.running.spark_errors import query_error, spark_message

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_OWN_VIEW = "__lockgate_{run}_{number}"


class Frames:
    """The tables of one run as temporary views of its session, and the queries of its checks and exports."""

    def __init__(self, session: SparkSession, plan: Plan, project: Path, run: str) -> None:
        self.session = session
        self._plan = plan
        self._project = project
        self._run = run.replace("-", "_").replace(":", "_")
        self._sources: dict[str, DataFrame] = {}
        self._queries: list[Sql] = []
        self._views: list[str] = []
        self._kept: list[DataFrame] = []
        self._results: dict[int, DataFrame] = {}

    def __enter__(self) -> Frames:
        self._refuse_to_shadow()
        return self

    def __exit__(self, *_: object) -> None:
        for frame in self._kept:
            quietly(frame.unpersist)
        for view in self._views:
            quietly(self.session.catalog.dropTempView, view)

    def _refuse_to_shadow(self) -> None:
        """A session that a caller gave may hold views of its own, which a table of the pipeline must not replace."""
        ours = {s.name.casefold() for s in self._plan.steps if s.kind in ("load", "create")}
        # Asking by name takes a few milliseconds, listing a tenth of a second; so it is asked first.
        if not any(self.session.catalog.tableExists(quoted(name)) for name in ours):
            return
        taken = [t.name for t in self.session.catalog.listTables() if t.isTemporary and t.name.casefold() in ours]
        if taken:
            raise RunError(
                f"the Spark session already has a temporary view named {', '.join(sorted(taken))}",
                in_place="nothing was run; the view is untouched",
                hint="drop the view, or rename the table in the pipeline",
            )

    def build(self, step: Step, number: int) -> None:
        """Analyse one step. Steps come in the plan's order."""
        statement = step.statement
        try:
            match statement:
                case SourceStep():
                    self._sources[statement.name.casefold()] = read_source(self.session, statement, self._project)
                case LoadStep():
                    self._table(step, self._sources[statement.source_name.casefold()], statement.mode)
                case CreateTableStep():
                    self._table(step, self._sql(statement.query), statement.mode)
                case CheckStep():
                    self._result(number, self._sql(statement.query))
                case ExportStep():
                    self._result(number, self._export(statement))
        except LockgateError:
            raise
        except Exception as error:  # pyspark has many; each is Spark's word on this statement
            raise self.explain(error, step) from error

    def result(self, number: int) -> DataFrame:
        """The rows of the check or export that was built under this number."""
        return self._results[number]

    def explain(self, error: Exception, step: Step) -> LockgateError:
        """Spark's exception as ours, with the place in the pipeline."""
        statement = step.statement
        if isinstance(statement, SourceStep):
            message = f"the source {statement.name} cannot be read: {spark_message(error)}"
            return SourceError(
                Diagnostic(statement.params_place, "source", message).render(), in_place="nothing was published"
            )
        own = [q for q in (getattr(statement, "query", None),) if q is not None]
        return query_error(error, f"{step.kind} {step.name}", statement.place, [*own, *reversed(self._queries)])

    def _sql(self, query: Sql) -> DataFrame:
        self._queries.append(query)
        values: dict[str, Any] = {name: self._plan.parameters[name] for name in query.parameters}
        return self.session.sql(query.text, args=values) if values else self.session.sql(query.text)

    def _export(self, statement: ExportStep) -> DataFrame:
        if statement.table_name is not None:
            return self.session.table(quoted(statement.table_name))
        assert statement.query is not None
        return self._sql(statement.query)

    def _table(self, step: Step, frame: DataFrame, mode: str) -> None:
        if mode == "APPEND" and step.name.casefold() in self._views:
            frame = self.session.table(quoted(step.name)).unionByName(frame)
        if step.shared:
            frame = frame.persist()
            self._kept.append(frame)
        self._view(step.name, frame)
        self._views.append(step.name.casefold())

    def _result(self, number: int, frame: DataFrame) -> None:
        """Pin a query to the tables as they are now. A classic DataFrame is bound to them already; one over Connect
        would look its names up again when it runs, so it becomes a view, which the server binds."""
        if type(self.session).__module__.startswith("pyspark.sql.connect"):
            name = _OWN_VIEW.format(run=self._run, number=number)
            self._view(name, frame)
            self._views.append(name)
            frame = self.session.table(name)
        self._results[number] = frame

    @staticmethod
    def _view(name: str, frame: DataFrame) -> None:
        frame.createOrReplaceTempView(quoted(name))
