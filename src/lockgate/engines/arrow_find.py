"""Finding rows by key with Arrow: a few row groups at a time meet the source's keys that are in their range."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lockgate.engines.layout import FileLayout
from lockgate.engines.reading import open_file, reading
from lockgate.merging.key_index import KeyIndex, comparable
from lockgate.merging.protocol import DataFile
from lockgate.merging.table_source import Matches, SourceRows

# A share of the source's rows.
_LOOKED_UP_AT_ONCE = 4


@dataclass(frozen=True)
class _Piece:
    """Key columns of a few row groups of one file, read."""

    file: DataFile
    base: int
    columns: list[pa.Array]

    @property
    def rows(self) -> int:
        return len(self.columns[0])


def bunches(files: Sequence[DataFile], at_least: int) -> Iterator[list[DataFile]]:
    """Files whose keys are looked up by one worker."""
    bunch: list[DataFile] = []
    rows = 0
    for file in files:
        bunch.append(file)
        rows += file.rows
        if rows >= at_least:
            yield bunch
            bunch, rows = [], 0
    if bunch:
        yield bunch


@dataclass(frozen=True)
class SortedKeys:
    """The source's keys by their first column, so that a row group meets only those in its range."""

    schema: pa.Schema  # the key columns as the dataset has them
    columns: list[pa.Array]  # their values, comparable
    order: pa.Array  # the source rows that these are the keys of

    @classmethod
    def of(cls, source: SourceRows) -> SortedKeys:
        columns = [comparable(c) for c in source.keys.columns]
        order = pc.sort_indices(columns[0]).cast(pa.int64())
        return cls(source.keys.schema, [c.take(order) for c in columns], order)

    def in_parts(self, most_bytes: int) -> Iterator[SortedKeys]:
        """The same keys, no more of them at a time than take so many bytes."""
        size = sum(column.nbytes for column in [*self.columns, self.order])
        rows = max(len(self.order) * most_bytes // max(size, 1), 1)
        for start in range(0, len(self.order), rows):
            yield SortedKeys(self.schema, [c.slice(start, rows) for c in self.columns], self.order.slice(start, rows))

    @property
    def sliceable(self) -> bool:
        """NaN has no place in an order by < and >."""
        first = self.columns[0].type
        return not pa.types.is_floating(first) and not pa.types.is_null(first)

    @property
    def looked_up_at_once(self) -> int:
        """Every look-up hashes the keys that are in range: it pays for so many rows or more."""
        return len(self.order) // _LOOKED_UP_AT_ONCE

    def between(self, column: pa.Array) -> tuple[KeyIndex, pa.Array] | None:
        """The keys that could be in `column`, and their source rows."""
        if len(self.order) == 0:
            return None
        start, stop = 0, len(self.order)
        if self.sliceable:
            first = _ordinal(self.columns[0])
            bounds = pc.min_max(_ordinal(column))
            if not bounds["min"].is_valid:
                return None
            start = bisect_left(first, bounds["min"].as_py(), key=lambda s: s.as_py())
            stop = bisect_right(first, bounds["max"].as_py(), lo=start, key=lambda s: s.as_py())
        if start == stop:
            return None
        table = pa.table([c.slice(start, stop - start) for c in self.columns], names=_numbered(self.columns))
        return KeyIndex(table), self.order.slice(start, stop - start)


def find_rows(bunch: Sequence[DataFile], keys: SortedKeys) -> list[Matches]:
    """The rows of these files that have one of the keys."""
    found: dict[str, list[tuple[pa.Array, pa.Array]]] = {}
    for pieces in _together(bunch, keys):
        columns = [pa.concat_arrays(parts) for parts in zip(*(p.columns for p in pieces), strict=True)]
        near = keys.between(columns[0])
        if near is None:
            continue
        index, source_rows = near
        hits = index.find(columns)
        start = 0
        for piece in pieces:
            own = hits.slice(start, piece.rows)
            start += piece.rows
            valid = own.is_valid()
            if not valid.true_count:
                continue
            rows = pc.filter(pa.arange(piece.base, piece.base + piece.rows), valid)
            found.setdefault(piece.file.name, []).append((rows, source_rows.take(own.drop_null())))
    return [
        Matches(
            file,
            pa.concat_arrays([rows for rows, _ in found[file.name]]),
            pa.concat_arrays([taken for _, taken in found[file.name]]),
        )
        for file in bunch
        if file.name in found
    ]


def _together(bunch: Sequence[DataFile], keys: SortedKeys) -> Iterator[list[_Piece]]:
    """Row groups that are looked up together, as many as make it pay."""
    pieces: list[_Piece] = []
    rows = 0
    for file in bunch:
        for base, columns in key_pieces(file, keys.schema.names, keys.schema):
            piece = _Piece(file, base, columns)
            pieces.append(piece)
            rows += piece.rows
            if rows >= keys.looked_up_at_once:
                yield pieces
                pieces, rows = [], 0
    if pieces:
        yield pieces


def key_pieces(file: DataFile, key_columns: Sequence[str], schema: pa.Schema) -> Iterator[tuple[int, list[pa.Array]]]:
    """The key columns of each row group that may hold a source key, with the number of its first row."""
    with reading(file), open_file(file.path, FileLayout.of(file.footer, file.path)) as opened:
        present = set(opened.schema_arrow.names)
        inside = [k for k in key_columns if k in present and k not in file.partition]
        base = 0
        wanted = set(range(opened.num_row_groups) if file.row_groups is None else file.row_groups)
        for number in range(opened.num_row_groups):
            size = opened.metadata.row_group(number).num_rows
            if number in wanted and size:
                table = opened.read_row_group(number, columns=inside, use_threads=False) if inside else None
                yield base, [_key(k, file, table, size, schema) for k in key_columns]
            base += size


def _key(name: str, file: DataFile, table: pa.Table | None, size: int, schema: pa.Schema) -> pa.Array:
    """One key column of a row group in the dataset's type: from the file, or from its folder's name."""
    kind = schema.field(name).type
    if name in file.partition:
        return comparable(pa.repeat(pa.scalar(file.partition[name], kind), size))
    if table is None or name not in table.column_names:
        return comparable(pa.nulls(size, kind))
    column = table.column(name)
    return comparable(column if column.type == kind else column.cast(kind))


def _ordinal(column: pa.Array) -> pa.Array:
    """Dates and times as whole numbers: nanoseconds do not fit Python's datetime."""
    if not pa.types.is_temporal(column.type):
        return column
    return column.cast(pa.int32() if column.type.bit_width == 32 else pa.int64())


def _numbered(columns: Sequence[Any]) -> list[str]:
    return [str(i) for i in range(len(columns))]
