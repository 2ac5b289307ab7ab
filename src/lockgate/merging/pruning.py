"""Which row groups may hold a source key, from what a file's footer says. What is not proven absent may be there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from lockgate.merging.bloom import BloomFilter, BloomReader, plain_bytes
from lockgate.merging.bounds import FileColumn, file_column, rescaled
from lockgate.merging.filesystems import arrow_filesystem
from lockgate.merging.footers import leaf_index
from lockgate.merging.key_column import KeyColumn, Span
from lockgate.merging.key_rows import KeyRows
from lockgate.merging.membership import ConservativeMembershipChecker, PartitionPruner
from lockgate.targets.described import DescribedFile

__all__ = ["ConservativeMembershipChecker", "KeyRanges", "PartitionPruner"]

_MOST_KEYS_FOR_BLOOM = 1_000  # with more, reading the keys themselves is cheaper than asking about each
_LAYOUTS_KEPT = 8


class KeyRanges:
    """The keys of a source, ready to be compared with footers. `keys` has the dataset's types.

    >>> import io
    >>> file = io.BytesIO()
    >>> pq.write_table(pa.table({"id": range(40)}), file, row_group_size=10)
    >>> KeyRanges(pa.table({"id": [7, 35]})).candidate_row_groups(pq.read_metadata(file), "a.parquet", {})
    (0, 3)
    """

    def __init__(self, keys: pa.Table, *, filesystem: Any = None) -> None:
        keys = keys.drop_null()  # NULL matches nothing
        self._rows = keys.num_rows
        several = keys.num_columns > 1
        self._columns = [
            KeyColumn(name, keys.column(i), with_ranks=several) for i, name in enumerate(keys.column_names)
        ]
        self._everything = [column.everything for column in self._columns]
        self._key_rows = KeyRows(self._columns) if several else None
        self._filesystem = arrow_filesystem(filesystem)
        self._layouts: list[_Layout] = []

    def candidate_row_groups(self, footer: pq.FileMetaData, path: str, partition: Mapping[str, Any]) -> tuple[int, ...]:
        """The row groups that may hold a source key. `partition` has the typed values of the file's folders."""
        if not self._rows:
            return ()
        spans = self._partition_spans(partition)
        if spans is None:
            return ()
        try:
            layout = self._layout(footer, partition)
        except Exception:  # a schema that cannot be read proves nothing
            return tuple(range(footer.num_row_groups))
        with BloomReader(path, self._filesystem) as blooms:
            return tuple(
                number
                for number in range(footer.num_row_groups)
                if self._may_hold(footer.row_group(number), layout, spans, blooms)
            )

    def may_hold(self, file: DescribedFile) -> bool:
        """Whether the file may hold a source key, by its partition and the bounds that a log has of it."""
        spans = self._partition_spans(file.partition) if self._rows else None
        if spans is None:
            return False
        try:
            within = self._spans_of_bounds(file, spans)
        except Exception:  # odd statistics prove nothing, and must not end a merge
            return True
        return within is not None and self._fit(within)

    def _spans_of_bounds(self, file: DescribedFile, spans: list[Span]) -> list[Span] | None:
        told = file.bounds({c.name: c.type for c in self._columns if c.line and c.name not in file.partition})
        spans = list(spans)
        for k, column in enumerate(self._columns):
            if column.name in told:
                low, high = column.places_of(told[column.name])
                span = column.between(low, high)
                if span is None:
                    return None
                spans[k] = span
        return spans

    def _partition_spans(self, partition: Mapping[str, Any]) -> list[Span] | None:
        """What the file's folder leaves of each key column; None if it has none of the source's values."""
        if not partition:
            return self._everything
        spans = list(self._everything)
        for k, column in enumerate(self._columns):
            if column.name in partition:
                span = column.equal_to(partition[column.name])
                if span is None:
                    return None
                spans[k] = span
        return spans if self._fit(spans) else None

    def _may_hold(
        self, group: pq.RowGroupMetaData, layout: _Layout, partition_spans: list[Span], blooms: BloomReader
    ) -> bool:
        try:
            spans = self._spans(group, layout, partition_spans)
            if spans is None or not self._fit(spans):
                return False
            return self._passes_blooms(group, layout, spans, blooms)
        except Exception:  # odd or encrypted statistics prove nothing, and must not end a merge
            return True

    def _spans(self, group: pq.RowGroupMetaData, layout: _Layout, partition_spans: list[Span]) -> list[Span] | None:
        """The source's values of every key column that lie within the row group's bounds; None if some has none."""
        rows = group.num_rows
        if not rows:
            return None
        spans = partition_spans
        for leaf in layout.leaves:
            statistics = group.column(leaf.index).statistics
            if statistics is None:
                continue
            if not statistics.has_min_max:
                if statistics.has_null_count and statistics.null_count == rows:
                    return None
                continue
            if leaf.file is None:
                continue
            low, high = leaf.file.place(statistics.min_raw), leaf.file.place(statistics.max_raw)
            if leaf.shift:
                low, high = rescaled(low, high, leaf.shift)
            span = self._columns[leaf.position].between(low, high)
            if span is None:
                return None
            if spans is partition_spans:
                spans = list(partition_spans)
            spans[leaf.position] = span
        return spans

    def _fit(self, spans: list[Span]) -> bool:
        return self._key_rows is None or self._key_rows.fit(spans)

    def _passes_blooms(
        self, group: pq.RowGroupMetaData, layout: _Layout, spans: list[Span], blooms: BloomReader
    ) -> bool:
        """Whether some source key is in all of the row group's Bloom filters, where it has any."""
        filters = {}
        for leaf in layout.leaves:
            if leaf.file is not None:
                chunk = group.column(leaf.index)
                if chunk.bloom_filter_offset is not None:
                    filters[leaf] = chunk
        if not filters:
            return True
        keys = self._keys_within(spans)
        if keys is None:
            return True
        for leaf, chunk in filters.items():
            bloom = blooms.read(chunk)
            if bloom is not None:
                keys = [key for key in keys if self._might_contain(bloom, leaf, key[leaf.position])]
        return bool(keys)

    def _keys_within(self, spans: list[Span]) -> list[tuple[int, ...]] | None:
        if self._key_rows is not None:
            return self._key_rows.fitting(spans, _MOST_KEYS_FOR_BLOOM)
        begin, end = spans[0]
        return [(rank,) for rank in range(begin, end)] if end - begin <= _MOST_KEYS_FOR_BLOOM else None

    def _might_contain(self, bloom: BloomFilter, leaf: _Leaf, rank: int) -> bool:
        column = self._columns[leaf.position]
        assert column.line is not None
        assert leaf.file is not None
        value = plain_bytes(column.places[rank], column.line.exponent, leaf.file)
        return value is None or bloom.might_contain(value)

    def _layout(self, footer: pq.FileMetaData, partition: Mapping[str, Any]) -> _Layout:
        """Where the key columns are in this file; most files are laid out as one of the last few were."""
        schema = footer.schema
        for at, layout in enumerate(self._layouts):
            if layout.is_of(schema, partition):
                if at:
                    self._layouts.insert(0, self._layouts.pop(at))
                return layout
        layout = self._new_layout(schema, partition)
        self._layouts = [layout, *self._layouts[: _LAYOUTS_KEPT - 1]]
        return layout

    def _new_layout(self, schema: pq.ParquetSchema, partition: Mapping[str, Any]) -> _Layout:
        leaves = []
        for position, column in enumerate(self._columns):
            index = None if column.name in partition else leaf_index(schema, column.name)
            if index is None:
                continue  # in no file and no folder: nothing is known about it
            described = schema.column(index)
            file = file_column(described) if column.line else None
            if file and column.line and file.line.kind != column.line.kind:
                file = None
            shift = column.line.exponent - file.line.exponent if file and column.line else 0
            leaves.append(_Leaf(position, index, described, file, shift))
        present = frozenset(self._columns[leaf.position].name for leaf in leaves)
        missing = frozenset(column.name for column in self._columns) - present
        return _Layout(tuple(leaves), len(schema), present, missing)


@dataclass(frozen=True, slots=True, eq=False)
class _Leaf:
    position: int  # among the key columns
    index: int  # among the file's leaves
    described: pq.ColumnSchema
    file: FileColumn | None  # None: its bounds are not understood
    shift: int  # digits that the source's numbers have more than the file's


@dataclass(frozen=True, slots=True, eq=False)
class _Layout:
    leaves: tuple[_Leaf, ...]
    width: int  # leaves of the file
    present: frozenset[str]  # the key columns it was made for
    missing: frozenset[str]  # those that are in the folder's name, or nowhere

    def is_of(self, schema: pq.ParquetSchema, partition: Mapping[str, Any]) -> bool:
        """Whether a file of that schema has its key columns just here."""
        if len(schema) != self.width or not self.present.isdisjoint(partition) or not self.missing <= partition.keys():
            return False
        for leaf in self.leaves:
            column = schema.column(leaf.index)
            if not column.equals(leaf.described) or column.path != leaf.described.path:
                return False
        return True
