"""Writing small files together into right-sized ones, in an order if one is asked for. No row changes.

The new files are written beside the old ones and swapped in with one commit, which removes no row (`dataChange` is
false): an append never clashes with it, and a merge only where it looked into one of the files. What others changed
meanwhile is left to them: groups of files that are not whole any more are dropped, the others are committed.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lockgate.datasets.entry import DEFAULT_ROW_GROUP_SIZE
from lockgate.datasets.writing import fitted
from lockgate.engines.new_files import write_new_files
from lockgate.errors import ArgumentError, DatasetMergeError, StorageError
from lockgate.merging.protocol import Added, NewFiles
from lockgate.tables.file_differences import rows_of, with_files
from lockgate.tables.ordering import Ordering, in_order
from lockgate.tables.writable import Writable
from lockgate.tables.writing import refuse_changed
from lockgate.targets.delta import DeltaTarget, commit_all
from lockgate.targets.delta_actions import adds_of, described_files, removes_of, uris_of
from lockgate.targets.described import DescribedFile
from lockgate.txlog.commits import Operation, TableCommit
from lockgate.txlog.paths import from_uri
from lockgate.txlog.schema_json import arrow_schema

TARGET_SIZE = 128 * 2**20
_SMALL = 0.75  # of the target size; a larger file is left alone unless rows are to be ordered
_TRIES = 25  # the files are written by then, so that only the commit is tried again


@dataclass(frozen=True)
class CompactResult:
    """What `compact` did. `skipped` counts groups of files that others changed meanwhile."""

    version: int
    files_removed: int = 0
    files_added: int = 0
    bytes_removed: int = 0
    bytes_added: int = 0
    rows: int = 0
    partitions: int = 0
    skipped: int = 0


@dataclass(frozen=True)
class _File:
    described: DescribedFile
    size: int
    modified: int


@dataclass
class _Group:
    """Files of one partition that become others."""

    files: list[_File]
    added: list[Added] = field(default_factory=list)

    @property
    def names(self) -> list[str]:
        return [file.described.name for file in self.files]

    @property
    def partition(self) -> Mapping[str, Any]:
        return self.files[0].described.partition

    @property
    def folder(self) -> str:
        return self.files[0].described.name.rpartition("/")[0]

    @property
    def size(self) -> int:
        return sum(file.size for file in self.files)


def compact_table(
    table: Writable,
    *,
    target_size: int = TARGET_SIZE,
    sort_by: Sequence[str] = (),
    zorder: Sequence[str] = (),
    compression: str | None = None,
    row_group_size: int = DEFAULT_ROW_GROUP_SIZE,
) -> CompactResult:
    """One new version, or none where there is nothing to gain. Memory: row groups of one file; where rows are ordered,
    the columns of the order of one partition and the rows of one new file."""
    if target_size < 1 or row_group_size < 1:
        raise ArgumentError("target_size and row_group_size must be at least 1", in_place="nothing was written")
    target = table.target()
    assert target.snapshot is not None
    schema = arrow_schema(target.snapshot.metadata.schema_string)
    columns = tuple(target.snapshot.metadata.partition_columns)
    ordering = Ordering.of(sort_by, zorder, schema, columns)
    groups = list(_groups(target, target_size, everything=ordering is not None))
    if not groups:
        return CompactResult(target.snapshot.version)
    identity = uuid.uuid4().hex
    with ExitStack() as stack:
        opened = stack.enter_context(target.opened(identity))
        area = opened.staging()
        for number, group in enumerate(groups):
            folder = area / f"group-{number}"
            table.storage.make_scratch_folder(folder)
            _write(target, group, folder, schema, ordering, target_size, compression, row_group_size)
        moves = {added.name: added.written.path for group in groups for added in group.added}
        placed = stack.enter_context(target.placing(moves))

        def change(newest: DeltaTarget) -> CompactResult:
            refuse_changed(newest, target)
            return _committed(newest, groups, placed, ordering, target_size)

        result = table.changed(change, tries=_TRIES)
        _take_back(table, groups, result)
    table.publish()
    return result


def _groups(target: DeltaTarget, target_size: int, *, everything: bool) -> Iterator[_Group]:
    """By partition. Files stay together that were written one after the other."""
    snapshot = target.snapshot
    assert snapshot is not None
    schema = arrow_schema(snapshot.metadata.schema_string)
    described = described_files(snapshot.files, schema, tuple(snapshot.metadata.partition_columns))
    partitions: dict[str, list[_File]] = {}
    for each, size, modified, values in zip(
        described,
        snapshot.files.column("size").to_pylist(),
        snapshot.files.column("modification_time").to_pylist(),
        snapshot.files.column("partition_values").to_pylist(),
        strict=True,
    ):
        if everything or size < target_size * _SMALL:
            partitions.setdefault(values, []).append(_File(each, size, modified))
    for files in partitions.values():
        files.sort(key=lambda f: (f.modified, f.described.name))
        if everything:
            yield _Group(files)
            continue
        group = _Group([])
        for file in files:
            if group.files and group.size + file.size > target_size:
                if len(group.files) > 1:
                    yield group
                group = _Group([])
            group.files.append(file)
        if len(group.files) > 1:
            yield group


def _write(
    target: DeltaTarget,
    group: _Group,
    folder: Path,
    schema: pa.Schema,
    ordering: Ordering | None,
    target_size: int,
    compression: str | None,
    row_group_size: int,
) -> None:
    """Stage the group's new files; they hold exactly its rows."""
    assert target.snapshot is not None
    kept = pa.schema([f for f in schema if f.name not in group.partition])
    uris = pa.array(uris_of(group.names, target.snapshot.files), pa.string())
    numbers = pc.index_in(uris, value_set=target.snapshot.files.column("path").combine_chunks())
    rows = rows_of(with_files(target.snapshot, target.snapshot.files.take(numbers)), schema)
    parts: Iterator[pa.RecordBatchReader]
    if ordering is None:
        parts = iter([rows.scanner(columns=kept.names, batch_readahead=2, fragment_readahead=1).to_reader()])
    else:
        count = max(1, -(-group.size // target_size))
        parts = in_order(rows, kept, ordering, int(count), folder)
    new = NewFiles(
        staging=folder,
        identity="",
        schema=kept,
        partition_columns=(),
        folders={},
        like=None,
        compression=compression,
        max_rows_per_file=2**62,
        row_group_size=row_group_size,
    )
    try:
        for number, part in enumerate(parts):
            inner = folder / f"{number}"
            target.storage.make_scratch_folder(inner)
            for each in write_new_files(fitted(part, kept), replace(new, staging=inner), target.storage):
                if each.written.rows:
                    name = f"part-{uuid.uuid4().hex}-c{number:05d}.parquet"
                    group.added.append(replace(each, name=f"{group.folder}/{name}" if group.folder else name))
    except FileNotFoundError as error:
        raise StorageError(
            f"a file of {target.name} is gone: {error}",
            in_place="nothing was written",
            hint="`lockgate table restore` brings a version back whose files are there",
        ) from error
    except (OSError, pa.ArrowException) as error:
        raise DatasetMergeError(
            f"files of {target.name} cannot be written together: {str(error).splitlines()[0]}", files=group.names
        ) from error
    told = [file.described.rows for file in group.files]
    written = sum(each.written.rows for each in group.added)
    if None not in told and written != sum(n for n in told if n is not None):
        raise DatasetMergeError(
            f"files of {target.name} hold {written:,} rows, and the log says {sum(n for n in told if n is not None):,}",
            files=group.names,
        )


def _committed(
    newest: DeltaTarget, groups: Sequence[_Group], placed: Any, ordering: Ordering | None, target_size: int
) -> CompactResult:
    snapshot = newest.snapshot
    assert snapshot is not None
    assert newest.log is not None
    live = {from_uri(path) for path in snapshot.files.column("path").to_pylist()}
    whole = [group for group in groups if live.issuperset(group.names)]
    skipped = len(groups) - len(whole)
    if not whole:
        return CompactResult(snapshot.version, skipped=skipped)
    files = {added.name: newest.root / added.name for group in whole for added in group.added}
    partitions = {added.name: group.partition for group in whole for added in group.added}
    schema = arrow_schema(snapshot.metadata.schema_string)
    made = adds_of(files, partitions, snapshot.metadata, schema, new_rows=False)
    adds = [replace(add, data_change=False) for add in made]
    names = [name for group in whole for name in group.names]
    removes = [replace(r, data_change=False) for r in removes_of(names, snapshot.files)]
    result = CompactResult(
        version=snapshot.version,
        files_removed=len(removes),
        files_added=len(adds),
        bytes_removed=sum(group.size for group in whole),
        bytes_added=sum(add.size for add in adds),
        rows=sum(added.written.rows for group in whole for added in group.added),
        partitions=len({tuple(group.partition.items()) for group in whole}),
        skipped=skipped,
    )
    commit = TableCommit(
        newest.name,
        None,
        [*removes, *adds],
        operation=Operation(
            "OPTIMIZE",
            {
                "targetSize": target_size,
                "zOrderBy": list(ordering.columns) if ordering and ordering.is_zorder else [],
                "sortBy": list(ordering.columns) if ordering and not ordering.is_zorder else [],
            },
            {
                "numRemovedFiles": result.files_removed,
                "numAddedFiles": result.files_added,
                "numRemovedBytes": result.bytes_removed,
                "numAddedBytes": result.bytes_added,
                "partitionsOptimized": result.partitions,
            },
        ),
        read_version=snapshot.version,
    )
    version = commit_all(newest.log, [commit], [placed], txn_id=uuid.uuid4().hex)[newest.name]
    for group in groups:
        if group not in whole:
            group.files = []
    return replace(result, version=version)


def _take_back(table: Writable, groups: Sequence[_Group], result: CompactResult) -> None:
    """Files of groups that were dropped are of no version, and known to be."""
    for group in groups:
        if result.files_added == 0 or not group.files:
            for added in group.added:
                table.storage.remove(table.folder / added.name)
