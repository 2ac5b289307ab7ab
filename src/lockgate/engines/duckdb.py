"""The DuckDB engine: MERGE decides on keys and row numbers, COPY streams each file to its staged successor.

Whatever DuckDB cannot hold or write without changing it is handed to Arrow, file by file.
"""

from __future__ import annotations

import logging
import os
import uuid
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager, suppress
from threading import Event
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lockgate.engines.arrow import ArrowEngine, compared
from lockgate.engines.checksums import has_page_checksums
from lockgate.engines.duckdb_copy import copy_file
from lockgate.engines.duckdb_database import OwnDatabase
from lockgate.engines.duckdb_sql import merge_statement, scan_keys, union_statement
from lockgate.engines.duckdb_types import ambiguous_names, key_type, why_not_copied, why_not_held
from lockgate.engines.duckdb_version import duckdb_version, supports_merge, uses_merge
from lockgate.errors import DatasetMergeError, StorageError
from lockgate.merging.footers import leaf_index
from lockgate.merging.key_index import comparable
from lockgate.merging.protocol import Added, DataFile, Found, NewFiles, Rewrite, Written
from lockgate.merging.strategy import Actions, MergeStrategy
from lockgate.merging.table_source import Matches, SourceRows, found_rows
from lockgate.storage.links import SafeNames, safe_names
from lockgate.storage.local import LocalStorage

log = logging.getLogger("lockgate.merge")


_REFUSALS = (
    duckdb.InvalidInputException,
    duckdb.ConversionException,
    duckdb.BinderException,
    duckdb.NotImplementedException,
)


