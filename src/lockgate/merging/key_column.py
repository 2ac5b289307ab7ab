"""The source's values of one key column in order, to be compared with what a row group says it holds."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from lockgate.merging.bounds import Line, in_order, on_line, places, ranked, type_line
from lockgate.merging.key_index import comparable


class Span(NamedTuple):
    """A run of the sorted values: from `begin` up to, not with, `end`."""

    begin: int
    end: int


class KeyColumn:
    """One key column of the source. `everything` is the span of a row group about which nothing is known.

    `with_ranks` says where the value of every row is, which a key of several columns needs and which takes its time.
    """

    def __init__(self, name: str, column: pa.Array | pa.ChunkedArray, *, with_ranks: bool) -> None:
        self.name = name
        self._type = column.type
        values = comparable(column)
        self.line: Line | None = type_line(values.type)
        if self.line and self.line.kind == "float" and pc.any(pc.is_nan(values)).as_py():
            self.line = None  # bounds say nothing about NaN
        self.places: Sequence[Any] = ()
        self.ranks = pa.nulls(0, pa.int32())  # of every source row: where its value is in `places`
        if self.line:
            values = on_line(values)
            if with_ranks:
                distinct, self.ranks = ranked(values)
                self.places = places(distinct)
            else:
                self.places = places(in_order(values))
        self.everything = Span(0, len(self.places))
        self._is_bytes = self.line is not None and self.line.kind == "bytes"
        self._exact_spans: dict[Any, Span | None] = {}

    def between(self, low: Any, high: Any) -> Span | None:
        """The values from `low` to `high`, both included; None if there are none. Odd bounds exclude nothing."""
        if not low <= high:  # NaN, or upside down
            return self.everything
        values = self.places
        begin = bisect_left(values, low)
        if begin == len(values):
            return None
        if not self._is_bytes:
            return Span(begin, bisect_right(values, high, begin)) if values[begin] <= high else None
        # Nobody tells whether the upper bound was cut: every value that begins with it is let in.
        size = len(high)
        if values[begin][:size] > high:
            return None
        return Span(begin, bisect_right(values, high, begin, key=lambda value: value[:size]))

    @property
    def type(self) -> pa.DataType:
        return self._type.value_type if pa.types.is_dictionary(self._type) else self._type

    def places_of(self, values: Sequence[Any]) -> Sequence[Any]:
        """Where values of the column's type are on its line."""
        return places(on_line(comparable(pa.array(values, self.type))))

    def equal_to(self, value: Any) -> Span | None:
        """The span of one exact value, as a partition has it; None if the source does not have it."""
        if value is None:
            return None
        if self.line is None:
            return self.everything
        try:
            return self._exact_spans[value]
        except KeyError:
            span = self._exact_spans[value] = self._find(value)
            return span

    def _find(self, value: Any) -> Span | None:
        try:
            place = self.places_of([value])[0]
        except (pa.ArrowException, ValueError, TypeError, OverflowError):
            return self.everything  # not of our type, so nothing is proven
        span = Span(bisect_left(self.places, place), bisect_right(self.places, place))
        return span if span.begin < span.end else None
