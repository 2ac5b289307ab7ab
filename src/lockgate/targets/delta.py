"""A Delta table as the target of merges and writes: its log says which files it has, and a commit changes that at once.

Files are never changed in place: one that is written again gets a fresh name, beside the old one, which leaves the
table and stays on disk for readers of older versions.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from lockgate.errors import CommitStateUnknown, LockgateError, StorageError
from lockgate.storage import staging as staging_areas
from lockgate.storage.local import LocalStorage
from lockgate.storage.staging import StagingArea
from lockgate.targets.delta_actions import (
    adds_of,
    described_files,
    first_actions,
    refuse_rules,
    removes_of,
    schema_actions,
    uris_of,
)
from lockgate.targets.delta_files import PlacedFiles
from lockgate.targets.described import NOTHING_TO_SAY, ChangeDetails, Described, renamed
from lockgate.targets.live_rows import vectors_of, write_live_copy
from lockgate.txlog.actions import Action, Add, Metadata
from lockgate.txlog.commits import Note, Operation, TableCommit
from lockgate.txlog.paths import from_uri
from lockgate.txlog.schema_json import arrow_schema, held_schema

if TYPE_CHECKING:
    from lockgate.txlog.records import Snapshot
    from lockgate.txlog.writer import TxnLogWriter

log = logging.getLogger("lockgate.merge")

_NOTHING = "nothing was written"


class DeltaTarget:
    """One table of a log. `snapshot` is the version that changes are made for; None: there is no table yet. Without a
    log changes can be planned, and not committed."""

    def __init__(
        self, root: Path, name: str, txn_log: TxnLogWriter | None, storage: LocalStorage, *, snapshot: Snapshot | None
    ) -> None:
        self.root = root
        self.name = name
        self.log = txn_log
        self.storage = storage
        self.snapshot = snapshot

    def exists(self) -> bool:
        return self.snapshot is not None

    def described(self) -> Described:
        """What the log says of the table."""
        snapshot = self.snapshot
        if snapshot is None:
            return Described(None, (), (), held_schema)
        schema = arrow_schema(snapshot.metadata.schema_string)
        columns = tuple(snapshot.metadata.partition_columns)
        return Described(schema, columns, described_files(snapshot.files, schema, columns), held_schema)

    def files(self) -> list[str]:
        """The names of its files."""
        return [] if self.snapshot is None else [from_uri(p) for p in self.snapshot.files.column("path").to_pylist()]

    @contextmanager
    def placing(self, moves: Mapping[str, Path]) -> Iterator[PlacedFiles]:
        """Give staged files their names in the table's folder, durably. No version has them yet. They go again if the
        block fails, unless they are to be kept."""
        placed = PlacedFiles(self.root, self.storage)
        try:
            placed.take(moves)
            yield placed
        except BaseException:
            placed.take_back()
            raise

    def commit_of(self, files: Mapping[str, Path], removes: Sequence[str], details: ChangeDetails) -> TableCommit:
        """What the log is asked for: files join under these names, others leave, and the schema becomes this one.
        The files are written, wherever they are now."""
        snapshot = self.snapshot
        actions = self._schema_actions(details)
        metadata = next((a for a in actions if isinstance(a, Metadata)), snapshot.metadata if snapshot else None)
        assert metadata is not None, "a table that is made has its metadata in the same commit"
        schema = arrow_schema(metadata.schema_string)
        return self.commit_with(adds_of(files, details.partitions, metadata, schema), removes, details)

    def commit_with(self, adds: Sequence[Add], removes: Sequence[str], details: ChangeDetails) -> TableCommit:
        """The same for files whose actions are made already."""
        snapshot = self.snapshot
        actions = self._schema_actions(details)
        read = None
        if snapshot is not None:
            actions += removes_of(removes, snapshot.files)
            read = None if details.read is None else uris_of(details.read, snapshot.files)
        actions += adds
        return TableCommit(
            self.name,
            None if snapshot is not None else 0,
            actions,
            operation=Operation(details.operation, dict(details.parameters), dict(details.metrics)),
            read_version=snapshot.version if snapshot is not None else None,
            read_files=read,
            read_table=details.read_all and snapshot is not None,
        )

    def _schema_actions(self, details: ChangeDetails) -> list[Action]:
        snapshot, schema = self.snapshot, details.schema
        if snapshot is not None:
            if schema is None:
                return []
            columns = details.partition_columns if details.replaces_schema else None
            return schema_actions(schema, snapshot.metadata, snapshot.protocol, columns)
        assert schema is not None, "a table that is made has the schema of its rows"
        return first_actions(schema, details.partition_columns)

    @contextmanager
    def opened(self, identity: str, *, dry_run: bool = False, staging: Path | None = None) -> Iterator[OpenDelta]:
        """The table for one change. Others may change it meanwhile: the log tells when this one commits."""
        table = OpenDelta(self, identity, staging)
        if self.snapshot is not None and not dry_run:
            refuse_rules(self.snapshot.metadata)
        try:
            yield table
        except LockgateError as error:
            if error.in_place is None:
                error.in_place = _NOTHING
            raise
        finally:
            table.close()


@dataclass
class OpenDelta:
    """What a merge sees of the table."""

    target: DeltaTarget
    identity: str
    given: Path | None = None  # a folder in somebody's own staging area
    _area: StagingArea | None = None
    _copies: int = 0

    def files(self) -> list[str]:
        return self.target.files()

    def described(self) -> Described:
        described, snapshot = self.target.described(), self.target.snapshot
        vectors = vectors_of(snapshot.files) if snapshot is not None else {}
        if not vectors:
            return described
        files = [
            replace(file, live_copy=partial(self._live_copy, file.name, vectors[file.name]))
            if file.name in vectors
            else file
            for file in described.files
        ]
        return replace(described, files=files)

    def _live_copy(self, name: str, vector: str) -> Path:
        """The file without its deleted rows, among what is staged."""
        self._copies += 1
        copy = self.staging() / f"live-{self._copies:05d}.parquet"
        return write_live_copy(self.target.root / name, vector, self.target.root, copy, self.target.storage)

    def name_when_rewritten(self, name: str, number: int) -> str:
        return renamed(name, self.identity, number)

    def path_of(self, name: str) -> str:
        return str(self.target.root / name)

    def staging(self) -> Path:
        storage, root = self.target.storage, self.target.root
        if self.given is not None:
            if not self.given.is_dir():
                storage.make_scratch_folder(self.given)
            return self.given
        if self._area is None:
            storage.make_folders(root)
            with suppress(StorageError):  # what dead writers left is in nobody's way
                staging_areas.sweep(storage, root)
            self._area = StagingArea.create(storage, root, self.identity)
        return self._area.path

    def commit(
        self, moves: Mapping[str, Path], removes: Iterable[str], details: ChangeDetails = NOTHING_TO_SAY
    ) -> int | None:
        target = self.target
        assert target.log is not None, "a table that is only looked at is not committed to"
        with target.placing(moves) as placed:
            commit = target.commit_of({name: target.root / name for name in moves}, list(removes), details)
            return commit_all(target.log, [commit], [placed], txn_id=self.identity)[target.name]

    def close(self) -> None:
        """Discard what was staged; what cannot be discarded now is swept by the next writer."""
        if self._area is None:
            return
        try:
            self._area.discard()
        except StorageError as error:
            log.warning("staged files could not be removed, the next write will: %s", error)
        self._area = None


def commit_all(
    txn_log: TxnLogWriter,
    commits: Sequence[TableCommit],
    placed: Iterable[PlacedFiles],
    *,
    txn_id: str,
    notes: Sequence[Note] = (),
) -> dict[str, int]:
    """Commit changes of several tables, all at once. Where nobody knows whether that happened, their files stay."""
    try:
        return txn_log.commit_many(commits, txn_id=txn_id, notes=notes)
    except LockgateError as error:
        if isinstance(error, CommitStateUnknown):
            _keep_all(placed)
        raise
    except BaseException:
        _keep_all(placed)  # interrupted somewhere on the way
        raise


def _keep_all(placed: Iterable[PlacedFiles]) -> None:
    for files in placed:
        files.keep()
