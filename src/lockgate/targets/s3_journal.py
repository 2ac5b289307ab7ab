"""The journal of a Parquet dataset on S3: one object that stays, and whose every version has another content.

A change is decided by putting the journal in place of the version that was read when the dataset was opened, and of no
other. So of two writers that started from the same state one comes through, whatever became of locks meanwhile; and who
is about to abort what a writer has uploaded puts a new version first, after which that writer can decide nothing.

S3 has no rename. A staged file is an upload with all its parts, to be completed under its final name; an upload can be
completed once, so that who carries out a change a second time, or late, does no harm.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from lockgate.errors import JournalError, ObjectChanged, ObjectMissing, OutcomeUnknown, S3Unreachable
from lockgate.storage.s3 import S3Storage
from lockgate.storage.s3_address import S3Address
from lockgate.storage.s3_upload import Uploaded

JOURNAL_NAME = ".lockgate_journal"
_FORMAT = 1
_REMEMBERED = 1_000  # changes that are done


@dataclass(frozen=True)
class S3Change:
    """What one commit does. Names are relative to the dataset."""

    identity: str
    uploads: Mapping[str, Uploaded] = field(default_factory=dict)  # name -> what becomes the object
    removes: tuple[str, ...] = ()
    clears: tuple[str, ...] = ()  # removed first: what is said of files that are about to change
    note: Mapping[str, Any] = field(default_factory=dict)  # what the writer wants to know when it is asked again


@dataclass(frozen=True)
class JournalState:
    etag: str | None = None  # None: no journal yet
    sequence: int = 0
    change: S3Change | None = None  # decided, and perhaps not carried out
    done: tuple[tuple[str, Mapping[str, Any]], ...] = ()  # identities and notes of changes, oldest first

    def note_of(self, identity: str) -> Mapping[str, Any] | None:
        """The note of a change that is done, or None if no such is known."""
        return next((note for done, note in reversed(self.done) if done == identity), None)

    def deciding(self, change: S3Change) -> JournalState:
        return replace(self, change=change)

    def carried_out(self) -> JournalState:
        assert self.change is not None
        done = (*self.done, (self.change.identity, self.change.note))
        return replace(self, change=None, done=done[-_REMEMBERED:])


def read(s3: S3Storage, root: S3Address) -> JournalState:
    address = root.inside(JOURNAL_NAME)
    found = s3.read(address)
    if found is None:
        return JournalState()
    raw, told = found
    try:
        record = json.loads(raw)
        body = record["body"]
        if record["sha256"] != _digest(body):
            raise ValueError("its checksum does not match")
        if body["format"] != _FORMAT:
            raise ValueError(f"its format {body['format']!r} is not one this version knows")
        change = _change(root, body["change"]) if body["change"] is not None else None
        done = tuple((str(identity), dict(note)) for identity, note in body["done"])
        return JournalState(told.etag, int(body["sequence"]), change, done)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise JournalError(
            f"the journal {address} cannot be used: {error}",
            in_place="the dataset is as it was found; nothing was changed",
            hint="keep a copy of it and restore it, or remove it if the dataset is known to be whole",
        ) from error


def write(s3: S3Storage, root: S3Address, state: JournalState, writer: str) -> JournalState:
    """Put a new version in place of the one that `state` was read from; an ObjectChanged says that there is another.
    `writer` is part of what makes the version differ from every other."""
    address = root.inside(JOURNAL_NAME)
    new = replace(state, sequence=state.sequence + 1)
    body = {
        "format": _FORMAT,
        "sequence": new.sequence,
        "writer": writer,
        "change": _told(new.change) if new.change else None,
        "done": [list(each) for each in new.done],
    }
    raw = json.dumps({"body": body, "sha256": _digest(body)}).encode()
    try:
        etag = s3.put(address, raw, if_match=state.etag, new=state.etag is None)
    except (ObjectChanged, ObjectMissing):
        there = s3.read(address)
        if there is None or there[0] != raw:  # else the answer to the first try was lost
            raise
        etag = there[1].etag
    except S3Unreachable as error:
        raise OutcomeUnknown(
            f"it is not known whether the change of {root} was decided: {error.message}",
            in_place="the dataset as it was, or the change is decided and the next write finishes it",
            hint=f"run `lockgate recover {root}` when S3 answers again, and look which it is",
        ) from error
    return replace(new, etag=etag)


def _told(change: S3Change) -> dict[str, Any]:
    return {
        "id": change.identity,
        "uploads": {name: {**u.to_json(), "key": None, "bucket": None} for name, u in change.uploads.items()},
        "removes": list(change.removes),
        "clears": list(change.clears),
        "note": dict(change.note),
    }


def _change(root: S3Address, told: Mapping[str, Any]) -> S3Change:
    uploads = {}
    for name, upload in told["uploads"].items():
        address = root.inside(inside(name))
        uploads[name] = Uploaded.from_json({**upload, "bucket": address.bucket, "key": address.key})
    return S3Change(
        identity=str(told["id"]),
        uploads=uploads,
        removes=tuple(inside(name) for name in told["removes"]),
        clears=tuple(inside(name) for name in told["clears"]),
        note=dict(told["note"]),
    )


def inside(name: object) -> str:
    """A name that stays below the dataset; a journal from a hostile hand must not reach out of it."""
    if not isinstance(name, str) or not name or name.startswith("/") or "\0" in name:
        raise ValueError(f"{name!r} is not a name")
    if {"", ".", ".."} & set(name.split("/")):
        raise ValueError(f"{name!r} leaves the dataset")
    return name


def _digest(body: object) -> str:
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
