"""Incremental sources: what a run takes of them, and the watermark that it brings.

The rows are read once and kept. What the run takes, the new watermark and the hashes behind it all come from those, so
that no row can be in one and not in another.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import Decimal
from typing import TYPE_CHECKING

from lockgate.errors import ConfigError, LockgateError
from lockgate.identifiers import quoted
from lockgate.language.diagnostics import nearest
from lockgate.language.statements import SourceStep
from lockgate.plan.steps import Plan
from lockgate.running.incremental_files import FileCursor, WatchedFiles
from lockgate.sources.conditions import Condition, Value
from lockgate.sources.lookback import parse_lookback
from lockgate.sources.postgres_problems import problem
from lockgate.sources.postgres_types import ReadColumn
from lockgate.sources.watermark import (
    CursorValue,
    PendingWatermark,
    StoredWatermark,
    Watermark,
    ceiling,
    fits,
    moved,
    parse_value,
    read_from,
    text_of,
)

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructField, StructType

Lookback = timedelta | Decimal | None

MOST_REMEMBERED = 1_000_000
_FULL_REFRESH = "read the source from the beginning: lockgate run --full-refresh"
_HASH, _COUNT, _NUMBER = "__lockgate_hash", "__lockgate_count", "__lockgate_number"
_WHOLE = {"smallint": 2**15, "integer": 2**31, "bigint": 2**63}


@dataclass(frozen=True)
class Reading:
    """How a run reads its incremental sources."""

    watermarks: Mapping[str, StoredWatermark] = field(default_factory=dict)  # by the source's name, folded
    full_refresh: bool = False
    start: str | None = None  # a backfill: from here on
    end: str | None = None  # and up to, without this itself

    @property
    def is_backfill(self) -> bool:
        return self.start is not None or self.end is not None

    def of(self, source: str) -> StoredWatermark:
        return self.watermarks.get(source.casefold(), StoredWatermark())


WHOLE = Reading()


class IncrementalSources:
    """The incremental sources of one run."""

    def __init__(self, reading: Reading, keep: Callable[[DataFrame], DataFrame]) -> None:
        self._reading = reading
        self._keep = keep  # computes a frame once, when it is first read
        self._work: dict[str, Callable[[], Watermark | None]] = {}
        self.watched = WatchedFiles()

    def read(
        self,
        step: SourceStep,
        schema: StructType,
        rows: Callable[[tuple[Condition, ...]], DataFrame],
        column: ReadColumn | None = None,
    ) -> DataFrame:
        """What the run takes of a source with a cursor. `rows` reads it, with conditions on the database's `column`
        where there is one."""
        from pyspark.sql import functions as F

        from lockgate.running.cursors import literal

        cursor, kind, lookback = _cursor(step, schema)
        before = None if self._reading.full_refresh else self._reading.of(step.name).watermark
        if before is not None and (before.cursor, before.type) != (cursor.name, kind):
            told = f"it was read by {before.cursor} ({before.type}) so far, and now it is by {cursor.name} ({kind})"
            raise problem(step.name, told, _FULL_REFRESH)
        low, high = self._stretch(step, before, kind, lookback)
        frame = rows(_asked(column, low, high) if column is not None else ())
        there = F.col(quoted(cursor.name))
        if low is not None:
            frame = frame.where((there >= literal(low, cursor.dataType)) | there.isNull())
        if high is not None:
            frame = frame.where(there < literal(high, cursor.dataType))
        if self._reading.is_backfill:
            return frame.where(there.isNotNull())
        kept = self._keep(frame)
        self._work[step.name] = lambda: self._watermark(step, kept, cursor, kind, before, lookback)
        if before is None:
            return kept
        mark = literal(parse_value(before.value, kind), cursor.dataType)
        return self._without_seen(step, kept, there, mark, before)

    def read_files(self, step: SourceStep, cursor: FileCursor) -> DataFrame:
        """The files of a source that no run has read, or those of a backfill."""
        before = None if self._reading.full_refresh else self._reading.of(step.name).watermark
        if before is not None and before.type != "file":
            raise problem(
                step.name, f"it was read by {before.cursor} so far, and is to be read by file now", _FULL_REFRESH
            )
        if self._reading.is_backfill:
            return cursor.between(self._reading.start, self._reading.end)
        frame, after = cursor.unseen(before)
        self._work[step.name] = lambda: None if after == before else after
        return frame

    def pending(
        self, working: Callable[[str, Callable[[], Watermark | None]], Watermark | None]
    ) -> dict[str, PendingWatermark]:
        """The watermarks that this run brings, from the rows that it has read; computes these where nobody has yet."""
        found = {}
        for source, work in self._work.items():
            after = working(source, work)
            if after is not None:
                found[source.casefold()] = PendingWatermark(self._reading.of(source).version, after)
        return found

    def _stretch(
        self, step: SourceStep, before: Watermark | None, kind: str, lookback: Lookback
    ) -> tuple[CursorValue | None, CursorValue | None]:
        """From where to where the source is read. None: without that bound."""
        if self._reading.is_backfill:
            try:
                start, end = (
                    None if t is None else parse_value(t, kind) for t in (self._reading.start, self._reading.end)
                )
            except ValueError as error:
                raise ConfigError(
                    f"--from and --to must be values of the cursor {step.params['cursor']} ({kind}): {error}",
                    in_place="nothing was published",
                ) from None
            return start, end
        if before is None:
            return None, None
        return read_from(before, kind, lookback), None

    def _without_seen(
        self, step: SourceStep, kept: DataFrame, there: Column, mark: Column, before: Watermark
    ) -> DataFrame:
        """The rows beyond the watermark, and of those up to it the ones that no run has taken. Rows that are equal
        count: of three where two were taken, one is left."""
        from pyspark.sql import Window
        from pyspark.sql import functions as F

        from lockgate.running.cursors import described, row_hash

        now = dict(described(kept))
        for name, kind in before.columns:
            if now.get(name) != kind:
                what = "is gone" if name not in now else "has another type"
                told = (
                    f"the column {name} {what} since the last run, so that rows seen then cannot be told from new ones"
                )
                raise problem(step.name, told, _FULL_REFRESH)
        if not before.seen:
            return kept
        columns = kept.columns
        again = kept.where(there <= mark).withColumn(_HASH, row_hash([name for name, _ in before.columns]))
        seen = kept.sparkSession.createDataFrame(
            [(hashed, int(count)) for hashed, count in before.seen.items()], f"{_HASH} string, {_COUNT} bigint"
        )
        each = Window.partitionBy(_HASH).orderBy(_HASH)
        numbered = again.withColumn(_NUMBER, F.row_number().over(each)).join(F.broadcast(seen), _HASH, "left")
        fresh = numbered.where(F.col(_NUMBER) > F.coalesce(F.col(_COUNT), F.lit(0)))
        return kept.where(there > mark).unionByName(fresh.select([F.col(quoted(c)) for c in columns]))

    def _watermark(
        self,
        step: SourceStep,
        kept: DataFrame,
        cursor: StructField,
        kind: str,
        before: Watermark | None,
        lookback: Lookback,
    ) -> Watermark | None:
        from pyspark.sql import functions as F

        from lockgate.running.cursors import described, highest, literal, row_hash, value_of

        name = cursor.name
        there = F.col(quoted(name))
        nulls = F.count(F.when(there.isNull(), F.lit(1)))
        row = kept.agg(highest(name, kind).alias("most"), nulls.alias("nulls")).collect()[0]
        if row["nulls"]:
            rows = f"{row['nulls']:,} row{'' if row['nulls'] == 1 else 's'}"
            hint = "fill the column, or leave such rows out by a query, a view or another cursor"
            raise problem(step.name, f"the cursor {name} is NULL in {rows}, which no watermark can place", hint)
        if row["most"] is None:  # nothing there
            return None
        value, since = moved(before, value_of(row["most"], kind), kind, lookback)
        window = kept.where(there >= literal(since, cursor.dataType))
        counted = window.select(row_hash(kept.columns).alias(_HASH)).groupBy(_HASH).count()
        found = counted.limit(MOST_REMEMBERED + 1).collect()
        if len(found) > MOST_REMEMBERED:
            raise problem(
                step.name,
                f"more than {MOST_REMEMBERED:,} different rows are at the watermark or within the lookback, which is "
                "too many to remember",
                "make the lookback shorter, or take a cursor with finer values",
            )
        after = Watermark(
            cursor=name,
            type=kind,
            value=text_of(value),
            since=text_of(since),
            columns=described(kept),
            seen={each[_HASH]: each["count"] for each in sorted(found)},
        )
        return None if after == before else after


def _cursor(step: SourceStep, schema: StructType) -> tuple[StructField, str, Lookback]:
    """The column of the cursor, its kind and the lookback; raises where they do not go together."""
    from lockgate.running.cursors import kind_of

    name = step.params["cursor"]
    field = next((f for f in schema.fields if f.name == name), None)
    if field is None:
        raise _no_column(step, name, schema.fieldNames())
    kind = kind_of(field.dataType)
    if kind is None:
        shown = field.dataType.simpleString()
        hint = "a cursor is a whole number, a decimal, a date, a timestamp or a text"
        raise problem(step.name, f"the column {name} of type {shown} cannot be a cursor", hint)
    lookback = parse_lookback(step.params["lookback"]) if "lookback" in step.params else None
    if not fits(kind, lookback):
        hint = "a lookback is a number behind a number, and a length of time behind a date or a timestamp"
        raise problem(
            step.name, f"the lookback {step.params['lookback']} does not fit the cursor {name} ({kind})", hint
        )
    return field, kind, lookback


def check_reading(reading: Reading, plan: Plan) -> None:
    """Refuse options that no source of the pipeline could follow."""
    if reading.full_refresh and reading.is_backfill:
        raise ConfigError("--full-refresh and --from or --to exclude each other", in_place="nothing was run")
    if not (reading.full_refresh or reading.is_backfill):
        return
    sources = [step.statement for step in plan.steps if isinstance(step.statement, SourceStep)]
    windows = [step for step in plan.steps if getattr(step.statement, "mode", "") == "INCREMENTAL"]
    if not windows and not any("cursor" in source.params for source in sources):
        option = "--full-refresh" if reading.full_refresh else "a range (--from, --to)"
        raise ConfigError(
            f"{option} is for incremental sources and tables, and this pipeline has none",
            in_place="nothing was run",
        )


def _asked(column: ReadColumn, low: CursorValue | None, high: CursorValue | None) -> tuple[Condition, ...]:
    """The same stretch, asked of the database. A text is not: its order there is the collation's."""
    if column.compares is None:
        return ()
    found = []
    if low is not None:
        found.append(Condition.of(f"{column.quoted} >= ", _value(column, low), f" OR {column.quoted} IS NULL"))
    if high is not None:
        found.append(Condition.of(f"{column.quoted} < ", _value(column, high)))
    return tuple(found)


def _value(column: ReadColumn, value: CursorValue) -> Value:
    kind = str(column.compares)
    limit = _WHOLE.get(kind)
    if limit is not None and isinstance(value, Decimal):
        value = max(Decimal(-limit), min(ceiling(value, 0), Decimal(limit - 1)))
    return Value(text_of(value), kind)


def _no_column(step: SourceStep, name: str, columns: list[str]) -> LockgateError:
    near = nearest(name, columns)
    hint = f"did you mean {near}?" if near else None
    return problem(step.name, f"it has no column {name} to be its cursor; its columns are {', '.join(columns)}", hint)
