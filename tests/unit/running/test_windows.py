"""Which part of an INCREMENTAL table a run computes again."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import pytest

from lockgate.errors import RunError
from lockgate.language.statements import CreateTableStep, Lookback, Sql
from lockgate.running.windows import FIRST, window_of

NOW = datetime(2026, 3, 31, 6, 30, tzinfo=UTC)


def table(amount: int = 0, unit: str = "DAY") -> CreateTableStep:
    lookback = Lookback(amount=amount, unit=unit) if amount else None
    return CreateTableStep(
        table_name="facts", query=Sql(""), mode="INCREMENTAL", incremental_by="day", lookback=lookback
    )


def window(
    latest: date | None = None, *, kind: str = "date", lookback: tuple[int, str] | None = None, **given: Any
) -> tuple[date, date]:
    found = window_of(table(*lookback) if lookback else table(), "day", kind, latest, NOW, given)
    return found.start, found.end


def test_the_first_run_takes_all_there_is() -> None:
    assert window() == (FIRST["date"], date(2026, 3, 31))


def test_a_later_run_begins_with_the_latest_day_which_may_have_been_incomplete() -> None:
    assert window(date(2026, 3, 30)) == (date(2026, 3, 30), date(2026, 3, 31))


@pytest.mark.parametrize(
    ("lookback", "start"),
    [
        ((2, "DAY"), date(2026, 3, 29)),
        ((1, "WEEK"), date(2026, 3, 24)),
        ((1, "MONTH"), date(2026, 2, 28)),
        ((25, "MONTH"), date(2024, 2, 29)),
        ((1, "HOUR"), date(2026, 3, 30)),
        ((25, "HOUR"), date(2026, 3, 29)),
        ((1, "MINUTE"), date(2026, 3, 30)),
        ((999999, "MONTH"), FIRST["date"]),
        ((999999, "WEEK"), FIRST["date"]),
    ],
)
def test_lookback(lookback: tuple[int, str], start: date) -> None:
    assert window(date(2026, 3, 31), lookback=lookback)[0] == start


def test_rows_of_the_future_are_in_the_window() -> None:
    assert window(date(2027, 1, 1))[1] == date(2027, 1, 1)


def test_a_range_is_given() -> None:
    assert window(date(2026, 3, 30), start_date="2026-01-01", end_date=date(2026, 1, 31)) == (
        date(2026, 1, 1),
        date(2026, 1, 31),
    )


def test_timestamps_have_the_zone_of_their_column() -> None:
    latest = datetime(2026, 3, 31, 5, tzinfo=UTC)
    assert window(latest, kind="timestamp", lookback=(1, "HOUR")) == (latest.replace(hour=4), NOW)
    naive = latest.replace(tzinfo=None)
    assert window(naive, kind="timestamp_ntz") == (naive, NOW.replace(tzinfo=None))


def test_a_day_given_as_the_end_counts_as_a_whole() -> None:
    start, end = window(kind="timestamp_ntz", start_date="2026-01-01", end_date="2026-01-31")
    assert (start, end) == (datetime(2026, 1, 1), datetime(2026, 1, 31, 23, 59, 59, 999999))
    assert window(kind="timestamp_ntz", end_date="2026-01-31T06:00:00")[1] == datetime(2026, 1, 31, 6)


def test_what_is_no_date_is_refused() -> None:
    with pytest.raises(RunError, match="'soon' is no date"):
        window(start_date="soon")


def test_a_window_that_ends_before_it_starts_is_refused() -> None:
    with pytest.raises(RunError, match="ends at 2026-01-01, before it starts at 2026-02-01"):
        window(start_date="2026-02-01", end_date="2026-01-01")
