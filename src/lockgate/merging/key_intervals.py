"""The smallest and the largest key of a source that is too large to compare each of its keys with the footers."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from lockgate.merging.key_column import KeyColumn, Span
from lockgate.merging.pruning import KeyRanges


class KeyIntervals(KeyRanges):
    """`bounds` has two rows: the least and the greatest value of every key column, in the dataset's types.

    >>> import io
    >>> import pyarrow.parquet as pq
    >>> file = io.BytesIO()
    >>> pq.write_table(pa.table({"id": range(40)}), file, row_group_size=10)
    >>> KeyIntervals(pa.table({"id": [12, 25]})).candidate_row_groups(pq.read_metadata(file), "a.parquet", {})
    (1, 2)
    """

    def __init__(self, bounds: pa.Table) -> None:
        super().__init__(bounds)
        self._columns = [_Interval(n, bounds.column(i), with_ranks=False) for i, n in enumerate(bounds.column_names)]
        self._everything = [column.everything for column in self._columns]
        self._key_rows = None

    def _passes_blooms(self, *_: Any) -> bool:
        return True  # the keys themselves are not here


class _Interval(KeyColumn):
    def between(self, low: Any, high: Any) -> Span | None:
        if not low <= high:  # NaN, or upside down
            return self.everything
        least, greatest = self.places[0], self.places[-1]
        if self._is_bytes:  # bounds may be cut short
            return self.everything if least[: len(high)] <= high and greatest >= low else None
        return self.everything if least <= high and greatest >= low else None

    def equal_to(self, value: Any) -> Span | None:
        return None if value is None else self.everything
