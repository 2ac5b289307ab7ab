"""What the tasks of a write leave in its staging area: a Parquet file for each attempt that had rows."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql.datasource import WriterCommitMessage

from lockgate.errors import StageError
from lockgate.merging.schema import fit
from lockgate.storage.local import LocalStorage, explained
from lockgate.storage.staging import touch

_ROWS_AT_ONCE = 100_000  # of a row group; Spark hands over fewer at a time
_BYTES_AT_ONCE = 64 * 2**20
_SHARE = "put the dataset on a filesystem that Spark's driver and all its workers see under the same path"


@dataclass(frozen=True)
class StagedPart(WriterCommitMessage):  # type: ignore[misc]
    """What an attempt tells of itself. Rows of attempts that Spark does not choose are never read."""

    name: str | None  # None: it had no rows
    rows: int


def write_part(batches: Iterable[pa.RecordBatch], schema: pa.Schema, shared: Path, storage: LocalStorage) -> StagedPart:
    """Stream the rows of one attempt into a file that no other attempt has the name of."""
    if not shared.is_dir():
        raise StageError(f"a Spark task cannot see the folder {shared}, in which it is to stage its rows", hint=_SHARE)
    tables = (fit(table, schema) for table in _gathered(batches))
    first = next(tables, None)
    if first is None:
        return StagedPart(None, 0)
    name, rows = f"{uuid.uuid4().hex}.parquet", 0
    with storage.create(shared / name) as file, pq.ParquetWriter(file, schema) as writer:
        for table in chain([first], tables):
            writer.write_table(table)
            rows += table.num_rows
            touch(shared)
    return StagedPart(name, rows)


def _gathered(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    held: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        if not batch.num_rows:
            continue
        held.append(batch)
        rows, size = rows + batch.num_rows, size + batch.nbytes
        if rows >= _ROWS_AT_ONCE or size >= _BYTES_AT_ONCE:
            yield pa.Table.from_batches(held)
            held, rows, size = [], 0, 0
    if held:
        yield pa.Table.from_batches(held)


def read_parts(parts: Sequence[StagedPart], schema: pa.Schema, area: Path) -> pa.RecordBatchReader:
    """The rows of these parts, in Spark's order of them. Every file is looked at before the first row is read."""
    files = [(area / part.name, part.rows) for part in parts if part.name]
    missing = [path for path, rows in files if not path.is_file() or _rows(path) != rows]
    if missing:
        raise StageError(
            f"Spark's driver cannot see {len(missing)} of the {len(files)} files that tasks have staged",
            in_place="nothing was written",
            hint=_SHARE,
        )
    return pa.RecordBatchReader.from_batches(schema, _read([path for path, _ in files], schema))


def _rows(path: Path) -> int:
    with explained("read", path), path.open("rb") as file:
        return int(pq.ParquetFile(file).metadata.num_rows)


def _read(paths: Sequence[Path], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    for path in paths:
        with explained("read", path), path.open("rb") as file:
            for batch in pq.ParquetFile(file).iter_batches():
                yield from fit(pa.Table.from_batches([batch]), schema).to_batches()
