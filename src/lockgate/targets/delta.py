"""A Delta table as the target of merges and writes: its log says which files it has, and a commit changes that at once.

Files are never changed in place: one that is written again gets a fresh name, beside the old one, which leaves the
table and stays on disk for readers of older versions.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lockgate.errors import LockgateError, StorageError
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
)
from lockgate.targets.described import NOTHING_TO_SAY, ChangeDetails, Described, renamed
from lockgate.txlog.actions import Action, Metadata
from lockgate.txlog.commits import Operation, TableCommit
from lockgate.txlog.paths import as_uri
from lockgate.txlog.schema_json import arrow_schema, held_schema

if TYPE_CHECKING:
    from lockgate.txlog.reader import Snapshot
    from lockgate.txlog.writer import TxnLogWriter

log = logging.getLogger("lockgate.merge")

_NOTHING = "nothing was written"


@dataclass(frozen=True)
class PlacedChange:
    """A change whose files are in the table's folder, durable, and not yet of the table."""

    commit: TableCommit
    files: tuple[Path, ...]

    def take_back(self, storage: LocalStorage) -> None:
        """Remove the files again. Only where it is known that the commit did not happen."""
        for file in self.files:
            try:
                storage.remove(file)
            except StorageError as error:  # no reader looks at it; `vacuum` removes it
                log.warning("a file that belongs to no version could not be removed: %s", error)


class DeltaTarget:
    """One table of a log. `snapshot` is the version that changes are made for; None: there is no table yet."""

    def __init__(
        self, root: Path, name: str, txn_log: TxnLogWriter, storage: LocalStorage, *, snapshot: Snapshot | None
    ) -> None:
        self.root = root
        self.name = name
        self.log = txn_log
        self.storage = storage
        self.snapshot = snapshot

    def exists(self) -> bool:
        return self.snapshot is not None

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

    def files(self) -> list[str]:
        described = self.described()
        return [file.name for file in described.files]

    def described(self) -> Described:
        snapshot = self.target.snapshot
        if snapshot is None:
            return Described(None, (), (), held_schema)
        schema = arrow_schema(snapshot.metadata.schema_string)
        columns = tuple(snapshot.metadata.partition_columns)
        return Described(schema, columns, described_files(snapshot.files, schema, columns), held_schema)

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
        placed = self.place(moves, removes, details)
        return commit_placed(self.target.log, [placed], self.target.storage, txn_id=self.identity)[self.target.name]

    def place(self, moves: Mapping[str, Path], removes: Iterable[str], details: ChangeDetails) -> PlacedChange:
        """Give the staged files their names in the table's folder, durably. No version has them yet."""
        root, storage = self.target.root, self.target.storage
        placed: list[Path] = []
        try:
            for name, staged in moves.items():
                final = root / name
                storage.make_folders(final.parent)
                if not storage.resolves_inside(final, root):
                    raise StorageError(
                        f"a link leads {final.parent} out of the table {root}",
                        in_place=_NOTHING,
                        hint="remove the link, then write again",
                    )
                storage.replace(staged, final)
                placed.append(final)
            for folder in sorted({file.parent for file in placed}):
                storage.fsync_folder(folder)
            commit = self._commit(list(moves), list(removes), details)
        except BaseException:
            PlacedChange(TableCommit(self.target.name), tuple(placed)).take_back(storage)
            raise
        return PlacedChange(commit, tuple(placed))

    def _commit(self, names: Sequence[str], removes: Sequence[str], details: ChangeDetails) -> TableCommit:
        snapshot = self.target.snapshot
        actions = self._schema_actions(details)
        metadata = next((a for a in actions if isinstance(a, Metadata)), snapshot.metadata if snapshot else None)
        assert metadata is not None, "a table that is made has its metadata in the same commit"
        schema = arrow_schema(metadata.schema_string)
        if snapshot is not None:
            actions += removes_of(removes, snapshot.files)
        actions += adds_of(names, self.target.root, details.partitions, metadata, schema)
        read = None
        if snapshot is not None and details.read is not None:
            read = [as_uri(name) for name in details.read]
        return TableCommit(
            self.target.name,
            None if snapshot is not None else 0,
            actions,
            operation=Operation(details.operation, dict(details.parameters)),
            read_version=snapshot.version if snapshot is not None else None,
            read_files=read,
            read_table=details.read_all and snapshot is not None,
        )

    def _schema_actions(self, details: ChangeDetails) -> list[Action]:
        snapshot, schema = self.target.snapshot, details.schema
        if snapshot is not None:
            return [] if schema is None else schema_actions(schema, snapshot.metadata, snapshot.protocol)
        assert schema is not None, "a table that is made has the schema of its rows"
        return first_actions(schema, details.partition_columns)

    def close(self) -> None:
        """Discard what was staged; what cannot be discarded now is swept by the next writer."""
        if self._area is None:
            return
        try:
            self._area.discard()
        except StorageError as error:
            log.warning("staged files could not be removed, the next write will: %s", error)
        self._area = None


def commit_placed(
    txn_log: TxnLogWriter, changes: Sequence[PlacedChange], storage: LocalStorage, *, txn_id: str
) -> dict[str, Any]:
    """Commit changes of several tables, all at once. Where that certainly failed, their files go again; where nobody
    knows, they stay."""
    from lockgate.errors import CommitStateUnknown

    try:
        return dict(txn_log.commit_many([change.commit for change in changes], txn_id=txn_id))
    except CommitStateUnknown:
        raise
    except LockgateError:
        for change in changes:
            change.take_back(storage)
        raise
