"""Bringing a table back to what it was: a new version with the files of an old one."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from lockgate.errors import StorageError
from lockgate.storage.local import explained
from lockgate.tables.file_differences import files_of, only_in
from lockgate.tables.writable import Writable
from lockgate.targets.delta_actions import removes_of
from lockgate.txlog.action_json import vector_from
from lockgate.txlog.actions import Action, Add, Metadata
from lockgate.txlog.commits import Operation
from lockgate.txlog.paths import from_uri
from lockgate.txlog.reading_features import BOTH
from lockgate.txlog.retention import needed_files, oldest_kept

if TYPE_CHECKING:
    from lockgate.txlog.records import Snapshot

# The whole table is decided upon, so any other commit makes it decide again; that is quick, so it tries for long.
_TRIES = 25
_SHOWN = 5


@dataclass(frozen=True)
class RestoreResult:
    """What `restore` did. `version` is the new version, or the current one where nothing differed."""

    version: int
    restored: int
    files_added: int
    files_removed: int
    bytes_added: int
    bytes_removed: int


def restore_table(table: Writable, version: int | None, timestamp: datetime | None) -> RestoreResult:
    """One new version, or nothing. Files that it brings back are checked first."""
    wanted = table.log.snapshot(table.name, version=version, timestamp=timestamp, understood=BOTH)
    result = table.changed(lambda _target: _restored(table, wanted), tries=_TRIES)
    table.publish()
    return result


def _restored(table: Writable, wanted: Snapshot) -> RestoreResult:
    now = table.log.snapshot(table.name, understood=BOTH)
    back, gone = only_in(wanted, now), only_in(now, wanted)
    metadata = replace(wanted.metadata, id=now.metadata.id, created_time=now.metadata.created_time)
    changed = [metadata] if _differ(metadata, now.metadata) else []
    done = RestoreResult(
        version=now.version,
        restored=wanted.version,
        files_added=back.num_rows,
        files_removed=gone.num_rows,
        bytes_added=pc.sum(back.column("size")).as_py() or 0,
        bytes_removed=pc.sum(gone.column("size")).as_py() or 0,
    )
    if not (back.num_rows or gone.num_rows or changed):
        return done
    _require_there(table, wanted, now, back)
    back = back.set_column(
        back.schema.get_field_index("data_change"), "data_change", pa.repeat(pa.scalar(True), back.num_rows)
    )
    plain = back.filter(pc.is_null(back.column("deletion_vector")))
    actions: list[Action] = [*changed]
    actions += removes_of([from_uri(path) for path in gone.column("path").to_pylist()], gone)
    actions += [_add(row) for row in back.filter(pc.is_valid(back.column("deletion_vector"))).to_pylist()]
    version = table.log.commit(
        table.name,
        # Strictly the next version: a vacuum that begins after the files were looked at must not be overlooked.
        now.version + 1,
        actions,
        adds=plain.select([n for n in plain.column_names if n != "deletion_vector"]),
        operation=Operation(
            "RESTORE",
            {"version": wanted.version, "timestamp": wanted.timestamp},
            {
                "numRestoredFiles": done.files_added,
                "restoredFilesSize": done.bytes_added,
                "numRemovedFiles": done.files_removed,
                "removedFilesSize": done.bytes_removed,
                "numOfFilesAfterRestore": wanted.files.num_rows,
                "tableSizeAfterRestore": pc.sum(wanted.files.column("size")).as_py() or 0,
            },
        ),
    )
    return replace(done, version=version)


def _differ(one: Metadata, other: Metadata) -> bool:
    def told(metadata: Metadata) -> Any:
        return (
            metadata.schema_string,
            tuple(metadata.partition_columns),
            dict(metadata.configuration),
            metadata.name,
            metadata.description,
        )

    return bool(told(one) != told(other))


def _add(row: dict[str, Any]) -> Add:
    return Add(
        path=row["path"],
        partition_values=json.loads(row["partition_values"]),
        size=row["size"],
        modification_time=row["modification_time"],
        stats=row["stats"],
        tags=None if row["tags"] is None else json.loads(row["tags"]),
        deletion_vector=vector_from(json.loads(row["deletion_vector"])),
    )


def _require_there(table: Writable, wanted: Snapshot, now: Snapshot, back: pa.Table) -> None:
    """Refuse to bring back files that are gone, or that a vacuum may be about to remove."""
    oldest = oldest_kept(now.transactions)
    if wanted.version < oldest:
        needed = needed_files(table.log.store.rows, table.log.table(table.name).id, oldest)
        vacuumed = [from_uri(path) for path in back.column("path").to_pylist() if path not in needed]
        if vacuumed:
            raise StorageError(
                f"version {wanted.version} of {table.name} cannot be restored: {len(vacuumed)} of its files were "
                f"vacuumed, {_listed(vacuumed)}",
                in_place=f"{table.name} is as it was, at version {now.version}",
                hint=f"versions from {oldest} on can be restored",
            )
    missing, damaged = [], []
    for name, size in files_of(back):
        found = _size(table.folder / name)
        if found is None:
            missing.append(name)
        elif found != size:
            damaged.append(name)
    if missing or damaged:
        said = [f"{len(missing)} of its files are gone, {_listed(missing)}"] if missing else []
        said += [f"{len(damaged)} do not have their size any more, {_listed(damaged)}"] if damaged else []
        raise StorageError(
            f"version {wanted.version} of {table.name} cannot be restored: {'; '.join(said)}",
            in_place=f"{table.name} is as it was, at version {now.version}",
            hint="bring them back from a copy, or restore another version",
        )


def _size(path: Path) -> int | None:
    with explained("look at", path):
        try:
            return os.stat(path).st_size
        except FileNotFoundError:
            return None


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"{', '.join(sorted(names)[:_SHOWN])}{more}"
