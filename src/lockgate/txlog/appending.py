"""Appends that a database takes in one statement, lock and COMMIT and all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lockgate.txlog.actions import json_text
from lockgate.txlog.committer import Request
from lockgate.txlog.store import Store

# What a head begins with. The database puts its timestamp in the place of both zeros.
_HEAD = '{"commitInfo":{"timestamp":0,"inCommitTimestamp":0'
_KEYS = ("h", "s", "m", "d", "p", "v", "t", "g", "x", "e")  # `Prepared.add_parts`
_LARGEST = 4096  # files


@dataclass(frozen=True, slots=True)
class Append:
    """Commits to one table that add files and do nothing else. Each becomes a version, in this order."""

    table: str
    expected_version: int | None
    metadata_version: int
    protocol_version: int
    commits: str  # JSON: txn_id, blind_append, and the head behind its timestamps, of each
    files: str  # JSON: `_KEYS`, the place of the commit (c), and the ordinal (o), of each


def append(store: Store, requests: Sequence[Request]) -> bool:
    """Commit these requests so, where that can be done. False: nothing was committed, do it step by step."""
    given = _as_append(requests) if store.appends else None
    first = store.append(given) if given else None
    if first is None:
        return False
    for version, request in enumerate(requests, first):
        request.versions = {request.tables[0]: version}
    return True


def _as_append(requests: Sequence[Request]) -> Append | None:
    part = requests[0].parts[0]
    table, seen, expected = part.commit.table, part.state_versions, part.commit.expected_version
    commits, files = [], []
    for place, request in enumerate(requests):
        part = request.parts[0]
        if (
            not request.can_be_grouped
            or (part.commit.table, part.state_versions) != (table, seen)
            or (len(requests) > 1 and part.commit.expected_version is not None)
        ):
            return None
        head = part.head(part.commit.expected_version or 1, 0, request.txn_id)
        assert head.startswith(_HEAD)
        commits.append((request.txn_id, part.blind_append, head[len(_HEAD) :]))
        for ordinal, values in enumerate(part.add_parts):
            files.append({"c": place, "o": ordinal, **dict(zip(_KEYS, values, strict=True))})
    if seen is None or len(files) > _LARGEST:
        return None
    return Append(table, expected, *seen, json_text(commits), json_text(files))
