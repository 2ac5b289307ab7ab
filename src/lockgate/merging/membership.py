"""Pruning on metadata that was read before: by partition, then by column bounds. Conservative, as all pruning is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from lockgate.merging.bounds import on_line, places, rescaled, type_line
from lockgate.merging.footers import ParquetFileMetadata
from lockgate.merging.given_keys import keys_table
from lockgate.merging.key_column import KeyColumn, Span
from lockgate.merging.key_index import comparable
from lockgate.merging.key_rows import KeyRows
from lockgate.merging.partition_match import SourcePartitions


class PartitionPruner:
    """Finds the files of the partitions that a source has rows for."""

    def identify_candidate_files(
        self,
        file_metadata: list[ParquetFileMetadata],
        key_columns: Sequence[str],
        source_keys: Sequence[Any] | pa.Table,
        partition_schema: pa.Schema | None = None,
    ) -> list[str]:
        """The paths of files whose partition the source may have rows for. Unknown partition values are kept.

        Partition columns are looked for among the key columns, and among all columns of a table of `source_keys`.

        >>> days = [ParquetFileMetadata(f"day={d}/a.parquet", 1, 1, {}, {"day": str(d)}) for d in (1, 2)]
        >>> PartitionPruner().identify_candidate_files(days, ["id"], pa.table({"id": [7], "day": [2]}))
        ['day=2/a.parquet']
        """
        partitions = SourcePartitions(keys_table(source_keys, key_columns), partition_schema)
        return [file.path for file in file_metadata if partitions.may_hold(file.partition_values)]


class ConservativeMembershipChecker:
    """Tells from a file's column bounds whether it may hold a key of the source."""

    def __init__(self) -> None:
        self._prepared: tuple[Any, tuple[str, ...], _SourceKeys] | None = None

    def file_might_contain_keys(
        self, file_metadata: ParquetFileMetadata, key_columns: Sequence[str], source_keys: Sequence[Any] | pa.Table
    ) -> bool:
        """False only where the bounds prove that no source key is in the file.

        >>> file = ParquetFileMetadata("a.parquet", 1, 10, {"id": {"min": 10, "max": 20, "null_count": 0}})
        >>> checker = ConservativeMembershipChecker()
        >>> checker.file_might_contain_keys(file, ["id"], [5, 25]), checker.file_might_contain_keys(file, ["id"], [15])
        (False, True)
        """
        keys = self._keys(source_keys, tuple(key_columns))
        return keys.may_be_in(file_metadata)

    def _keys(self, source_keys: Any, key_columns: tuple[str, ...]) -> _SourceKeys:
        if self._prepared and self._prepared[0] is source_keys and self._prepared[1] == key_columns:
            return self._prepared[2]
        keys = _SourceKeys(keys_table(source_keys, key_columns).select(list(key_columns)))
        if isinstance(source_keys, (pa.Table, pa.Array, pa.ChunkedArray)):  # a list may change until the next call
            self._prepared = (source_keys, key_columns, keys)
        return keys


class _SourceKeys:
    def __init__(self, keys: pa.Table) -> None:
        keys = keys.drop_null()
        self._rows = keys.num_rows
        self._columns = [KeyColumn(name, keys.column(i), with_ranks=True) for i, name in enumerate(keys.column_names)]
        self._key_rows = KeyRows(self._columns)

    def may_be_in(self, file: ParquetFileMetadata) -> bool:
        if not self._rows or not file.total_rows:
            return False
        spans = []
        for column in self._columns:
            span = _span(column, file.column_stats.get(column.name), file.total_rows)
            if span is None:
                return False
            spans.append(span)
        return self._key_rows.fit(spans)


def _span(column: KeyColumn, stats: dict[str, Any] | None, rows: int) -> Span | None:
    """The source's values within a column's bounds; None if there are none."""
    if not stats:
        return column.everything
    low, high = stats.get("min"), stats.get("max")
    if low is None and high is None and stats.get("null_count") == rows:
        return None  # all NULL
    if low is None or high is None or column.line is None:
        return column.everything
    try:
        bounds = comparable(pa.array([low, high]))
        line = type_line(bounds.type)
        if line is None or line.kind != column.line.kind:
            return column.everything
        first, last = places(on_line(bounds))
        return column.between(*rescaled(first, last, column.line.exponent - line.exponent))
    except (pa.ArrowException, ValueError, TypeError, OverflowError):
        return column.everything
