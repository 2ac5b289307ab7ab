"""An existing Delta table as its `_delta_log` tells it: every version that can still be read."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol as Interface

import pyarrow as pa
import pyarrow.compute as pc

from lockgate.errors import DamagedLog, SchemaMismatchError
from lockgate.txlog.action_json import vector_from
from lockgate.txlog.column_mapping import physical_names
from lockgate.txlog.deletion_vectors import file_of
from lockgate.txlog.existing_checkpoints import CheckpointState, read_checkpoint
from lockgate.txlog.existing_commits import CommitBatch, ExistingCommit, read_commits
from lockgate.txlog.existing_files import ADDS, REMOVES
from lockgate.txlog.existing_intervals import LIVE, with_removed_version
from lockgate.txlog.existing_listing import LogFile, LogListing, ReadableVersions, readable_versions, sorted_out
from lockgate.txlog.existing_paths import check_paths
from lockgate.txlog.partition_values import partition_value
from lockgate.txlog.schema_json import arrow_schema
from lockgate.txlog.statistics import row_count
from lockgate.txlog.table_features import require_supported


class LogFolder(Interface):
    """Somebody's `_delta_log`. Names of files in a folder of it have a `/` in them."""

    where: str  # as a message names it

    def names(self) -> Sequence[tuple[str, int, int]]:
        """Name, size, and time of the last change in milliseconds, of each file."""
        ...

    def read(self, name: str) -> bytes: ...


@dataclass(frozen=True)
class ExistingTable:
    """All that the log says. `adds` has a column `removed_version`."""

    first: int
    last: int
    commits: Sequence[ExistingCommit]  # one a version, from `first` to `last`
    adds: pa.Table
    removes: pa.Table
    notes: tuple[str, ...] = field(default=())

    @property
    def live_files(self) -> int:
        return int(pc.sum(pc.equal(self.adds.column("removed_version"), LIVE)).as_py() or 0)


def read_existing(folder: LogFolder, *, progress: Callable[[int], None] | None = None) -> ExistingTable:
    """Read the log of a Delta table; refuses what is damaged and what Lockgate does not know."""
    listing = sorted_out((LogFile(*each) for each in folder.names()), folder.where)
    versions = readable_versions(listing, folder.where)
    _check_last_checkpoint(folder, versions)
    commits: list[ExistingCommit] = []
    adds: list[pa.Table] = [ADDS.empty_table()]
    removes: list[pa.Table] = [REMOVES.empty_table()]
    base = None
    first = versions.first
    if versions.base is not None:
        base = read_checkpoint(versions.base, folder.read, folder.where)
        require_supported(base.protocol, base.metadata, folder.where)
        commits.append(_base_commit(base, listing, folder))
        adds.append(base.adds)
        removes.append(base.tombstones)
        first += 1
    files = [listing.commits[version] for version in range(first, versions.last + 1)]
    checks = _Checks(folder.where, base)
    for batch in read_commits(
        files,
        first,
        folder.read,
        folder.where,
        before=commits[0].timestamp if commits else -1,
        metadata=base.metadata if base else None,
    ):
        checks.check(batch)
        commits += batch.commits
        adds.append(batch.adds)
        removes.append(batch.removes)
        if progress:
            progress(len(commits))
    all_adds, all_removes = pa.concat_tables(adds), pa.concat_tables(removes)
    for table in (all_adds, all_removes):
        for chunk in table.column("path").chunks:
            check_paths(chunk.to_pylist(), folder.where)
    if pc.any(pc.match_substring(all_adds.column("stats"), "\0")).as_py():
        raise DamagedLog(f"{folder.where} has a file whose statistics hold the character NUL")
    _check_vectors(all_adds, folder.where)
    found = with_removed_version(all_adds, all_removes, folder.where)
    table = ExistingTable(versions.first, versions.last, commits, found, all_removes)
    _check_values(table, folder.where)
    _check_checksum(folder, listing, table)
    return replace(table, notes=tuple(_notes(versions)))


class _Checks:
    """What must hold of protocol and metadata at every version."""

    def __init__(self, where: str, base: CheckpointState | None) -> None:
        self._where = where
        self._protocol = base.protocol if base else None
        self._metadata = base.metadata if base else None

    def check(self, batch: CommitBatch) -> None:
        for commit in batch.commits:
            if commit.protocol is None and commit.metadata is None and self._protocol and self._metadata:
                continue
            self._protocol = commit.protocol or self._protocol
            self._metadata = commit.metadata or self._metadata
            if self._protocol is None or self._metadata is None:
                missing = "protocol" if self._protocol is None else "metaData"
                raise DamagedLog(f"{self._where}: version {commit.version} comes before any {missing} action")
            require_supported(self._protocol, self._metadata, self._where)