class DuckDBEngine:
    """Use it in a `with` block. A connection that is given finds keys, on cursors of it; it is not changed. Files are
    written by a database of our own, since the settings of the other may change what is written."""

    name = "duckdb"

    def __init__(self, storage: LocalStorage, *, use_merge: bool | None = None, connection: Any = None) -> None:
        self._storage = storage
        self._arrow = ArrowEngine(storage)
        self._given = connection
        self._wanted = use_merge
        self._stack = ExitStack()
        self._own: OwnDatabase | None = None
        self._links: SafeNames | None = None
        self._strategy: MergeStrategy | None = None  # known from find on, for messages

    def __enter__(self) -> DuckDBEngine:
        self._links = self._stack.enter_context(safe_names())
        self._own = self._stack.enter_context(OwnDatabase(spill=self._links.folder / "spill"))
        if self._given is None:
            self._own.begin()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _connection(self) -> Any:
        """The one that finds keys."""
        return self._writing() if self._given is None else self._given

    def _writing(self) -> Any:
        assert self._own is not None
        return self._own.connection()

    def read_footers(self, paths: Sequence[str]) -> list[pq.FileMetaData]:
        return self._arrow.read_footers(paths)

    def find(self, files: Sequence[DataFile], source: SourceRows, strategy: MergeStrategy, *, compare: bool) -> Found:
        self._strategy = strategy
        by_merge = uses_merge(self._connection(), self._wanted)
        files = _with_keys(files, source.key_columns)
        kinds = [key_type(source.table.schema.field(k).type) for k in source.key_columns]
        reason = ambiguous_names(source.table.schema)
        if None in kinds:
            odd = source.key_columns[kinds.index(None)]
            reason = f"DuckDB has no type that holds every {source.table.schema.field(odd).type} of key {odd!r}"
        if any(has_page_checksums(f.path, f.footer) for f in files):
            reason = "files have page checksums, which DuckDB does not look at"
        if self._cannot_read_together(files):
            reason = "DuckDB before 1.4.0 cannot read files of several schemas at once"
        if not files or not source.table.num_rows or reason:
            if reason:
                log.info("keys are looked up by Arrow: %s", reason)
            return self._arrow.find(files, source, strategy, compare=compare)
        if self._own is not None and strategy.actions.matched == "replace":
            self._own.begin()  # there will be files to write
        with self._failures_explained(source, files):
            answer = self._answer(files, source, [k for k in kinds if k is not None], strategy.actions, by_merge)
        return _found(files, answer, source, strategy.actions, compare)

    def _cannot_read_together(self, files: Sequence[DataFile]) -> bool:
        # It ends in an internal error there, which makes the whole database unusable, also for its owner.
        return _several_schemas(files) and not supports_merge(duckdb_version(self._connection()))

    def _answer(
        self, files: Sequence[DataFile], source: SourceRows, kinds: Sequence[str], actions: Actions, by_merge: bool
    ) -> pa.Table:
        """One row an action: merge_action, file, file_row, source_row."""
        assert self._links is not None
        aliases = [(f"k{i}", kind) for i, kind in enumerate(kinds)]
        keys = pa.table([_stored(c) for c in source.keys.columns], names=[a for a, _ in aliases])
        keys = keys.append_column("source_row", pa.arange(0, keys.num_rows))
        mark = uuid.uuid4().hex
        source_view, target_keys = f"source_view_{mark}", f"target_keys_{mark}"
        paths = [self._links.of(f.path) for f in files]
        inside = [None if k in files[0].partition else k for k in source.key_columns]
        with (
            self._cursor() as cursor,
            _registered(cursor, source_view, keys),
            _registered(cursor, f"{target_keys}_files", _folder_keys(files, source, aliases)),
        ):
            scan = scan_keys(target_keys, aliases, inside, source_view)
            by_name = _several_schemas(files)
            with _temporary(cursor, target_keys, scan, {"paths": paths, "by_name": by_name}):
                decide = merge_statement if by_merge else union_statement
                return cursor.sql(decide(target_keys, source_view, len(aliases), actions)).to_arrow_table()

    def rewrite(self, jobs: Sequence[Rewrite], source: SourceRows) -> list[Written]:
        """COPY where it keeps the file's layout, Arrow where it would not, or where nothing of the file stays."""
        reason = why_not_held(source.table.schema)
        if reason:
            log.info("files are written by Arrow: %s", reason)
        copied = [job for job in jobs if not reason and self._can_copy(job)]
        names = {job.file.name for job in copied}
        by_arrow = [job for job in jobs if job.file.name not in names]
        table = source.table.combine_chunks()
        done: dict[str, Written] = {}
        refused: list[Rewrite] = []
        with self._failures_explained(source, [j.file for j in jobs]):
            for job, written in self._each(copied, table):
                if written is None:
                    refused.append(job)
                else:
                    done[job.file.name] = written
        if self._own is not None:
            self._own.let_go()  # what is left to do needs it no more
        rest = by_arrow + refused
        for job, written in zip(rest, self._arrow.rewrite(rest, source) if rest else [], strict=True):
            done[job.file.name] = written
        return [done[job.file.name] for job in jobs]

    def _can_copy(self, job: Rewrite) -> bool:
        found = job.matches
        if job.schema is not None or not job.keep_others or found is None or found.moving:
            return False
        if found.replaced == job.file.rows:
            return False
        reason = why_not_copied(job.file)
        if reason:
            log.info("%s is written by Arrow, to keep its layout: %s", job.file.name, reason)
        return reason is None

    def _each(self, jobs: Sequence[Rewrite], table: pa.Table) -> Iterator[tuple[Rewrite, Written | None]]:
        """As many files at once as there are cores; each COPY on a cursor of its own."""
        if not jobs:
            return
        links = self._links
        assert links is not None
        writer = self._writing()
        changed = Event()  # what COPY does to one file it does to the others: they need not be tried

        def work(job: Rewrite) -> Written | None:
            if changed.is_set():
                return None
            with closing(writer.cursor()) as cursor:
                try:
                    written = copy_file(cursor, job, table, self._storage, links)
                except _REFUSALS as error:
                    # A value that DuckDB does not take, and Arrow may; a file that is damaged is named by Arrow too.
                    log.info("%s is written by Arrow: %s", job.file.name, links.spelled_out(str(error)))
                    self._storage.remove(job.staged)
                    return None
            if written is None:
                changed.set()
            return written

        pool = ThreadPoolExecutor(min(os.cpu_count() or 1, len(jobs)))
        try:
            yield from zip(jobs, pool.map(work, jobs), strict=True)
        finally:
            pool.shutdown(wait=True, cancel_futures=True)

    def add(self, found: Found, source: SourceRows, new: NewFiles) -> list[Added]:
        return self._arrow.add(found, source, new)

    @contextmanager
    def _cursor(self) -> Iterator[Any]:
        cursor = self._connection().cursor()
        try:
            yield cursor
        finally:
            cursor.close()

    @contextmanager
    def _failures_explained(self, source: SourceRows, files: Sequence[DataFile]) -> Iterator[None]:
        try:
            yield
        except (RuntimeError, duckdb.InterruptException) as error:
            if isinstance(error, RuntimeError) and "interrupted" not in str(error):
                raise
            raise KeyboardInterrupt from error  # DuckDB makes this of Ctrl-C
        except duckdb.Error as error:
            assert self._links is not None
            said = self._links.spelled_out(str(error))
            if isinstance(error, duckdb.IOException) and not any(f.path in said for f in files):
                raise StorageError(
                    f"cannot write staged files: {said}",
                    in_place="nothing was written",
                    hint="free some space on that disk, then run again",
                ) from error
            self._arrow.refuse_unreadable(files)  # names the file where DuckDB does not
            blamed = [f.path for f in files if f.path in said] or [f.path for f in files]
            log.error(
                "MERGE operation failed: strategy %s, %s: %s (files: %s)",
                self._strategy,
                type(error).__name__,
                said,
                ", ".join(blamed[:5]),
            )
            raise DatasetMergeError(
                f"MERGE operation failed: {said}",
                strategy=self._strategy,
                key_columns=source.key_columns,
                files=blamed,
                hint="if a file is named above, restore it from a copy or move it out of the dataset",
            ) from error


