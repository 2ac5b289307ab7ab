"""The footers of Parquet files: read side by side, and what they say about columns."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow.parquet.core import ParquetReader

from lockgate.errors import DatasetMergeError
from lockgate.merging.column_statistics import column_statistics
from lockgate.merging.filesystems import arrow_filesystem
from lockgate.merging.listing import dataset_file_names, joined
from lockgate.merging.partitions import parse_hive_partition_path

_PATHS_A_TASK = 32  # handing over one path at a time costs more than reading it


def read_footers(
    paths: Sequence[str], *, names: Sequence[str] | None = None, filesystem: Any = None
) -> list[pq.FileMetaData]:
    """The footer of every file, in the order of `paths`; `names` are what an error calls them.

    >>> import tempfile
    >>> path = tempfile.mkdtemp() + "/a.parquet"
    >>> pq.write_table(pa.table({"id": [1, 2]}), path)
    >>> [footer.num_rows for footer in read_footers([path])]
    [2]
    """
    called = paths if names is None else names
    remote = arrow_filesystem(filesystem)

    def read(first: int) -> list[pq.FileMetaData]:
        last = min(first + _PATHS_A_TASK, len(paths))
        return [_footer(paths[i], called[i], remote) for i in range(first, last)]

    starts = range(0, len(paths), _PATHS_A_TASK)
    if len(starts) <= 1:
        return [footer for start in starts for footer in read(start)]
    # More threads than cores pay off where a read waits for a network, and cost where it waits for the interpreter.
    workers = 16 if remote else max(2, min(8, os.cpu_count() or 2))
    with ThreadPoolExecutor(workers, thread_name_prefix="footers") as pool:
        try:
            return [footer for part in pool.map(read, starts) for footer in part]
        except BaseException:
            pool.shutdown(wait=True, cancel_futures=True)
            raise


def _footer(path: str, name: str, remote: Any) -> pq.FileMetaData:
    # The reader that ParquetFile and read_metadata wrap: a footer takes half their time.
    reader = ParquetReader()
    try:
        reader.open(remote.open_input_file(path) if remote else os.fspath(path), use_memory_map=False)
        try:
            return reader.metadata
        finally:
            reader.close()
    except (OSError, ValueError, pa.ArrowException) as error:
        raise _unreadable(path, name, error) from error


def _unreadable(path: str, name: str, error: Exception) -> DatasetMergeError:
    if isinstance(error, FileNotFoundError):
        reason, hint = "it is gone", "another writer may have removed it; try again"
    elif isinstance(error, PermissionError):
        reason, hint = "permission denied", "let this user read it"
    else:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        hint = "restore the file from a copy, or move it out of the dataset if it is no data of it"
    return DatasetMergeError(f"cannot read {name} as a Parquet file: {reason}", files=(path,), hint=hint)


def leaf_index(schema: pq.ParquetSchema, column: str) -> int | None:
    """Where the top-level column of that name is among the leaves; None if it is nested, repeated, or not there.

    >>> import io
    >>> file = io.BytesIO()
    >>> pq.write_table(pa.table({"s": [{"id": 1}], "id": [2]}), file)
    >>> leaf_index(pq.read_metadata(file).schema, "id")
    1
    """
    found = [index for index, name in top_level_leaves(schema) if name == column]
    return found[0] if len(found) == 1 else None


def top_level_leaves(schema: pq.ParquetSchema) -> Iterator[tuple[int, str]]:
    """The leaves that are columns of their own, with their names."""
    for index in range(len(schema)):
        leaf = schema.column(index)
        name = leaf.name
        # A leaf s.id has the name id; a column that is called "s.id" has its whole path for a name.
        if leaf.path == name and leaf.max_repetition_level == 0:
            yield index, name


@dataclass
class ParquetFileMetadata:
    """What a file's footer and folder say. `min` and `max` of a column are None where they are not known."""

    path: str
    row_group_count: int
    total_rows: int
    column_stats: dict[str, dict[str, Any]]  # top-level column -> {min, max, null_count}
    partition_values: dict[str, Any] | None = None


class ParquetMetadataAnalyzer:
    """Reads the metadata of a dataset's files for planning."""

    def analyze_dataset_files(self, dataset_path: str, filesystem: Any = None) -> list[ParquetFileMetadata]:
        """The metadata of every data file under `dataset_path`, sorted by path.

        >>> import tempfile
        >>> path = tempfile.mkdtemp()
        >>> pq.write_table(pa.table({"id": [1, 2]}), f"{path}/a.parquet")
        >>> ParquetMetadataAnalyzer().analyze_dataset_files(path)[0].column_stats
        {'id': {'min': 1, 'max': 2, 'null_count': 0}}
        """
        names = dataset_file_names(dataset_path, filesystem)
        paths = [joined(dataset_path, name) for name in names]
        footers = read_footers(paths, filesystem=filesystem)
        return [
            ParquetFileMetadata(
                path=path,
                row_group_count=footer.num_row_groups,
                total_rows=footer.num_rows,
                column_stats={c: column_statistics(footer, i) for i, c in top_level_leaves(footer.schema)},
                partition_values=parse_hive_partition_path(name) or None,
            )
            for path, name, footer in zip(paths, names, footers, strict=True)
        ]
