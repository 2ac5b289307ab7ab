"""Removing data files that no kept version needs.

A version is kept if it was the table's newest at some moment within the retention. Before the first file is removed the
log is told which version is the oldest kept one (`txlog.retention`): from then on nobody brings an older one back, and
what was brought back before is seen when the files are looked through again. Who is killed in between leaves a table
of which every kept version is whole, and files for the next vacuum.

A file that the log does not know may be one that a writer has placed and not committed yet. It goes only when it is
old, when no staging area holds it, and when it is older than everything that is staged.
"""

from __future__ import annotations

import logging
import os
import stat
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path

from lockgate.errors import ArgumentError, LockgateError, StorageError, TableNotFound
from lockgate.storage import staging
from lockgate.storage.local import explained
from lockgate.tables.opening import published
from lockgate.tables.writable import Writable
from lockgate.txlog.actions import Action, Txn
from lockgate.txlog.checkpoint_rows import retention as retention_setting
from lockgate.txlog.commits import Operation
from lockgate.txlog.paths import from_uri
from lockgate.txlog.reading_features import BOTH
from lockgate.txlog.retention import VACUUM, left_files, needed_files, oldest_kept, oldest_version

log = logging.getLogger("lockgate.tables")

GRACE = timedelta(hours=24)  # of files that no version has: a writer may be about to commit them
_SUFFIX = ".parquet"


@dataclass(frozen=True)
class VacuumResult:
    """What `vacuum` removed, or would remove. Names are relative to the table's folder."""

    dry_run: bool
    retention_hours: float
    oldest_kept: int  # older versions cannot be read any more
    files: list[str]
    bytes: int
    unreferenced: int  # how many of the files belong to no version at all
    failed: dict[str, str] = field(default_factory=dict)  # file -> why it could not be removed
    staging_swept: int = 0
    version: int | None = None


@dataclass(frozen=True)
class _Plan:
    oldest: int
    floor: int  # what the log says already
    sizes: dict[str, int]
    unreferenced: frozenset[str]

    @property
    def readable_from(self) -> int:
        """The oldest version that can be read when these files are gone."""
        return self.oldest if self.sizes.keys() - self.unreferenced else self.floor


def vacuum_table(
    table: Writable,
    *,
    retention_hours: float | None = None,
    dry_run: bool = False,
    check_retention: bool = True,
    clock: Callable[[], float] = time.time,
) -> VacuumResult:
    """Remove the files, or with `dry_run` only say which."""
    retention = _retention(table, retention_hours, check_retention)
    if not dry_run:
        published(table.log, table.name)  # what cannot be published now holds the oldest kept version back
    since = int(clock() * 1000) - int(retention * 3_600_000)
    plan = _planned(table, since, retention, clock())
    result = VacuumResult(
        dry_run, retention, plan.readable_from, sorted(plan.sizes), sum(plan.sizes.values()), len(plan.unreferenced)
    )
    if dry_run:
        return result
    swept = staging.sweep(table.storage, table.folder)
    if not plan.sizes:
        return replace(result, staging_swept=len(swept))
    _begin(table, plan, retention)
    again = _planned(table, since, retention, clock(), oldest=plan.oldest)
    sizes = {name: size for name, size in again.sizes.items() if name in plan.sizes}
    failed = _remove(table, sizes)
    done = {name: size for name, size in sizes.items() if name not in failed}
    version = table.log.commit(
        table.name,
        None,
        operation=Operation(
            "VACUUM END",
            {"status": "COMPLETED" if not failed else "FAILED"},
            {"numDeletedFiles": len(done), "sizeOfDeletedData": sum(done.values())},
        ),
    )
    published(table.log, table.name)
    return VacuumResult(
        False, retention, plan.readable_from, sorted(done), sum(done.values()), len(plan.unreferenced & done.keys()),
        failed, len(swept), version,
    )  # fmt: skip


def _retention(table: Writable, hours: float | None, check: bool) -> float:
    _, metadata = table.log.metadata(table.name)
    setting = retention_setting(dict(metadata.configuration)) / 3_600_000
    if hours is None:
        return setting
    if not 0 <= hours < 24 * 365 * 1000:
        raise ArgumentError(f"retention cannot be {hours:g} hours", in_place="nothing was removed")
    if check and hours < setting:
        raise ArgumentError(
            f"a retention of {hours:g} hours is shorter than the {setting:g} hours that {table.name} promises its "
            "readers",
            in_place="nothing was removed",
            hint="add --no-retention-check (check_retention=False) if nobody reads a version older than that, or set "
            "the property delta.deletedFileRetentionDuration",
        )
    return hours


