"""How far behind its watermark an incremental source is read again, for rows that come late."""

from __future__ import annotations

import re
from datetime import timedelta
from decimal import Decimal

FILE_CURSOR = "_file"  # the cursor of a source whose files are read once each

_LENGTH = re.compile(r"\s*(\d+)\s+(second|minute|hour|day|week)s?\s*", re.IGNORECASE)


def parse_lookback(given: str | int | float) -> timedelta | Decimal | None:
    """A length of time, or a number; None if it is neither.

    >>> parse_lookback("2 days"), parse_lookback(100), parse_lookback("two"), parse_lookback(-1)
    (datetime.timedelta(days=2), Decimal('100'), None, None)
    """
    if isinstance(given, str):
        found = _LENGTH.fullmatch(given)
        if found is None or len(found[1]) > 9:
            return None
        try:
            return timedelta(**{f"{found[2].lower()}s": int(found[1])})
        except OverflowError:
            return None
    number = Decimal(str(given))
    return number if number.is_finite() and number >= 0 else None
