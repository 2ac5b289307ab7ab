"""What was committed since a commit was prepared: only what its rules look at."""

from __future__ import annotations

import json

from lockgate.txlog import statements
from lockgate.txlog.actions import Txn, from_json
from lockgate.txlog.conflicts import AddedFile, Theirs
from lockgate.txlog.files import path_hash
from lockgate.txlog.prepared import Prepared
from lockgate.txlog.store import TableRow, Transaction


def rivals_of(transaction: Transaction, row: TableRow, part: Prepared) -> Theirs:
    """What the versions after the commit's `read_version` did."""
    since = part.commit.read_version
    assert since is not None
    mine = part.mine
    removed: dict[str, int] = {}
    if mine.removes or mine.reads:
        removed = {path: version for version, path in transaction.rows(statements.REMOVED_PATHS, row.id, since)}
    added: list[AddedFile] = []
    if mine.reads:
        statement = statements.ADDED if mine.looks_at_blind_appends else statements.ADDED_BY_READERS
        added = [
            AddedFile(version, path, json.loads(values))
            for version, path, values in transaction.rows(statement, row.id, since)
        ]
    return Theirs(
        protocol_version=row.protocol_version if row.protocol_version > since else None,
        metadata_version=row.metadata_version if row.metadata_version > since else None,
        removed=removed,
        added=added,
        app_versions=_applications(transaction, row, part, since),
    )


def _applications(transaction: Transaction, row: TableRow, part: Prepared, since: int) -> dict[str, int]:
    found: dict[str, int] = {}
    for app in part.mine.app_ids:
        for version, line in transaction.rows(statements.TXNS_OF, row.id, path_hash(app)):
            action = from_json(line)
            if version > since and isinstance(action, Txn) and action.app_id == app:
                found.setdefault(app, version)
    return found
