"""Writing rows as new Parquet files: by partition, at most so many rows a file, streamed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lockgate.engines.arrow_rewrite import sort_order
from lockgate.engines.layout import FileLayout, close, writer
from lockgate.engines.reading import adapted
from lockgate.merging.key_index import KeyIndex
from lockgate.merging.partitions import column_texts, partition_folder
from lockgate.merging.protocol import Added, NewFiles, Written
from lockgate.storage.local import LocalStorage, explained

_MAX_OPEN_FILES = 256  # of partitioned writes; beyond it the one open longest is ended
_WAITING_ROW_GROUPS = 2  # so many row groups may wait in memory, over all partitions


def write_new_files(rows: pa.Table | pa.RecordBatchReader, new: NewFiles, storage: LocalStorage) -> list[Added]:
    """Stage the rows and make them durable; no rows make one empty file, which still has a schema, unless a folder's
    name would have to be made up for it. Memory: a row group for each open file."""
    layout = _layout(new)
    if layout.sorting and isinstance(rows, pa.Table):
        rows = rows.take(sort_order(rows.select(new.schema.names), layout))
    else:
        layout = replace(layout, sorting=())  # a stream is not sorted, so it may not be declared so
    files = _OpenFiles(new, layout, storage)
    try:
        for batch in _batches(rows, new):
            for values, part in _by_partition(batch, new.partition_columns):
                files.write(values, part)
            files.keep_bounds()
        if not files.any and not new.partition_columns:
            files.write_empty()
        return files.finish()
    except BaseException:
        files.abandon()
        raise


def _layout(new: NewFiles) -> FileLayout:
    layout = FileLayout.of(new.like.footer, new.like.path) if new.like is not None else FileLayout()
    if new.schema.metadata:
        layout = replace(layout, metadata={**new.schema.metadata, **layout.metadata})
    if new.compression is not None:
        layout = replace(layout, compression=new.compression)
    return layout


def _batches(rows: pa.Table | pa.RecordBatchReader, new: NewFiles) -> Iterator[pa.Table]:
    if not isinstance(rows, pa.Table):
        for batch in rows:
            yield pa.Table.from_batches([batch])
    elif new.partition_columns:
        yield rows  # at once, so that each partition comes once
    else:
        for start in range(0, rows.num_rows, new.row_group_size):
            yield rows.slice(start, new.row_group_size)


def _by_partition(batch: pa.Table, columns: tuple[str, ...]) -> Iterator[tuple[tuple[Any, ...], pa.Table]]:
    """The rows of each partition, in their order, with the partition's one-row table of values."""
    if not columns:
        yield (), batch
        return
    index = KeyIndex(batch.select(list(columns)))
    order = pc.sort_indices(index.codes)  # stable
    codes = index.codes.take(order)
    ends = pc.indices_nonzero(pc.not_equal(codes.slice(1), codes.slice(0, max(len(codes) - 1, 0)))).to_pylist()
    starts = [0, *(end + 1 for end in ends)] if len(codes) else []
    for start, stop in zip(starts, [*starts[1:], len(codes)], strict=True):
        # Taken, not sliced: a few rows that wait must not keep the whole batch in memory.
        part = batch.take(order.slice(start, stop - start))
        yield tuple(part.column(c)[0].as_py() for c in columns), part


