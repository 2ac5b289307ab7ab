"""`recover` on S3: what a dead writer has decided is finished, and what it has uploaded without deciding is aborted."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from lockgate.config import load_project
from lockgate.errors import ArgumentError
from lockgate.storage import staging
from lockgate.storage.local import LocalStorage
from lockgate.storage.locks import is_held
from lockgate.storage.s3 import OpenUpload, S3Storage
from lockgate.storage.s3_address import S3Address, parse_address
from lockgate.storage.s3_record import FOLDER, abort_uploads, uploads_of
from lockgate.storage.s3_settings import chosen_settings
from lockgate.storage.staging import StagingArea
from lockgate.targets.folder import RecoveryReport
from lockgate.targets.s3_folder import S3Folder

DEAD_AFTER = timedelta(hours=24)  # an upload that no record here knows may be of a writer on another machine


def recover_s3(
    path: str,
    *,
    connection: str | None = None,
    dry_run: bool = False,
    storage: LocalStorage | None = None,
    now: datetime | None = None,
) -> RecoveryReport:
    """Finish or undo interrupted writes to the object or prefix at this address."""
    try:
        root = parse_address(path)
    except ValueError as error:
        raise ArgumentError(str(error), in_place="nothing was changed") from None
    project, disk = load_project(), storage or LocalStorage()
    s3 = S3Storage(chosen_settings(project.profile.connections, connection), disk)
    target = S3Folder(root, s3)
    report = RecoveryReport(path=str(root))
    areas = project.state / "staging"
    with ExitStack() as stack:
        old = _old_uploads(s3, root, now or datetime.now(UTC))
        if target.has_leftovers() or old:
            report = _held(target, report, stack, dry_run=dry_run, fence=bool(old))
        swept, aborted = _sweep(areas, root, s3, disk, dry_run=dry_run)
        claimed = {b.upload for area in staging.areas(areas) for b in uploads_of(area) if _is_needed(area)}
        for found in _uploads(s3, root):
            if found.identity in claimed or found not in old:
                continue
            if not dry_run:
                s3.abort(found.address, found.identity)
            aborted.append(str(found.address))
    gone = [*report.uploads_aborted, *aborted]
    kept = [str(found.address) for found in _uploads(s3, root)] if not dry_run else []
    return replace(report, staging_swept=swept, uploads_aborted=gone, uploads_kept=kept)


def _held(target: S3Folder, report: RecoveryReport, stack: ExitStack, *, dry_run: bool, fence: bool) -> RecoveryReport:
    """Open the dataset, which finishes what was decided; until the end nobody else decides anything."""
    if dry_run:
        from lockgate.targets import s3_journal

        change = s3_journal.read(target.s3, target.address).change
        return replace(report, finished=change.identity if change else None)
    opened = stack.enter_context(target.opened(f"recover-{uuid.uuid4().hex}"))
    if fence and opened.state.etag is not None:  # a journal is made by the first commit; before it there is no dataset
        opened.fence()
    did = opened.recovery
    return replace(
        report,
        finished=did.finished,
        files_moved=did.completed,
        files_removed=did.removed,
        uploads_aborted=did.uploads_aborted,
    )


def _sweep(
    folder: Path, root: S3Address, s3: S3Storage, disk: LocalStorage, *, dry_run: bool
) -> tuple[list[str], list[str]]:
    """The uploads of this project's runs that died before they promised to publish."""
    swept, aborted = [], []
    for area in staging.areas(folder):
        begun = list(uploads_of(area))
        here = [b for b in begun if _is_below(b.address, root)]
        if not here or _is_needed(area):
            continue
        for each in here:
            if dry_run or abort_uploads(each, s3):
                aborted.append(str(each.address))
        if len(here) == len(begun):
            if not dry_run:
                disk.remove_tree(area / FOLDER)
                StagingArea.reopen(disk, area).discard()
            swept.append(str(area))
    return swept, aborted


def _is_needed(area: Path) -> bool:
    return is_held(area / "owner") or staging.is_sealed(area)


def _uploads(s3: S3Storage, root: S3Address) -> Iterator[OpenUpload]:
    return (found for found in s3.uploads(root) if _is_below(found.address, root))


def _old_uploads(s3: S3Storage, root: S3Address, now: datetime) -> list[OpenUpload]:
    return [found for found in _uploads(s3, root) if now - found.begun > DEAD_AFTER]


def _is_below(address: S3Address, root: S3Address) -> bool:
    """Whether it is the object itself, or one below the prefix."""
    return address.bucket == root.bucket and (address.key == root.key or address.key.startswith(root.inside("").key))
