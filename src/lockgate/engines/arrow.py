"""The Arrow engine: keys are looked up a row group at a time, files are streamed through a row group at a time."""

from __future__ import annotations

import os
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lockgate.engines.arrow_rewrite import rewrite_file
from lockgate.engines.equality import equal_rows
from lockgate.engines.layout import FileLayout
from lockgate.engines.new_files import write_new_files
from lockgate.engines.reading import adapted, open_file, reading
from lockgate.merging.footers import read_footers
from lockgate.merging.key_index import KeyIndex, comparable
from lockgate.merging.protocol import Added, DataFile, Found, NewFiles, Rewrite, Written
from lockgate.merging.strategy import MergeStrategy
from lockgate.merging.table_source import Matches, SourceRows, added_rows, found_rows, unmatched
from lockgate.storage.local import LocalStorage

T = TypeVar("T")
R = TypeVar("R")


# Every look-up hashes the source's keys that are in range: it pays for this share of the source's rows or more.
_LOOKED_UP_AT_ONCE = 4


class ArrowEngine:
    """Single process, streaming, no SQL. Memory: the source, and a row group for each of a few open files."""

    name = "arrow"

    def __init__(self, storage: LocalStorage, *, workers: int | None = None) -> None:
        self._storage = storage
        self._workers = workers or os.cpu_count() or 1

    def read_footers(self, paths: Sequence[str]) -> list[pq.FileMetaData]:
        return read_footers(paths)

    def find(self, files: Sequence[DataFile], source: SourceRows, strategy: MergeStrategy, *, compare: bool) -> Found:
        actions = strategy.actions
        matches = self._matches(files, source)
        new = unmatched(matches, source.table.num_rows) if actions.new == "insert" else None
        if actions.matched == "keep":
            return found_rows((), new, source)
        return found_rows([compared(m, source) for m in matches] if compare else matches, new, source)

    def _matches(self, files: Sequence[DataFile], source: SourceRows) -> list[Matches]:
        if not files or not source.table.num_rows:
            return []
        keys = _SortedKeys(source)
        bunches = list(_bunches(files, at_least=source.table.num_rows // _LOOKED_UP_AT_ONCE))
        return [m for found in self._each(bunches, lambda bunch: _find(bunch, source, keys)) for m in found]

    def rewrite(self, jobs: Sequence[Rewrite], source: SourceRows) -> list[Written]:
        table = source.table.combine_chunks()
        alone = len(jobs) == 1
        return list(self._each(jobs, lambda job: rewrite_file(job, table, self._storage, threads=alone)))

    def add(self, found: Found, source: SourceRows, new: NewFiles) -> list[Added]:
        return write_new_files(added_rows(found, source), new, self._storage)

    def refuse_unreadable(self, files: Sequence[DataFile]) -> None:
        """Read every file once more, and raise for the first that cannot be read."""
        for file in files:
            with reading(file), open_file(file.path, FileLayout.of(file.footer, file.path)) as opened:
                for number in range(opened.num_row_groups):
                    opened.read_row_group(number, use_threads=False)

    def _each(self, items: Sequence[T], work: Callable[[T], R]) -> Iterator[R]:
        """Do the work on a few items at once; the first failure stops what has not begun."""
        if len(items) < 2 or self._workers < 2:
            yield from map(work, items)
            return
        pool = ThreadPoolExecutor(min(self._workers, len(items)))
        try:
            yield from pool.map(work, items)
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


@dataclass(frozen=True)
class _Piece:
    """Key columns of a few row groups of one file, read."""

    file: DataFile
    base: int
    columns: list[pa.Array]

    @property
    def rows(self) -> int:
        return len(self.columns[0])


def _bunches(files: Sequence[DataFile], at_least: int) -> Iterator[list[DataFile]]:
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


class _SortedKeys:
    """The source's keys by their first column, so that a row group meets only those in its range."""

    def __init__(self, source: SourceRows) -> None:
        columns = [comparable(c) for c in source.keys.columns]
        first = columns[0]
        self.order = pc.sort_indices(first).cast(pa.int64())
        self.columns = [c.take(self.order) for c in columns]
        # NaN has no place in an order by < and >.
        self.sliceable = not pa.types.is_floating(first.type) and not pa.types.is_null(first.type)

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


def _find(bunch: Sequence[DataFile], source: SourceRows, keys: _SortedKeys) -> list[Matches]:
    found: dict[str, list[tuple[pa.Array, pa.Array]]] = {}
    for pieces in _together(bunch, source, at_least=source.table.num_rows // _LOOKED_UP_AT_ONCE):
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


def _together(bunch: Sequence[DataFile], source: SourceRows, at_least: int) -> Iterator[list[_Piece]]:
    """Row groups that are looked up together, as many as make so many rows."""
    pieces: list[_Piece] = []
    rows = 0
    for file in bunch:
        for base, columns in key_pieces(file, source.key_columns, source.table.schema):
            piece = _Piece(file, base, columns)
            pieces.append(piece)
            rows += piece.rows
            if rows >= at_least:
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


def compared(matches: Matches, source: SourceRows) -> Matches:
    """Say of each matched row whether it differs from its source row."""
    parts = []
    start = 0
    file = matches.file
    with reading(file), open_file(file.path, FileLayout.of(file.footer, file.path)) as opened:
        names = [n for n in source.table.column_names if n not in file.partition]
        schema = pa.schema([source.table.schema.field(n) for n in names])
        base = 0
        for number in range(opened.num_row_groups):
            size = opened.metadata.row_group(number).num_rows
            stop = bisect_left(matches.rows, base + size, lo=start, key=lambda n: n.as_py())
            if stop > start:
                positions = pc.subtract(matches.rows.slice(start, stop - start), base)
                old = opened.read_row_group(number, use_threads=False)
                old = adapted(old.select([n for n in old.column_names if n in names]), schema).take(positions)
                new = source.table.select(names).take(matches.source_rows.slice(start, stop - start))
                parts.append(pc.invert(equal_rows(old, new)))
            start, base = stop, base + size
    return Matches(file, matches.rows, matches.source_rows, pa.concat_arrays(parts))


def _ordinal(column: pa.Array) -> pa.Array:
    """Dates and times as whole numbers: nanoseconds do not fit Python's datetime."""
    if not pa.types.is_temporal(column.type):
        return column
    return column.cast(pa.int32() if column.type.bit_width == 32 else pa.int64())


def _numbered(columns: Sequence[Any]) -> list[str]:
    return [str(i) for i in range(len(columns))]
