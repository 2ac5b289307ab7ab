"""How far an incremental source has been read, and what the next run must not read again.

The rows at the watermark, or within the lookback behind it, are remembered by a hash and by how many there are of each.
The next run reads that stretch again and takes what is not remembered: so a row with the value of the watermark is
neither lost nor repeated, and a late one is found.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import ROUND_CEILING, Context, Decimal, InvalidOperation
from typing import Any

CursorValue = Decimal | date | datetime | str

_EXACT = Context(prec=200)  # enough for every decimal of 38 digits, whatever is subtracted from it


@dataclass(frozen=True)
class Watermark:
    """Plain texts and numbers, so that it can be kept as JSON, by whomever publishes."""

    cursor: str
    type: str  # of the cursor: number, date, timestamp, timestamp_ntz, string, file
    value: str = ""  # the highest that was read
    since: str = ""  # from here on every row that was read is in `seen`
    columns: tuple[tuple[str, str], ...] = ()  # what the hashes are made of: names, and types as Spark's JSON
    seen: Mapping[str, int | str] = field(default_factory=dict)  # hash: how many; of files, name: what it looked like

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> Watermark:
        """The same again.

        >>> mark = Watermark("id", "number", "7", "7", (("id", '"long"'),), {"ab": 2})
        >>> Watermark.from_json(mark.to_json()) == mark
        True
        """
        return cls(**{**told, "columns": tuple((name, kind) for name, kind in told["columns"])})


@dataclass(frozen=True)
class StoredWatermark:
    """A watermark as it is now. The version tells whether another run has moved it meanwhile; 0: there is none."""

    version: int = 0
    watermark: Watermark | None = None


@dataclass(frozen=True)
class PendingWatermark:
    """A watermark that a run brings: it becomes the current one in the step that publishes, and not before."""

    base: int  # the version that the run began with
    watermark: Watermark

    def to_json(self) -> dict[str, Any]:
        return {"base": self.base, "watermark": self.watermark.to_json()}

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> PendingWatermark:
        return cls(int(told["base"]), Watermark.from_json(told["watermark"]))


def parse_value(text: str, kind: str) -> CursorValue:
    """A value of a cursor from its text; raises ValueError.

    >>> parse_value("2026-01-31", "timestamp").isoformat(), parse_value("7", "number")
    ('2026-01-31T00:00:00+00:00', Decimal('7'))
    """
    match kind:
        case "number":
            try:
                number = Decimal(text)
            except InvalidOperation:
                raise ValueError(f"{text!r} is not a number") from None
            if not number.is_finite():
                raise ValueError(f"{text!r} is not a number")
            return number
        case "date":
            return date.fromisoformat(text)
        case "timestamp":
            moment = datetime.fromisoformat(text)
            return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
        case "timestamp_ntz":
            moment = datetime.fromisoformat(text)
            if moment.tzinfo:
                raise ValueError(f"{text!r} has a time zone, and the cursor has none")
            return moment
    return text


def text_of(value: CursorValue) -> str:
    """The text that `parse_value` reads."""
    if isinstance(value, Decimal):
        return format(value, "f")
    return value.isoformat() if isinstance(value, date) else str(value)


def looked_back(value: CursorValue, lookback: timedelta | Decimal | None) -> CursorValue:
    """Where the stretch begins that is read again; raises TypeError where the two do not go together.

    >>> looked_back(date(2026, 1, 31), timedelta(days=2)), looked_back(Decimal(7), Decimal(10))
    (datetime.date(2026, 1, 29), Decimal('-3'))
    """
    if lookback is None:
        return value
    if isinstance(value, Decimal) and isinstance(lookback, Decimal):
        return _EXACT.subtract(value, lookback)
    if not isinstance(value, date) or not isinstance(lookback, timedelta):
        raise TypeError("a lookback is a number behind a number, and a length of time behind a date or a timestamp")
    whole_days = lookback if isinstance(value, datetime) else timedelta(days=-(-lookback // timedelta(days=1)))
    try:
        return value - whole_days
    except OverflowError:
        return date.min if not isinstance(value, datetime) else datetime.min.replace(tzinfo=value.tzinfo)


def ceiling(value: Decimal, scale: int) -> Decimal:
    """The least number of so many decimal places that is not below `value`: what lies at or above one lies at or above
    the other.

    >>> ceiling(Decimal("6.5"), 0), ceiling(Decimal(7), 2)
    (Decimal('7'), Decimal('7.00'))
    """
    return value.quantize(Decimal(1).scaleb(-scale), ROUND_CEILING, _EXACT)


def fits(kind: str, lookback: timedelta | Decimal | None) -> bool:
    """Whether one can look back so from a cursor of this kind.

    >>> fits("number", Decimal(5)), fits("date", Decimal(5)), fits("string", None)
    (True, False, True)
    """
    if lookback is None:
        return True
    return kind == "number" if isinstance(lookback, Decimal) else kind in ("date", "timestamp", "timestamp_ntz")


def moved(
    before: Watermark | None, highest: CursorValue, kind: str, lookback: timedelta | Decimal | None
) -> tuple[CursorValue, CursorValue]:
    """The new watermark's value, and from where on its rows are to be remembered. It never goes back, and it never
    claims to remember what was forgotten."""
    value = highest
    if before is not None:
        value = max(value, parse_value(before.value, kind))
    since = looked_back(value, lookback)
    if before is not None:
        since = max(since, parse_value(before.since, kind))
    return value, since


def read_from(before: Watermark, kind: str, lookback: timedelta | Decimal | None) -> CursorValue:
    """Where the next read begins. What lies further back than is remembered would be repeated, so it is not read."""
    since = looked_back(parse_value(before.value, kind), lookback)
    return max(since, parse_value(before.since, kind))
