"""Forgetting old versions of a table, on command: their rows leave the log in batches, each in a short transaction.

The versions themselves go first, from the oldest on. A version that is still listed is thereby always whole, and who is
killed in between leaves rows that no version has, for the next time. What kept versions are made of stays: files that
one of them has, the newest schema, protocol and application transactions before them, and tombstones that are not
expired, since checkpoints still tell readers of them.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass

from lockgate.errors import ArgumentError
from lockgate.txlog import statements
from lockgate.txlog.checkpoint_rows import retention
from lockgate.txlog.log_files import LogFiles, log_files_at
from lockgate.txlog.publisher import version_of
from lockgate.txlog.retention import oldest_version
from lockgate.txlog.store import Row, Store, TableRow

_AT_ONCE = 500  # versions
_RANGE = "WHERE table_id = ? AND {version} BETWEEN ? AND ?"
# The table, which of its columns is a version, and what else must be true of a row that goes.
_PARTS: tuple[tuple[str, str, str], ...] = (
    ("dl_table_versions", "version", ""),
    ("dl_remove_files", "version", "AND deletion_timestamp < {expired}"),
    # Of a name there is a newer one that the oldest kept version has.
    *(
        (
            table,
            "version",
            (
                f"AND EXISTS (SELECT 1 FROM {table} n WHERE n.table_id = {table}.table_id{same}"
                f" AND n.version > {table}.version AND n.version <= {{oldest}})"
            ),
        )
        for table, same in (
            ("dl_metadata_updates", ""),
            ("dl_protocol_updates", ""),
            ("dl_txn_actions", " AND n.app_hash = dl_txn_actions.app_hash"),
            ("dl_domain_metadata", " AND n.domain_hash = dl_domain_metadata.domain_hash"),
        )
    ),
)


@dataclass(frozen=True)
class PruneResult:
    """What `prune` removed. Versions from `oldest` on are as they were."""

    oldest: int
    versions: int
    rows: int
    published_files: int


def prune(
    store: Store,
    name: str,
    *,
    keep_versions: int | None = None,
    older_than: int | None = None,
    published_too: bool = False,
    files_at: Callable[[str], LogFiles] = log_files_at,
) -> PruneResult:
    """Forget versions but the newest `keep_versions`, or those that were followed before the time `older_than` (in
    milliseconds). What is not published yet stays. `published_too`: files of `_delta_log` that no reader of a kept
    version needs go as well."""
    if (keep_versions is None) == (older_than is None):
        raise ArgumentError("give keep_versions or older_than, one of them", in_place="nothing was removed")
    if keep_versions is not None and keep_versions < 1:
        raise ArgumentError("at least one version is kept", in_place="nothing was removed")
    row = TableRow(*store.rows(statements.TABLE_BY_NAME, name)[0])
    oldest = _oldest(store, row, keep_versions, older_than)
    before = oldest_version(store.rows, row.id)
    rows = _forget(store, row.id, oldest) if row.current_version >= 0 else 0
    gone = _unpublish(files_at(row.location), oldest) if published_too and row.publish else 0
    return PruneResult(max(oldest, before), max(oldest - before, 0), rows, gone)


def _oldest(store: Store, row: TableRow, keep_versions: int | None, older_than: int | None) -> int:
    if keep_versions is not None:
        oldest = row.current_version - keep_versions + 1
    else:
        oldest = store.rows(statements.VERSION_AT_TIME, row.id, older_than)[0][0] or 0
    if row.publish:
        oldest = min(oldest, row.published_version)
    return max(oldest, 0)


def _forget(store: Store, table_id: int, oldest: int) -> int:
    metadata = json.loads(store.rows(statements.METADATA_AT, table_id, oldest)[0][1])["metaData"]
    timestamp = store.rows(statements.VERSION, table_id, oldest)
    expired = timestamp[0][1] - retention(metadata.get("configuration") or {}) if timestamp else 0
    count = 0
    for table, version, also in _PARTS:
        more = also.format(expired="?", oldest="?")
        values = (expired,) if "{expired}" in also else (oldest,) if "{oldest}" in also else ()
        count += _delete(store, table, version, more, table_id, oldest - 1, *values)
    # A file that left with version `oldest` is not of it.
    return count + _delete(store, "dl_add_files", "removed_version", "", table_id, oldest)


def _delete(store: Store, table: str, version: str, also: str, table_id: int, last: int, *values: int) -> int:
    """In batches, from the oldest on."""
    within = _RANGE.format(version=version)
    found = store.rows(f"SELECT min({version}) FROM {table} WHERE table_id = ? AND {version} <= ?", table_id, last)
    first = found[0][0]
    if first is None:
        return 0
    count = 0
    for start in range(first, last + 1, _AT_ONCE):
        end = min(last, start + _AT_ONCE - 1)
        done: list[Row] = store.change(
            f"DELETE FROM {table} {within} {also} RETURNING {version}", table_id, start, end, *values
        )
        count += len(done)
    return count


def _unpublish(files: LogFiles, oldest: int) -> int:
    """Commits and checkpoints before the newest checkpoint that a reader of `oldest` can begin with."""
    names = files.names()
    checkpoints = [version_of(n) for n in names if n.endswith(".checkpoint.parquet") and version_of(n) is not None]
    usable = [v for v in checkpoints if v is not None and v <= oldest]
    if not usable:
        return 0
    first = max(usable)
    gone = [n for n in names if (v := version_of(n)) is not None and v < first]
    for name in sorted(gone):  # commits of a version before its checkpoint, and the oldest first
        files.remove(name)
    if gone:
        files.sync()
    return len(gone)