class _OpenFiles:
    """A file for each partition that rows have come for. Rows wait until they fill a row group, or until too many of
    them wait in all."""

    def __init__(self, new: NewFiles, layout: FileLayout, storage: LocalStorage) -> None:
        self._new = new
        self._layout = layout
        self._storage = storage
        self._open: dict[tuple[Any, ...], _OpenFile] = {}
        self._done: list[Added] = []
        self._count = 0
        self._may_wait = _WAITING_ROW_GROUPS * new.row_group_size

    def write(self, values: tuple[Any, ...], rows: pa.Table) -> None:
        folder = self._folder(values, rows)
        rows = adapted(rows.select(self._new.schema.names), self._new.schema)
        while rows.num_rows:
            file = self._open.get(values)
            if file is None:
                file = self._open[values] = self._begin(folder)
            taken = min(rows.num_rows, self._new.max_rows_per_file - file.rows)
            file.take(rows.slice(0, taken))
            rows = rows.slice(taken)
            if file.rows >= self._new.max_rows_per_file:
                self._end(values)

    def keep_bounds(self) -> None:
        """Called once a batch: rows that wait are written where they are too many, and files ended that are."""
        waiting = sum(f.waiting for f in self._open.values())
        for file in sorted(self._open.values(), key=lambda f: -f.waiting):
            if waiting <= self._may_wait:
                break
            waiting -= file.waiting
            file.write_waiting()
        begun = [values for values, file in self._open.items() if file.is_begun]
        for values in begun[: max(len(begun) - _MAX_OPEN_FILES, 0)]:
            self._end(values)

    @property
    def any(self) -> bool:
        return self._count > 0

    def write_empty(self) -> None:
        self._open[()] = self._begin("")

    def _folder(self, values: tuple[Any, ...], rows: pa.Table) -> str:
        known = self._new.folders.get(values)
        if known is not None or not values:
            return known or ""
        names = self._new.partition_columns
        texts = [column_texts(_first(rows.column(name)))[0] for name in names]
        return partition_folder(names, texts)

    def _begin(self, folder: str) -> _OpenFile:
        name = f"part-{self._new.identity}-{self._count:05d}.parquet"
        staged = self._new.staging / f"new-{self._count:05d}.parquet"
        self._count += 1
        return _OpenFile(f"{folder}/{name}" if folder else name, staged, self._new, self._layout)

    def _end(self, values: tuple[Any, ...]) -> None:
        file = self._open.pop(values)
        file.close()
        self._storage.fsync_file(file.staged)
        self._done.append(Added(file.name, Written(file.staged, file.rows, file.staged.stat().st_size)))

    def finish(self) -> list[Added]:
        for values in list(self._open):
            self._end(values)
        return self._done

    def abandon(self) -> None:
        for file in self._open.values():
            file.abandon()


class _OpenFile:
    """Collects rows until they fill a row group. On disk from its first row group on."""

    def __init__(self, name: str, staged: Path, new: NewFiles, layout: FileLayout) -> None:
        self.name = name
        self.staged = staged
        self.rows = 0
        self.waiting = 0
        self._schema = new.schema
        self._layout = layout
        self._size = min(new.row_group_size, layout.row_group_size or new.row_group_size)
        self._waiting: list[pa.Table] = []
        self._writer: Any = None

    @property
    def is_begun(self) -> bool:
        return self._writer is not None

    def take(self, rows: pa.Table) -> None:
        self.rows += rows.num_rows
        self.waiting += rows.num_rows
        self._waiting.append(rows)
        while self.waiting >= self._size:
            self.write_waiting()

    def write_waiting(self) -> None:
        """Write a row group of what waits, a full one if there is enough."""
        together = pa.concat_tables(self._waiting)
        size = min(self._size, self.waiting)
        self._begin()
        with explained("write", self.staged):
            self._writer.write_table(together.slice(0, size), row_group_size=size)
        self._waiting, self.waiting = [together.slice(size)], self.waiting - size

    def _begin(self) -> None:
        if self._writer is None:
            with explained("write", self.staged):
                self._writer = writer(self.staged, self._schema, self._layout, rows=self._size)

    def close(self) -> None:
        if self.waiting:
            self.write_waiting()
        self._begin()  # a file without rows still has a schema
        with explained("write", self.staged):
            close(self._writer, self._layout)

    def abandon(self) -> None:
        """Let go of the file; what is in it is swept with its staging folder."""
        if self._writer is None:
            return
        try:
            self._writer.close()
        except (pa.ArrowException, OSError):  # the failure that brought us here says more
            return


def _first(column: pa.ChunkedArray) -> pa.Array:
    head = column.slice(0, 1)
    return pa.concat_arrays(head.chunks) if head.num_chunks != 1 else head.chunk(0)
