"""`order_by` as SQL spells it: which of several rows of one key comes first."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from lockgate.errors import SchemaMismatchError
from lockgate.identifiers import double_quoted


class SortKey(NamedTuple):
    column: str
    descending: bool
    nulls_first: bool

    @property
    def sql(self) -> str:
        """The text that `parse_order_by` reads.

        >>> SortKey("odd name", descending=True, nulls_first=False).sql
        '"odd name" DESC NULLS LAST'
        """
        direction, nulls = "DESC" if self.descending else "ASC", "FIRST" if self.nulls_first else "LAST"
        return f"{double_quoted(self.column)} {direction} NULLS {nulls}"


_ITEM = re.compile(
    r"""\s*
    (?: "(?P<double>(?:[^"]|"")+)" | `(?P<backtick>(?:[^`]|``)+)` | (?P<bare>\w+) )
    (?: \s* (?P<direction> \b(?:asc|desc)\b ) )?
    (?: \s* \b nulls \s+ (?P<nulls> first | last ) \b )?
    \s* (?P<end> , | $ )""",
    re.VERBOSE | re.IGNORECASE,
)


def parse_order_by(order_by: str | Sequence[str]) -> list[SortKey]:
    """Columns, directions and the place of NULL, with Spark's defaults: ASC NULLS FIRST, DESC NULLS LAST.

    >>> parse_order_by(["updated_at DESC", "id"])[0]
    SortKey(column='updated_at', descending=True, nulls_first=False)
    >>> [tuple(key) for key in parse_order_by('"odd name" desc nulls first, id')]
    [('odd name', True, True), ('id', False, True)]
    """
    if not isinstance(order_by, Sequence):
        raise _refused(order_by)
    keys: list[SortKey] = []
    for text in [order_by] if isinstance(order_by, str) else order_by:
        if not isinstance(text, str):
            raise _refused(text)
        keys.extend(_parsed(text))
    names = [key.column for key in keys]
    for name in names:
        if names.count(name) > 1:
            raise SchemaMismatchError(
                f'order_by names column "{name}" twice',
                hint="the second mention has no effect: leave it out",
                in_place="nothing was written",
            )
    return keys


def _parsed(text: str) -> list[SortKey]:
    keys = []
    place, more = 0, True
    while more:
        item = _ITEM.match(text, place)
        if item is None or (item["bare"] or "").isdecimal():  # a number would be a position in SQL
            raise _refused(text)
        descending = (item["direction"] or "asc").lower() == "desc"
        nulls_first = item["nulls"].lower() == "first" if item["nulls"] else not descending
        keys.append(SortKey(_name(item), descending, nulls_first))
        place, more = item.end(), item["end"] == ","
    return keys


def _name(item: re.Match[str]) -> str:
    if item["double"]:
        return item["double"].replace('""', '"')
    if item["backtick"]:
        return item["backtick"].replace("``", "`")
    return item["bare"]


def _refused(text: object) -> SchemaMismatchError:
    return SchemaMismatchError(
        f"order_by cannot be understood: {text!r}",
        hint='write a column name, then ASC or DESC, then NULLS FIRST or NULLS LAST, e.g. "updated_at DESC"; '
        "a name with spaces or signs stands in quotes: '\"odd name\" DESC'",
        in_place="nothing was written",
    )
