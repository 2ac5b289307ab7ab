"""The Arrow engine: keys are looked up a row group at a time, files are streamed through a row group at a time."""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lockgate.engines.arrow_find import SortedKeys, bunches, find_rows
from lockgate.engines.arrow_rewrite import rewrite_file
from lockgate.engines.equality import equal_rows
from lockgate.engines.layout import FileLayout
from lockgate.engines.new_files import write_new_files
from lockgate.engines.reading import adapted, open_file, reading
from lockgate.merging.footers import read_footers
from lockgate.merging.protocol import Added, DataFile, Found, NewFiles, Rewrite, Written
from lockgate.merging.strategy import MergeStrategy
from lockgate.merging.table_source import Matches, SourceRows, added_rows, found_rows, unmatched
from lockgate.storage.local import LocalStorage

T = TypeVar("T")
R = TypeVar("R")


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
        return found_rows(self._compared(matches, source) if compare else matches, new, source)

    def _matches(self, files: Sequence[DataFile], source: SourceRows) -> list[Matches]:
        if not files or not source.table.num_rows:
            return []
        keys = SortedKeys.of(source)
        parts = list(bunches(files, at_least=keys.looked_up_at_once))
        return [m for found in self._each(parts, lambda part: find_rows(part, keys)) for m in found]

    def _compared(self, matches: Sequence[Matches], source: SourceRows) -> list[Matches]:
        return list(self._each(matches, lambda found: compared(found, source)))

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
