"""Statements become DataFrames. Spark only analyses them, so a mistake in the SQL shows before anything is computed.
What a keyed mode needs to know of its rows is for the caller to ask, after the last statement."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial, reduce
from typing import TYPE_CHECKING, Any

from lockgate.config import Project
from lockgate.destinations.protocol import ExportRequest, Window
from lockgate.engines.spark_worker import unpacked
from lockgate.errors import (
    DuplicateKeyError,
    LockgateError,
    MergeError,
    NullKeyError,
    RunError,
    SchemaMismatchError,
    SourceError,
    StageError,
)
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
from lockgate.modes import KEYED_MODES
from lockgate.plan.steps import Plan, Step
from lockgate.running.incremental import WHOLE, Reading
from lockgate.running.progress import Progress
from lockgate.running.python_functions import forget_functions, register_functions
from lockgate.running.session import quietly, run_settings
from lockgate.running.source_frames import SourceFrames
from lockgate.running.spark_errors import query_error, spark_message
from lockgate.running.warehouse import Warehouse, as_called, as_columns, outside, require_inside
from lockgate.running.windows import NO_WINDOW, parameters
from lockgate.sources.watermark import PendingWatermark, Watermark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_OWN_VIEW = "__lockgate_{run}_{number}"
_CODES = {NullKeyError: "null-key", DuplicateKeyError: "duplicate-key", SchemaMismatchError: "schema"}
_NOTHING = "nothing was published; every destination is as it was"


@contextmanager
def opened_frames(
    session: SparkSession, plan: Plan, project: Project, run: str, reading: Reading = WHOLE
) -> Iterator[Frames]:
    """Frames in a session with the settings of a run and the functions of the project, which it loses again."""
    with ExitStack() as stack:
        stack.enter_context(run_settings(session))
        stack.callback(forget_functions, session, register_functions(session, project.root))
        yield stack.enter_context(Frames(session, plan, project, run, reading))


class Frames:
    """The tables of one run as temporary views of its session, and the queries of its checks and exports."""

    def __init__(self, session: SparkSession, plan: Plan, project: Project, run: str, reading: Reading) -> None:
        self.session = session
        self._plan = plan
        self._run = run.replace("-", "_").replace(":", "_")
        self._warehouse = Warehouse(session, project, reading)
        self._read = SourceFrames(session, project, self._run, reading, self._kept_source)
        self._sources: dict[str, DataFrame] = {}
        self._queries: list[Sql] = []
        self._views: list[str] = []
        self._kept: list[DataFrame] = []
        self._results: dict[int, DataFrame] = {}
        self._brought: dict[int, DataFrame] = {}  # the rows that a statement brings to its table, by its identity
        self._windows: dict[int, Window] = {}  # of INCREMENTAL tables, by the identity of their statement
        self._checks: dict[int, Callable[[], None]] = {}  # of the rows that keyed modes bring, by the step's number

    def __enter__(self) -> Frames:
        self._refuse_to_shadow()
        return self

    def __exit__(self, *_: object) -> None:
        for frame in self._kept:
            quietly(frame.unpersist)
        self._read.close()
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
        self._explained(step, partial(self._analyse, step, number))

    @property
    def keyed_steps(self) -> tuple[int, ...]:
        """The numbers of the steps that merge into a table. Their rows are to be checked before any result is used."""
        return tuple(self._checks)

    def check_rows(self, number: int) -> None:
        """Compute the rows that a keyed step brings; raises a MergeError if one of them cannot be merged."""
        self._explained(self._plan.steps[number], self._checks[number])

    def _analyse(self, step: Step, number: int) -> None:
        statement = step.statement
        match statement:
            case SourceStep():
                self._sources[statement.name.casefold()] = self._source(statement)
            case LoadStep():
                brought = self._sources[statement.source_name.casefold()]
                self._table(step, number, statement, self._before(step, statement), brought)
            case CreateTableStep():
                self._create(step, number, statement)
            case CheckStep():
                self._results[number] = self._pinned(number, self._sql(statement.query))
            case ExportStep():
                self._results[number] = self._pinned(number, self._export(statement))

    def _source(self, statement: SourceStep) -> DataFrame:
        name = statement.name.casefold()
        loads = [s.statement for s in self._plan.steps if isinstance(s.statement, LoadStep)]
        return self._read.read(statement, loaded=any(load.source_name.casefold() == name for load in loads))

    def _kept_source(self, frame: DataFrame) -> DataFrame:
        return self._keep(self._pinned(-1 - len(self._kept), frame))

    def watermarks(self, progress: Progress) -> dict[str, PendingWatermark]:
        """The watermarks that the run brings. The rows of incremental sources are read now, and once."""
        return self._read.watermarks(partial(self._watermark, progress))

    def require_unchanged(self) -> None:
        """After the last row is read: raises a SourceError if a file of an incremental source changed meanwhile."""
        try:
            self._read.require_unchanged()
        except SourceError as error:
            raise self._with_place(error) from error

    def _watermark(self, progress: Progress, source: str, work: Callable[[], Watermark | None]) -> Watermark | None:
        step = next(s for s in self._plan.steps if s.kind == "source" and s.name == source)
        found: list[Watermark | None] = []
        with progress.working(f"reading {source}"):
            self._explained(step, lambda: found.append(work()))
        return found[0]

    def _explained(self, step: Step, work: Callable[[], None]) -> None:
        try:
            work()
        except MergeError as error:
            raise _placed(error, step) from error
        except SourceError as error:
            raise self._with_place(error) from error
        except LockgateError:
            raise
        except Exception as error:  # pyspark has many; each is Spark's word on this statement
            raise self.explain(error, step) from error

    @contextmanager
    def exporting(self, step: Step) -> Iterator[None]:
        """What goes wrong with the rows of an export, said with the place of its statement."""
        place = step.statement.place
        try:
            yield
        except StageError as error:
            raise StageError(f"{place}: {error.message}", in_place=error.in_place, hint=error.hint) from error
        except MergeError as error:  # of the kind it is, so that a caller can tell a NULL key from a lossy cast
            error.message = f"{place}: {error.message}"
            error.args = (error.message,)
            error.in_place = _NOTHING
            raise
        except LockgateError:
            raise
        except Exception as error:  # Spark's, from computing or writing the rows
            raise self.explain(error, step) from error

    def result(self, number: int) -> DataFrame:
        """The rows of the check or export that was built under this number."""
        return self._results[number]

    def explain(self, error: Exception, step: Step) -> LockgateError:
        """Spark's exception as ours, with the place in the pipeline."""
        told = unpacked(str(error))
        if isinstance(told, SourceError):  # from a worker that read a source
            return self._with_place(told)
        statement = step.statement
        if isinstance(statement, SourceStep):
            message = f"the source {statement.name} cannot be read: {spark_message(error)}"
            return SourceError(
                Diagnostic(statement.params_place, "source", message).render(), in_place="nothing was published"
            )
        own = [q for q in (getattr(statement, "query", None),) if q is not None]
        return query_error(error, f"{step.kind} {step.name}", statement.place, [*own, *reversed(self._queries)])

    def _with_place(self, error: SourceError) -> SourceError:
        """The error of a source that knows its name alone, with the place of its statement."""
        for step in self._plan.steps:
            if step.kind == "source" and step.name == error.source and isinstance(step.statement, SourceStep):
                shown = f"the source {step.name}: {error.message}"
                message = Diagnostic(step.statement.params_place, "source", shown).render()
                return SourceError(message, in_place=error.in_place, hint=error.hint)
        return error

    def _sql(self, query: Sql, window: Mapping[str, Any] = NO_WINDOW) -> DataFrame:
        self._queries.append(query)
        known = {**self._plan.parameters, **window}
        values: dict[str, Any] = {name: known[name] for name in query.parameters}
        return self.session.sql(query.text, args=values) if values else self.session.sql(query.text)

    def _export(self, statement: ExportStep) -> DataFrame:
        if statement.brought_by:
            return reduce(lambda all, more: all.unionByName(more), [self._brought[id(s)] for s in statement.brought_by])
        if statement.table_name is not None:
            return self.session.table(quoted(statement.table_name))
        assert statement.query is not None
        return self._sql(statement.query)

    def _create(self, step: Step, number: int, statement: CreateTableStep) -> None:
        before = self._before(step, statement)
        if statement.mode != "INCREMENTAL":
            self._table(step, number, statement, before, self._sql(statement.query))
            return
        window = self._warehouse.window(statement, before, partial(self._sql, statement.query), self._plan.parameters)
        self._windows[id(statement)] = window
        rows = as_called(self._sql(statement.query, parameters(window)), before)
        brought = require_inside(rows, window, step.name)
        self._table(step, number, statement, before and outside(before, window), brought)

    def _before(self, step: Step, statement: LoadStep | CreateTableStep) -> DataFrame | None:
        """What the table holds already: from an earlier statement, or in the warehouse."""
        if statement.mode == "REPLACE":
            return None
        if step.name.casefold() in self._views:
            return self.session.table(quoted(step.name))
        return self._warehouse.table(step.name)

    def window(self, step: Step) -> Window | None:
        """The window of the INCREMENTAL table that the step publishes."""
        made = getattr(step.statement, "brought_by", ())
        return self._windows.get(id(made[-1])) if made else None

    def asked(self, number: int, request: ExportRequest) -> ExportRequest:
        """What an export asks, once its rows are known. A statement names the columns of its table in any case."""
        brought = getattr(self._plan.steps[number].statement, "brought_by", ())
        return as_columns(request, self._results[number].columns) if brought else request

    def _table(
        self,
        step: Step,
        number: int,
        statement: LoadStep | CreateTableStep,
        before: DataFrame | None,
        frame: DataFrame,
    ) -> None:
        if statement.mode in KEYED_MODES:
            frame = self._merged(number, statement, before, frame)
        else:
            frame = as_called(frame, before)
            if step.shared and before is not None:
                frame = self._keep(frame)  # it is published by itself, and read as part of the table
            self._brought[id(statement)] = frame
            if before is not None:
                frame = before.unionByName(frame)
        if step.shared:
            frame = self._keep(frame)
        self._view(step.name, frame)
        self._views.append(step.name.casefold())

    def _merged(
        self,
        number: int,
        statement: LoadStep | CreateTableStep,
        target: DataFrame | None,
        source: DataFrame,
    ) -> DataFrame:
        """The table with the new rows merged in. They are kept: the check computes them, the table is made of them."""
        from lockgate.running.keyed_source import check_rows  # here, since they load pyspark
        from lockgate.running.table_merge import merged

        source = self._keep(self._pinned(number, source))
        self._brought[id(statement)] = as_called(source, target)
        result = merged(target, source, statement.mode, statement.upsert_keys, statement.order_by)
        schema = target.schema if target is not None else None
        self._checks[number] = partial(check_rows, source, schema, statement.mode, statement.upsert_keys)
        return result

    def _keep(self, frame: DataFrame) -> DataFrame:
        """Compute it once, when it is first read; it goes at the end of the run."""
        frame = frame.persist()
        self._kept.append(frame)
        return frame

    def _pinned(self, number: int, frame: DataFrame) -> DataFrame:
        """A query bound to the tables as they are now. A classic DataFrame is bound to them already; one over Connect
        would look its names up again when it runs, so it becomes a view, which the server binds."""
        if not type(self.session).__module__.startswith("pyspark.sql.connect"):
            return frame
        name = _OWN_VIEW.format(run=self._run, number=str(number).replace("-", "source"))
        self._view(name, frame)
        self._views.append(name)
        return self.session.table(name)

    @staticmethod
    def _view(name: str, frame: DataFrame) -> None:
        frame.createOrReplaceTempView(quoted(name))


def _placed(error: MergeError, step: Step) -> MergeError:
    """The same error with the place of its statement, and with what is true of a run."""
    place = getattr(step.statement, "mode_place", step.statement.place)
    message = f"MODE {getattr(step.statement, 'mode', '')} of table {step.name}: {error.message}"
    shown = Diagnostic(place, _CODES.get(type(error), "merge"), message)
    return type(error)(shown.render(), hint=error.hint, in_place=_NOTHING)
