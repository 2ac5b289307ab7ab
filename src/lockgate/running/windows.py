"""The window of a MODE INCREMENTAL table: which part of it this run computes again."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime, time, timedelta
from typing import TYPE_CHECKING, Any

from lockgate.destinations.protocol import Window
from lockgate.errors import RunError
from lockgate.language.statements import CreateTableStep, Lookback

if TYPE_CHECKING:
    from pyspark.sql import Column

START, END = "start_date", "end_date"
NO_WINDOW: Mapping[str, Any] = {}
# By the type of the BY column, as Spark calls it: where a table begins that is not there yet.
FIRST: Mapping[str, date] = {
    "date": date(1, 1, 1),
    "timestamp": datetime(1, 1, 2, tzinfo=UTC),  # a day later, for zones that are behind
    "timestamp_ntz": datetime(1, 1, 1),
}
_SPANS = {"MINUTE": "minutes", "HOUR": "hours", "DAY": "days", "WEEK": "weeks"}


def parameters(window: Window) -> dict[str, Column]:
    """What the window binds in the query of its table."""
    return {START: literal(window.start), END: literal(window.end)}


def literal(value: date) -> Column:
    """As Spark's own literal: on their way through Java, dates of early years are refused or change their calendar."""
    from pyspark.sql import functions as F

    if not isinstance(value, datetime):
        return F.expr(f"DATE'{value.isoformat()}'")
    return F.expr(f"{'TIMESTAMP' if value.tzinfo else 'TIMESTAMP_NTZ'}'{value.isoformat()}'")


def window_of(
    statement: CreateTableStep, column: str, kind: str, latest: date | None, now: datetime, given: Mapping[str, Any]
) -> Window:
    """The window that follows from the latest value in the table and from LOOKBACK, where the run is not given one.

    >>> from lockgate.language.statements import Sql
    >>> step = CreateTableStep(table_name="t", query=Sql(""), mode="INCREMENTAL", incremental_by="day",
    ...                        lookback=Lookback(amount=2, unit="DAY"))
    >>> str(window_of(step, "day", "date", date(2026, 1, 10), datetime(2026, 1, 12, tzinfo=UTC), {}))
    'day from 2026-01-08 to 2026-01-12'
    """
    start = _given(given, START, kind)
    if start is None:
        start = FIRST[kind] if latest is None else _back(latest, statement.lookback, kind)
    end = _given(given, END, kind)
    if end is None:
        today = _as(kind, now)
        end = today if latest is None else max(today, latest)
    if start > end:
        raise RunError(
            f"the window of table {statement.table_name} ends at {end}, before it starts at {start}",
            in_place="nothing was published; the table is as it was",
            hint=f"give :{START} and :{END} in this order, or leave them to the run",
        )
    return Window(column, start, end)


def _back(latest: date, lookback: Lookback | None, kind: str) -> date:
    if lookback is None:
        return latest
    try:
        if lookback.unit == "MONTH":
            return _months_before(latest, lookback.amount)
        span = timedelta(**{_SPANS[lookback.unit]: lookback.amount})
        if kind == "date":  # hours before a day are in the day before it
            span = timedelta(days=-(-span // timedelta(days=1)))
        return latest - span
    except (OverflowError, ValueError):  # further back than dates go
        return FIRST[kind]


def _months_before(latest: date, months: int) -> date:
    year, month = divmod(latest.year * 12 + latest.month - 1 - months, 12)
    for day in range(latest.day, 28, -1):  # the 31st has no place in every month
        try:
            return latest.replace(year=year, month=month + 1, day=day)
        except ValueError:
            continue
    return latest.replace(year=year, month=month + 1, day=min(latest.day, 28))


def _given(given: Mapping[str, Any], name: str, kind: str) -> date | None:
    value = given.get(name)
    return None if value is None else given_bound(value, kind, whole_day=name == END)


def given_bound(value: Any, kind: str, *, whole_day: bool = False) -> Any:
    """A bound that comes from outside: a date or a timestamp, or a text that is one. `whole_day`: a day without a time
    means the end of it."""
    try:
        found = value if isinstance(value, date) else datetime.fromisoformat(str(value))
    except ValueError:
        raise RunError(
            f"{value!r} is no date", in_place="nothing was published", hint="write dates as 2026-01-31"
        ) from None
    names_a_day = not isinstance(value, datetime) and len(str(value)) <= len("2026-01-31")
    if whole_day and names_a_day and kind != "date":
        found = datetime.combine(found, time.max)
    return _as(kind, found)


def _as(kind: str, value: date) -> date:
    if kind == "date":
        return value.date() if isinstance(value, datetime) else value
    moment = value if isinstance(value, datetime) else datetime.combine(value, time.min)
    if kind == "timestamp":
        return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return moment.astimezone(UTC).replace(tzinfo=None) if moment.tzinfo else moment
