"""What Spark's workers do, one file at a time, with Arrow. Nothing here needs Spark: it only brings the rows.

A task may be tried again, or twice at once. So each attempt stages under a name of its own, and only what the attempt
that counts has reported is ever used.
"""

from __future__ import annotations

import base64
import json
import pickle
import re
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from lockgate import errors
from lockgate.engines.arrow import compared
from lockgate.engines.arrow_find import key_pieces
from lockgate.engines.arrow_rewrite import rewrite_file
from lockgate.engines.new_files import write_new_files
from lockgate.engines.spark_keys import encoded
from lockgate.errors import LockgateError
from lockgate.merging.footers import read_footers
from lockgate.merging.lossless import cast_exactly
from lockgate.merging.protocol import DataFile, NewFiles, Rewrite
from lockgate.merging.schema import fit
from lockgate.merging.table_source import Matches, SourceRows, moved_rows
from lockgate.storage.local import LocalStorage

_ERROR = "lockgate-error:"


@dataclass(frozen=True)
class FileToRead:
    """A file of the dataset as it travels to a worker: footers are read again there."""

    name: str
    path: str
    partition: Mapping[str, Any]
    row_groups: tuple[int, ...] | None

    @classmethod
    def of(cls, file: DataFile) -> FileToRead:
        return cls(file.name, file.path, dict(file.partition), file.row_groups)

    def opened(self) -> DataFile:
        footer = read_footers([self.path])[0]
        return DataFile(
            self.name, self.path, footer.num_rows, footer.schema, self.partition, self.row_groups, kept_footer=footer
        )


@dataclass(frozen=True)
class FileToWrite:
    """A file that is to be written again."""

    file: FileToRead
    staged: str
    keep_others: bool
    schema: pa.Schema | None

    @classmethod
    def of(cls, job: Rewrite) -> FileToWrite:
        return cls(FileToRead.of(job.file), str(job.staged), job.keep_others, job.schema)


@dataclass(frozen=True)
class Columns:
    """The source's columns as Spark carries them, c0, c1, …, and what they are in the dataset."""

    schema: pa.Schema  # of the dataset, in the order in which they are carried
    key_columns: tuple[str, ...]
    partition_columns: tuple[str, ...]

    def fitted(self, table: pa.Table, names: Sequence[str] | None = None) -> pa.Table:
        """The carried columns with the dataset's names and types; of some of them where `names` says which."""
        wanted = [f for f in self.schema if names is None or f.name in names]
        carried = [table.column(f"c{i}") for i, f in enumerate(self.schema) if names is None or f.name in names]
        return fit(pa.table(carried, names=[f.name for f in wanted]), pa.schema(wanted))


def telling(work: Callable[..., Any], *given: Any) -> Any:
    """Our errors, on their way through Spark, which keeps nothing of an exception but its text."""
    try:
        return work(*given)
    except LockgateError as error:
        raise RuntimeError(_packed(error)) from error


def telling_each(work: Callable[..., Iterator[pa.RecordBatch]], *given: Any) -> Iterator[pa.RecordBatch]:
    try:
        yield from work(*given)
    except LockgateError as error:
        raise RuntimeError(_packed(error)) from error


def _packed(error: LockgateError) -> str:
    said = {name: value for name, value in vars(error).items() if name != "result" and _is_plain(value)}
    told = json.dumps({"kind": type(error).__name__, "said": said}, default=list)
    return f"{_ERROR}{base64.b64encode(told.encode()).decode()}:"


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, str | int | tuple | list)


def unpacked(text: str) -> LockgateError | None:
    """The error that a worker told, if it was one of ours. The text may quote anybody's data, so nothing in it is
    believed but the name of one of our errors and what it says."""
    found = re.search(rf"{_ERROR}([A-Za-z0-9+/=]+):", text)
    if found is None:
        return None
    try:
        told = json.loads(base64.b64decode(found[1], validate=True))
        kind = getattr(errors, str(told["kind"]), None)
        said = {str(name): value for name, value in dict(told["said"]).items() if _is_plain(value)}
        message = str(said["message"])
    except (ValueError, KeyError, TypeError):
        return None
    if not (isinstance(kind, type) and issubclass(kind, LockgateError)):
        return None
    error = kind.__new__(kind, message)
    error.args = (message,)
    lists = {name: tuple(value) for name, value in said.items() if isinstance(value, list)}
    vars(error).update({**said, **lists, "result": None})
    return error


