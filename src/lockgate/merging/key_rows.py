"""The source's keys of several columns: whether one row of them fits a row group in all columns at once."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from lockgate.merging.key_column import KeyColumn, Span

_BLOCK = 65_536  # looked at in one go, so that a fit near the beginning ends the search early
_FEW = 16  # below this a loop beats a call into Arrow


class KeyRows:
    """Source rows as ranks, sorted by the column with the most different values."""

    def __init__(self, columns: Sequence[KeyColumn]) -> None:
        self._columns = columns
        known = [k for k, column in enumerate(columns) if column.line]
        self._lead = max(known, key=lambda k: len(columns[k].places), default=None)
        if self._lead is None:
            return
        order = pc.array_sort_indices(columns[self._lead].ranks)
        self._ranks = {k: columns[k].ranks.take(order) for k in known}
        self._views = {k: memoryview(ranks.buffers()[1] or b"").cast("B").cast("i") for k, ranks in self._ranks.items()}

    def fit(self, spans: Sequence[Span]) -> bool:
        """Whether any row lies in all of `spans`, one a column."""
        return self._lead is None or next(self._blocks(spans), None) is not None

    def fitting(self, spans: Sequence[Span], limit: int) -> list[tuple[int, ...]] | None:
        """The ranks of the rows in all of `spans`, column by column; None if there are more than `limit`."""
        if self._lead is None:
            return None
        rows: list[int] = []
        for found in self._blocks(spans):
            rows += found
            if len(rows) > limit:
                return None
        views = [self._views.get(k) for k in range(len(self._columns))]
        return [tuple(-1 if view is None else view[row] for view in views) for row in rows]

    def _blocks(self, spans: Sequence[Span]) -> Iterator[Sequence[int]]:
        """Rows that fit, a block at a time; blocks without one are left out."""
        assert self._lead is not None
        lead = self._views[self._lead]
        begin, end = bisect_left(lead, spans[self._lead].begin), bisect_left(lead, spans[self._lead].end)
        others = [k for k in self._ranks if k != self._lead and spans[k] != self._columns[k].everything]
        for start in range(begin, end, _BLOCK):
            found = self._fitting_of(range(start, min(end, start + _BLOCK)), others, spans)
            if found:
                yield found

    def _fitting_of(self, rows: range, others: Sequence[int], spans: Sequence[Span]) -> Sequence[int]:
        if not others:
            return rows
        if len(rows) <= _FEW:
            return [row for row in rows if all(_in(self._views[k][row], spans[k]) for k in others)]
        inside: pa.Array | None = None
        for k in others:
            ranks = self._ranks[k].slice(rows.start, len(rows))
            fits = pc.and_(pc.greater_equal(ranks, spans[k].begin), pc.less(ranks, spans[k].end))
            inside = fits if inside is None else pc.and_(inside, fits)
        return [rows.start + at for at in pc.indices_nonzero(inside).to_pylist()]


def _in(rank: int, span: Span) -> bool:
    return span.begin <= rank < span.end