def _base_commit(base: CheckpointState, listing: LogListing, folder: LogFolder) -> ExistingCommit:
    """The first version, whose state is the checkpoint's; its own commit says when it was, and by whom."""
    state = {
        "protocol": base.protocol,
        "metadata": base.metadata,
        "transactions": base.transactions,
        "domains": base.domains,
    }
    file = listing.commits.get(base.version)
    if file is None:
        written = listing.checkpoints[base.version][0].files[0].modified
        return ExistingCommit(base.version, written, (), {}, **state)  # type: ignore[arg-type]
    (batch,) = read_commits([file], base.version, folder.read, folder.where, metadata=base.metadata)
    unknown = pc.is_in(batch.adds.column("path"), value_set=base.adds.column("path").combine_chunks())
    if batch.adds.num_rows and not pc.all(unknown).as_py():
        raise DamagedLog(
            f"{folder.where}: the checkpoint of version {base.version} lacks files that its commit added",
            hint="the checkpoint belongs to another table or is cut; remove it if the log has a newer one",
        )
    return replace(batch.commits[0], **state)  # type: ignore[arg-type]


def _check_last_checkpoint(folder: LogFolder, versions: ReadableVersions) -> None:
    """`_last_checkpoint` is a hint that may be old; but it never runs ahead of a log that is whole."""
    try:
        said = json.loads(folder.read("_last_checkpoint"))
        version = said.get("version") if isinstance(said, dict) else None
    except (DamagedLog, ValueError, RecursionError):
        return  # missing, or cut by a writer that died: readers list the folder then, as this one does anyway
    if type(version) is int and version > versions.last:
        raise DamagedLog(
            f"{folder.where}/_last_checkpoint speaks of version {version}, and the newest version there is "
            f"{versions.last}; the end of the log is missing",
            hint="restore the missing files from a copy of the table",
        )


def _check_vectors(adds: pa.Table, where: str) -> None:
    """Files of deletion vectors lie in the table as data files do; files with a vector tell how many rows they have."""
    vectors = adds.column("deletion_vector")
    if vectors.null_count == len(vectors):
        return
    some = adds.filter(pc.is_valid(vectors)).select(["path", "stats", "deletion_vector"]).to_pylist()
    files: dict[str, None] = {}
    for row in some:
        file = file_of(vector_from(json.loads(row["deletion_vector"])))
        if file is not None:
            files[file] = None
        if row_count(row["stats"]) is None:
            raise DamagedLog(f"{where} does not tell how many rows {row['path']!r} has, which has a deletion vector")
    check_paths(files, where)


def _check_values(table: ExistingTable, where: str) -> None:
    """Partition values of live files must be values of their columns; few differ, so each is read once."""
    metadata = next(commit.metadata for commit in reversed(table.commits) if commit.metadata is not None)
    schema, names = arrow_schema(metadata.schema_string), physical_names(metadata)
    live = table.adds.filter(pc.equal(table.adds.column("removed_version"), LIVE))
    for text in pc.unique(live.column("partition_values")).to_pylist():
        values = json.loads(text)
        for column in metadata.partition_columns:
            try:
                partition_value(values.get(names[column]), schema.field(column).type, column)
            except (SchemaMismatchError, ValueError) as error:
                raise DamagedLog(f"{where} has a file with the partition values {text}: {error}") from error


def _notes(versions: ReadableVersions) -> list[str]:
    if versions.first == 0:
        return []
    gone = f"versions before {versions.first} cannot be read any more: their commits were cleaned up"
    return [f"{gone}; the history begins with the checkpoint of version {versions.first}"]


def _check_checksum(folder: LogFolder, listing: LogListing, table: ExistingTable) -> None:
    """The writer's own count of files, where it left one for the newest version."""
    file = listing.checksums.get(table.last)
    if file is None:
        return
    try:
        said = json.loads(folder.read(file.name))
        files = said.get("numFiles") if isinstance(said, dict) else None
    except (DamagedLog, ValueError, RecursionError):
        return
    if type(files) is int and files != table.live_files:
        raise DamagedLog(
            f"{folder.where}/{file.name} says that version {table.last} has {files} files, "
            f"and the log's actions give {table.live_files}",
            hint=f"if other readers show the right rows, remove {file.name} and import again",
        )