def _begin(table: Writable, plan: _Plan, retention: float) -> None:
    """Tell the log, and other readers of the table, before the first file goes."""

    def commit(_target: object) -> None:
        newest = table.log.snapshot(table.name, understood=BOTH)
        actions: list[Action] = []
        if plan.readable_from > oldest_kept(newest.transactions):
            actions.append(Txn(VACUUM, plan.readable_from, int(time.time() * 1000)))
        table.log.commit(
            table.name,
            None,
            actions,
            read_version=newest.version,
            operation=Operation(
                "VACUUM START",
                {"retentionHours": retention, "oldestVersionKept": plan.readable_from},
                {"numFilesToDelete": len(plan.sizes), "sizeOfDataToDelete": sum(plan.sizes.values())},
            ),
        )

    table.changed(commit)


def _planned(table: Writable, since: int, retention: float, now: float, *, oldest: int | None = None) -> _Plan:
    """Which files may go. In this order: what is on disk, what is staged, what the log knows. A file that is committed
    meanwhile is then either staged still or known already."""
    found = dict(_data_files(table.folder))
    held, staged_since = _staged(table.folder)
    record = table.log.table(table.name)
    floor = oldest_kept(table.log.snapshot(table.name, understood=BOTH).transactions)
    if oldest is None:
        oldest = _oldest(table, since)
        if record.publish:  # who reads the published table is still at an older version
            oldest = min(oldest, max(record.published_version, 0))
        oldest = max(oldest, floor)
    rows = table.log.store.rows
    needed = {from_uri(path) for path in needed_files(rows, record.id, oldest)}
    left = {from_uri(path) for path in left_files(rows, record.id, oldest)}
    grace = min(now - max(retention * 3600, GRACE.total_seconds()), staged_since - GRACE.total_seconds())
    sizes: dict[str, int] = {}
    unreferenced = set()
    for name, status in found.items():
        if name in needed or (status.st_dev, status.st_ino) in held:
            continue
        if name not in left:
            if max(status.st_mtime, status.st_ctime) > grace:  # its owner may have moved an old file here just now
                continue
            unreferenced.add(name)
        sizes[name] = status.st_size
    return _Plan(oldest, floor, sizes, frozenset(unreferenced))


def _oldest(table: Writable, since: int) -> int:
    """The version that was the newest at that time; the first one of a table that is younger."""
    try:
        return table.log.version_at(table.name, since)
    except TableNotFound:
        return oldest_version(table.log.store.rows, table.log.table(table.name).id)


def _data_files(root: Path) -> Iterator[tuple[str, os.stat_result]]:
    """The Parquet files below the folder. Hidden names, links and tables inside of this one are somebody else's."""
    folders = [root]
    while folders:
        folder = folders.pop()
        with explained("look through", folder):
            try:
                entries = sorted(os.scandir(folder), key=lambda e: e.name)
            except FileNotFoundError:
                continue
        if folder != root and any(entry.name == "_delta_log" for entry in entries):
            continue
        for entry in entries:
            if entry.name.startswith((".", "_")) and "=" not in entry.name:
                continue
            if entry.is_dir(follow_symlinks=False):
                folders.append(Path(entry.path))
            elif entry.name.endswith(_SUFFIX):
                try:
                    status = entry.stat(follow_symlinks=False)
                except FileNotFoundError:
                    continue
                if stat.S_ISREG(status.st_mode):
                    yield Path(entry.path).relative_to(root).as_posix(), status


def _staged(root: Path) -> tuple[set[tuple[int, int]], float]:
    """The files in staging areas, which may have a second name in the table already, and since when the oldest area
    is there."""
    held: set[tuple[int, int]] = set()
    oldest = float("inf")
    for area in staging.areas(root):
        try:
            oldest = min(oldest, *(s.st_mtime for s in (area.stat(), *_stats(area))))
        except FileNotFoundError:
            continue
        held |= {(s.st_dev, s.st_ino) for s in _stats(area)}
    return held, oldest


def _stats(area: Path) -> Iterator[os.stat_result]:
    for folder, _, names in os.walk(area):
        for name in names:
            try:
                yield os.stat(os.path.join(folder, name), follow_symlinks=False)
            except FileNotFoundError:
                continue


def _remove(table: Writable, names: dict[str, int]) -> dict[str, str]:
    """Remove the files; those that stay are told. One that cannot go is no reason to keep the others."""
    failed: dict[str, str] = {}
    for name in sorted(names):
        path = table.folder / name
        try:
            if not table.storage.resolves_inside(path, table.folder):
                raise StorageError(f"a link leads {path.parent} out of the table")
            table.storage.remove(path)
        except LockgateError as error:
            failed[name] = error.message
            log.warning("%s was not vacuumed: %s", path, error.message)
    return failed