def _with_keys(files: Sequence[DataFile], keys: Sequence[str]) -> list[DataFile]:
    """The files that have every key column, in them or in their folder's name. The others match nothing."""
    known: list[tuple[Any, bool]] = []
    found = []
    for file in files:
        schema = file.schema
        has = next((has for other, has in known if other is schema), None)
        if has is None:
            has = all(key in file.partition or leaf_index(schema, key) is not None for key in keys)
            known.append((schema, has))
        if has:
            found.append(file)
    return found


def _several_schemas(files: Sequence[DataFile]) -> bool:
    return any(f.schema is not files[0].schema for f in files[1:])


def _stored(column: Any) -> pa.Array:
    """A key column as it is compared: text as its bytes."""
    array = comparable(column)
    if pa.types.is_string(array.type):
        return array.cast(pa.binary())
    return array.cast(pa.large_binary()) if pa.types.is_large_string(array.type) else array


def _folder_keys(files: Sequence[DataFile], source: SourceRows, aliases: Sequence[tuple[str, str]]) -> pa.Table:
    """The files by number, with those key columns that are in their folders' names."""
    columns: dict[str, Any] = {"file": pa.arange(0, len(files))}
    for (alias, _), name in zip(aliases, source.key_columns, strict=True):
        if name in files[0].partition:
            kind = source.table.schema.field(name).type
            columns[alias] = _stored(pa.array([f.partition[name] for f in files], kind))
    return pa.table(columns)


def _found(files: Sequence[DataFile], answer: pa.Table, source: SourceRows, actions: Actions, compare: bool) -> Found:
    """The answer by file. Counts come from its merge_action, never from differences of row counts."""
    new = None
    if actions.new == "insert":
        inserted = answer.filter(pc.equal(answer["merge_action"], "INSERT"))["source_row"]
        new = pa.chunked_array(inserted.chunks, pa.int64()).combine_chunks()
        new = new.take(pc.sort_indices(new))
    if actions.matched == "keep":
        return found_rows((), new, source)
    updated = answer.select(["file", "file_row", "source_row"]).filter(pc.equal(answer["merge_action"], "UPDATE"))
    updated = _in_order(updated.combine_chunks())
    matches = []
    start = 0
    for number, count in ((c["values"], c["counts"]) for c in updated["file"].value_counts().to_pylist()):
        part = updated.slice(start, count)
        start += count
        matches.append(Matches(files[number], _flat(part["file_row"]), _flat(part["source_row"])))
    return found_rows([compared(m, source) for m in matches] if compare else matches, new, source)


def _in_order(updated: pa.Table) -> pa.Table:
    """By file and row: sorted by one number, which takes half the time of sorting by two."""
    places = pc.add(pc.multiply(updated["file"], 1 << 40), updated["file_row"])
    if pc.any(pc.less(places.slice(1), places.slice(0, max(len(places) - 1, 0)))).as_py():
        updated = updated.take(pc.sort_indices(places))
    return updated


def _flat(column: pa.ChunkedArray) -> pa.Array:
    return pa.concat_arrays(column.chunks).cast(pa.int64()) if column.num_chunks else pa.array([], pa.int64())


@contextmanager
def _registered(cursor: Any, name: str, table: pa.Table) -> Iterator[None]:
    """A table as a view of this cursor, gone when the block ends."""
    cursor.register(name, table)
    try:
        yield
    finally:
        _unregister_duckdb_table_safely(cursor, name)


def _unregister_duckdb_table_safely(cursor: Any, name: str) -> None:
    try:
        cursor.unregister(name)
    except duckdb.Error as error:
        log.debug("the view %s could not be removed: %s", name, error)


@contextmanager
def _temporary(cursor: Any, name: str, statement: str, values: dict[str, Any] | None = None) -> Iterator[None]:
    """A temporary table, dropped when the block ends."""
    cursor.execute(statement, values) if values else cursor.execute(statement)
    try:
        yield
    finally:
        with suppress(duckdb.Error):  # the cursor's end drops it too
            cursor.execute(f"DROP TABLE IF EXISTS {name}")
