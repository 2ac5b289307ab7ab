"""Tables that outlive the run, as the statements of a pipeline find them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from lockgate.config import Project
from lockgate.destinations.protocol import ExportRequest, Window
from lockgate.errors import StageError
from lockgate.identifiers import quoted
from lockgate.language.diagnostics import Diagnostic, nearest
from lockgate.language.statements import CreateTableStep
from lockgate.merging.order import parse_order_by
from lockgate.running.incremental import Reading
from lockgate.running.windows import END, FIRST, START, given_bound, literal, parameters, window_of

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_NOTHING = "nothing was published; every destination is as it was"


class Warehouse:
    """The warehouse of a profile in one session. A profile that keeps tables in memory has no table in it."""

    def __init__(
        self,
        session: SparkSession,
        project: Project,
        reading: Reading,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._session = session
        self._project = project
        self._reading = reading
        self._now = now

    def table(self, name: str) -> DataFrame | None:
        """The table as it is in the log now, or None if it is not there."""
        if self._project.profile.tables != "warehouse":
            return None
        from lockgate.engines.spark_snapshot import snapshot_frame
        from lockgate.tables.opening import newest_snapshot
        from lockgate.tables.places import log_address

        found = newest_snapshot(log_address(self._project), name)
        return snapshot_frame(self._session, found) if found is not None else None

    def window(
        self,
        statement: CreateTableStep,
        before: DataFrame | None,
        query: Callable[[Mapping[str, Any]], DataFrame],
        given: Mapping[str, Any],
    ) -> Window:
        """What this run computes of an INCREMENTAL table. The type of its BY column says what the bounds are."""
        rows = query(parameters(Window("", FIRST["date"], FIRST["date"]))) if before is None else before
        column, kind = _by(statement, rows)
        latest = _latest(before, column, kind) if before is not None else None
        bounds = {name: given[name] for name in (START, END) if name in given}
        if self._reading.full_refresh:
            bounds[START] = FIRST[kind]
        if self._reading.start is not None:
            bounds[START] = self._reading.start
        if self._reading.end is not None:  # of a range on the command line the end itself is not part
            step = timedelta(days=1) if kind == "date" else timedelta(microseconds=1)
            bounds[END] = given_bound(self._reading.end, kind) - step
        return window_of(statement, column, kind, latest, self._now(), bounds)


def as_called(frame: DataFrame, table: DataFrame | None) -> DataFrame:
    """The rows with their columns as the table calls them: SQL does not tell upper from lower case, a table does."""
    called = {name.lower(): name for name in table.columns} if table is not None else {}
    names = [called.get(name.lower(), name) for name in frame.columns]
    if names == frame.columns or len({name.lower() for name in names}) < len(names):
        return frame
    return frame.toDF(*names)


def as_columns(request: ExportRequest, columns: Sequence[str]) -> ExportRequest:
    """What is asked of a table with its keys as the columns are called."""
    called = {name.lower(): name for name in columns}
    keys = tuple(called.get(key.lower(), key) for key in request.keys)
    order = [
        key._replace(column=called.get(key.column.lower(), key.column)) for key in parse_order_by(request.order_by)
    ]
    return replace(request, keys=keys, order_by=tuple(key.sql for key in order))


def outside(frame: DataFrame, window: Window) -> DataFrame:
    """The rows that a window does not touch."""
    from pyspark.sql import functions as F

    column = F.col(quoted(window.column))
    return frame.where(column.isNull() | ~_within(column, window))


def require_inside(frame: DataFrame, window: Window, table: str) -> DataFrame:
    """The same rows; computing them fails at one that is not in the window, which the next run would not replace."""
    from pyspark.sql import functions as F

    column = F.col(quoted(window.column))
    refusal = F.raise_error(
        F.concat(
            F.lit(f"a row for table {table} is not in the window, {window}: its {window.column} is "),
            F.coalesce(column.cast("string"), F.lit("NULL")),
            F.lit(f"; let the query select BETWEEN :{START} AND :{END}"),
        )
    )
    checked = F.when(_within(column, window), column).otherwise(
        refusal.cast("string").cast(_kind(frame, window.column))
    )
    return frame.select([checked.alias(c) if c == window.column else F.col(quoted(c)) for c in frame.columns])


def _within(column: Column, window: Window) -> Column:
    return column.between(literal(window.start), literal(window.end))


def _by(statement: CreateTableStep, rows: DataFrame) -> tuple[str, str]:
    wanted = statement.incremental_by or ""
    name = next((c for c in rows.columns if c.casefold() == wanted.casefold()), None)
    if name is None:
        near = nearest(wanted, rows.columns)
        message = f"table {statement.table_name} has no column {wanted}; its columns are {', '.join(rows.columns)}"
        hint = f"did you mean {near}?" if near else None
        raise StageError(Diagnostic(statement.mode_place, "mode", message, hint).render(), in_place=_NOTHING)
    kind = _kind(rows, name)
    if kind not in FIRST:
        message = f"BY {wanted} is of type {kind}, and a window goes by dates or timestamps"
        hint = f"make a DATE or TIMESTAMP of it in the query: CAST({wanted} AS DATE) AS {wanted}"
        raise StageError(Diagnostic(statement.mode_place, "mode", message, hint).render(), in_place=_NOTHING)
    return name, kind


def _kind(frame: DataFrame, column: str) -> str:
    return str(frame.schema[column].dataType.simpleString())


def _latest(table: DataFrame, column: str, kind: str) -> Any:
    """Read from the log's statistics by Spark's scan of one column. Collected as text, which has no zone to lose."""
    from pyspark.sql import functions as F

    found = table.agg(F.max(F.col(quoted(column))).cast("string").alias("latest")).first()
    text = found["latest"] if found is not None else None
    return given_bound(text, kind) if text is not None else None