def scan(tasks: Sequence[Sequence[tuple[int, FileToRead]]], schema: pa.Schema, key_columns: tuple[str, ...]) -> Any:
    """Keys and row numbers of the files of a task, which is known by its number."""

    def keys_of(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for task in numbers(batches, "id"):
            for number, file in tasks[task]:
                for base, columns in key_pieces(file.opened(), key_columns, schema):
                    size = len(columns[0])
                    yield pa.record_batch(
                        [
                            pa.repeat(pa.scalar(number, pa.int32()), size),
                            pa.arange(base, base + size),
                            *(encoded(column) for column in columns),
                        ],
                        names=["file", "file_row", *(f"k{i}" for i in range(len(columns)))],
                    )

    return lambda batches: telling_each(keys_of, batches)


def join_key(kind: pa.DataType, name: str) -> Any:
    """A source column as the join's key, by way of the dataset's type."""

    def key(column: pa.Array) -> pa.Array:
        return encoded(cast_exactly(pa.chunked_array([column]), kind, name))

    return lambda column: telling(key, column)


def check(carried: Columns, names: Sequence[str]) -> Any:
    """Whether every value of these columns fits the dataset's types; how many rows were looked at."""

    def checked(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            carried.fitted(pa.Table.from_batches([batch]), names)
            yield pa.record_batch({"rows": pa.array([batch.num_rows], pa.int64())})

    return lambda batches: telling_each(checked, batches)


def mark(files: Mapping[int, FileToRead], carried: Columns, names: Sequence[str] | None, compares: bool) -> Any:
    """Of the matched rows of one file, which leave their partition and which differ."""

    def marked(key: tuple[Any, ...], table: pa.Table) -> pa.Table:
        file = files[key[0].as_py()].opened()
        table = table.sort_by("file_row")
        rows = carried.fitted(table, names)
        source = SourceRows(rows, carried.key_columns, carried.partition_columns)
        leaving = moved_rows(file, rows, source)
        changed = pa.repeat(pa.scalar(True), table.num_rows)
        if compares:
            matches = Matches(file, _flat(table["file_row"]), pa.arange(0, table.num_rows))
            changed = compared(matches, source).changed
        return (
            table.select(["file", "file_row", "place"])
            .append_column("leaving", leaving)
            .append_column("changed", changed)
        )

    return lambda key, table: telling(marked, key, table)


def rewrite(jobs: Mapping[int, FileToWrite], carried: Columns, compares: bool) -> Any:
    """One file, written again with its replaced rows."""

    def rewritten(key: tuple[Any, ...], table: pa.Table) -> pa.Table:
        number = key[0].as_py()
        table = table.sort_by("file_row")
        matches = Matches(
            jobs[number].file.opened(),
            _flat(table["file_row"]),
            pa.arange(0, table.num_rows),
            changed=_flat(table["changed"]) if compares else None,
            leaving=_flat(table["leaving"]),
        )
        return pa.Table.from_batches([written_again(number, jobs[number], matches, carried.fitted(table))])

    return lambda key, table: telling(rewritten, key, table)


def written_again(number: int, job: FileToWrite, matches: Matches, rows: pa.Table) -> pa.RecordBatch:
    """A file with these rows in the place of those that they match."""
    staged = Path(f"{job.staged}.{uuid.uuid4().hex}")
    what = Rewrite(file=matches.file, matches=matches, keep_others=job.keep_others, staged=staged, schema=job.schema)
    written = rewrite_file(what, rows.combine_chunks(), LocalStorage(), threads=False)
    return pa.record_batch(
        {
            "file": pa.array([number], pa.int32()),
            "path": [str(staged)],
            "rows": [written.rows],
            "size": [written.size],
        }
    )


def add(new: NewFiles, carried: Columns, sorts: bool) -> Any:
    """The rows of one task as new files."""

    def added(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        mine = uuid.uuid4().hex
        fitted = (carried.fitted(pa.Table.from_batches([batch])) for batch in batches if batch.num_rows)
        first = next(fitted, None)
        if first is None:
            return
        storage = LocalStorage()
        here = replace(new, staging=new.staging / f"new-{mine}", identity=f"{new.identity}-{mine[:12]}")
        storage.make_folders(here.staging)
        if sorts:
            rows: Any = pa.concat_tables([first, *fitted])
        else:
            rows = pa.RecordBatchReader.from_batches(
                first.schema, (b for part in _chain(first, fitted) for b in part.to_batches())
            )
        files = write_new_files(rows, here, storage)
        yield pa.record_batch(
            {
                "name": [f.name for f in files],
                "path": [str(f.written.path) for f in files],
                "rows": [f.written.rows for f in files],
                "size": [f.written.size for f in files],
            }
        )

    return lambda batches: telling_each(added, batches)


def footers(tasks: Sequence[Sequence[str]]) -> Any:
    """The footers of the files of a task."""

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for task in numbers(batches, "id"):
            found = [pickle.dumps(footer) for footer in read_footers(tasks[task])]
            yield pa.record_batch({"task": pa.array([task] * len(found), pa.int64()), "footer": pa.array(found)})

    return lambda batches: telling_each(read, batches)


def opened_footer(packed: bytes) -> pq.FileMetaData:
    return pickle.loads(packed)  # written by our own workers


def numbers(batches: Iterator[pa.RecordBatch], column: str) -> Iterator[int]:
    for batch in batches:
        yield from batch.column(column).to_pylist()


def _chain(first: pa.Table, rest: Iterator[pa.Table]) -> Iterator[pa.Table]:
    yield first
    yield from rest


def _flat(column: pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
