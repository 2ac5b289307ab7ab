"""Which uploads a staging area has begun: on record there before they are, so that whoever finds it can end them.

An upload is announced, then begun, then its id is written down, and only then does it get its first part. So an
upload that was announced and has no id on record, because its writer died just then, is one without a part.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lockgate.storage.local import LocalStorage, explained
from lockgate.storage.s3 import S3Storage
from lockgate.storage.s3_address import S3Address

MARK = "lockgate-write"  # in the metadata of an object: which write made it
FOLDER = "uploads"  # in a staging area; its owner has begun uploads that somebody has to end


@dataclass(frozen=True)
class Begun:
    address: S3Address
    upload: str | None  # None: announced, and perhaps begun
    connection: str | None


def begin_upload(
    s3: S3Storage, address: S3Address, mark: dict[str, str], area: Path, storage: LocalStorage, connection: str | None
) -> str:
    """Begin an upload on behalf of a staging area."""
    folder = area / FOLDER
    if not folder.is_dir():
        storage.make_scratch_folder(folder)
    number = sum(1 for _ in folder.glob("*.announced"))
    body = {"bucket": address.bucket, "key": address.key, "connection": connection}
    storage.write(folder / f"{number:05d}.announced", json.dumps({**body, "upload": None}).encode())
    upload = s3.create_upload(address, mark)
    storage.write(folder / f"{number:05d}.begun", json.dumps({**body, "upload": upload}).encode())
    return upload


def uploads_of(area: Path) -> Iterator[Begun]:
    """What the area has begun. A record that was cut off while it was written was not acted upon."""
    for announced in sorted((area / FOLDER).glob("*.announced")):
        told = _read(announced.with_suffix(".begun")) or _read(announced)
        if told is not None:
            yield Begun(S3Address(told["bucket"], told["key"]), told["upload"], told["connection"])


def _read(record: Path) -> dict[str, Any] | None:
    with explained("read", record), suppress(FileNotFoundError, ValueError):
        told: dict[str, Any] = json.loads(record.read_bytes())
        return told
    return None


def abort_uploads(begun: Begun, s3: S3Storage, claimed: frozenset[str] = frozenset()) -> int:
    """End what was begun and not completed; returns how many uploads that were. `claimed`: ids of others."""
    if begun.upload is not None:
        is_open = s3.parts(begun.address, begun.upload) is not None
        s3.abort(begun.address, begun.upload)
        return int(is_open)
    ended = 0
    for found in s3.uploads(begun.address):
        ours = found.address == begun.address and found.identity not in claimed
        if ours and s3.parts(found.address, found.identity) == 0:
            s3.abort(found.address, found.identity)
            ended += 1
    return ended
