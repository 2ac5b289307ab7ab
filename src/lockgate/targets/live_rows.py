"""Files of a Delta table of which some rows are deleted: the rows that live, and copies that hold only them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lockgate.errors import DamagedLog, StorageError
from lockgate.storage.local import LocalStorage, explained
from lockgate.txlog.action_json import vector_from
from lockgate.txlog.deletion_vectors import deleted_rows
from lockgate.txlog.paths import from_uri

_INT96 = "INT96"


def vectors_of(files: pa.Table) -> dict[str, str]:
    """The deletion vectors of a snapshot's files, as the log has them, by the names of the files."""
    texts = files.column("deletion_vector")
    if texts.null_count == len(texts):
        return {}
    return {
        from_uri(path): text
        for path, text in zip(files.column("path").to_pylist(), texts.to_pylist(), strict=True)
        if text is not None
    }


def cardinality(text: str) -> int:
    """How many rows a deletion vector deletes."""
    return vector_from(json.loads(text)).cardinality


def deleted_positions(text: str, root: Path) -> pa.Array:
    """The positions in its file of the rows that a deletion vector of the table at `root` deletes, ascending."""
    return deleted_rows(vector_from(json.loads(text)), _reader(root))


def live_mask(deleted: pa.Array, start: int, rows: int) -> pa.Array:
    """Which of the rows from `start` on live.

    >>> live_mask(pa.array([0, 5]), 4, 3).to_pylist()
    [True, False, True]
    """
    return pc.invert(pc.is_in(pa.arange(start, start + rows), value_set=deleted))


def refuse_more(deleted: pa.Array, rows: int, name: str) -> None:
    """A vector that deletes rows behind the file's end belongs to another file."""
    if len(deleted) and deleted[-1].as_py() >= rows:
        raise DamagedLog(
            f"the deletion vector of {name} deletes row {deleted[-1].as_py()}, and the file has {rows}",
            in_place=None,
        )


def write_live_copy(source: Path, text: str, root: Path, copy: Path, storage: LocalStorage) -> Path:
    """Write the rows of a file that live to `copy`, in their order, in row groups and compression as before."""
    deleted = deleted_positions(text, root)
    try:
        with pq.ParquetFile(source) as file:
            refuse_more(deleted, file.metadata.num_rows, source.name)
            with explained("write", copy):
                _write(file, deleted, copy)
    except FileNotFoundError as error:
        raise StorageError(f"a file of the table is gone: {source}", hint="restore it from a copy") from error
    except pa.ArrowException as error:
        raise StorageError(f"{source} cannot be read: {str(error).splitlines()[0]}") from error
    storage.keep_attributes(source, copy)
    return copy


def _write(file: pq.ParquetFile, deleted: pa.Array, copy: Path) -> None:
    columns = range(file.metadata.num_columns)
    first = file.metadata.row_group(0) if file.metadata.num_row_groups else None
    old_times = any(file.schema.column(i).physical_type == _INT96 for i in columns)
    with pq.ParquetWriter(
        copy,
        file.schema_arrow,
        compression=first.column(0).compression.lower() if first and columns else "snappy",
        use_deprecated_int96_timestamps=old_times,
    ) as out:
        for rows in _live_groups(file, deleted):
            if rows.num_rows:
                out.write_table(rows, row_group_size=rows.num_rows)


def _live_groups(file: pq.ParquetFile, deleted: pa.Array) -> Iterator[pa.Table]:
    start = 0
    for number in range(file.num_row_groups):
        rows = file.read_row_group(number)
        yield rows.filter(live_mask(deleted, start, rows.num_rows))
        start += rows.num_rows


def _reader(root: Path) -> Callable[[str], bytes]:
    def read(name: str) -> bytes:
        path = root / name
        try:
            status = path.stat()
            return _content(str(path), status.st_size, status.st_mtime_ns)
        except OSError as error:
            raise StorageError(
                f"the deletion vector {path} cannot be read: {error.strerror or error}",
                hint="restore it from a copy of the table",
            ) from error

    return read


@lru_cache(maxsize=4)
def _content(path: str, *told: Any) -> bytes:
    """One file holds the vectors of many data files."""
    del told
    return Path(path).read_bytes()
