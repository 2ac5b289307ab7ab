"""What an export to S3 asks for: the address, the format and the connection. Light: `lockgate check` reads it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

from lockgate.config import STATE_FOLDER, Connection
from lockgate.destinations.one_file import COMPRESSION_OF_SUFFIX
from lockgate.destinations.options import Option
from lockgate.destinations.protocol import Complaint, ExportRequest
from lockgate.storage.local import LocalStorage
from lockgate.storage.s3 import S3Storage
from lockgate.storage.s3_record import MARK
from lockgate.storage.s3_settings import chosen_settings

FORMATS = ("csv", "json", "parquet")
S3_OPTIONS: Mapping[str, Option] = {"format": Option(str, choices=FORMATS), "connection": Option(str)}
_FORMAT_OF_SUFFIX = {".csv": "CSV", ".json": "JSON", ".jsonl": "JSON", ".parquet": "PARQUET"}


def format_of(request: ExportRequest) -> str | None:
    """The TYPE that the objects have: by TYPE, else by the option `format`, else by the suffix."""
    if request.type.upper() != "S3":
        return request.type.upper()
    named = request.options.get("format")
    if named is not None:
        return str(named).upper() if str(named).lower() in FORMATS else None
    suffixes = [s.lower() for s in PurePosixPath(request.destination).suffixes[-2:]]
    while suffixes and suffixes[-1] in COMPRESSION_OF_SUFFIX:
        suffixes.pop()
    return _FORMAT_OF_SUFFIX.get(suffixes[-1]) if suffixes else None


def is_prefix(destination: str, kind: str) -> bool:
    """Whether many objects go below this address, and not one to it: it ends with a slash or has no file suffix."""
    bucket_alone = destination.count("/") < 3
    if kind == "PARQUET":
        return bucket_alone or not destination.lower().endswith(".parquet")
    return bucket_alone or not PurePosixPath(destination.rpartition("/")[2]).suffix


def inner_request(request: ExportRequest, kind: str) -> ExportRequest:
    """The same as the format sees it, which knows nothing of S3."""
    ours = S3_OPTIONS if request.type.upper() == "S3" else {"connection"}
    options = {name: value for name, value in request.options.items() if name not in ours}
    return replace(request, type=kind, options=options)


def connection_of(request: ExportRequest) -> str | None:
    named = request.options.get("connection")
    return None if named is None else str(named)


def storage_for(connections: Mapping[str, Connection], connection: str | None, steps: LocalStorage) -> S3Storage:
    return S3Storage(chosen_settings(connections, connection), steps)


def staging_folder(project: Path) -> Path:
    """Where rows wait on their way to S3. Staging areas beside a destination have no place there."""
    return (project / STATE_FOLDER / "staging").resolve()


def no_replace(request: ExportRequest) -> Complaint:
    message = (
        f"MODE REPLACE of all objects below {request.destination} is not possible: S3 swaps in one object at a time, "
        "and readers would see old and new rows together"
    )
    hint = "name one object, such as s3://bucket/name.parquet; use MODE APPEND; or use TYPE DELTA for a table"
    return Complaint("mode", "mode-unsupported", message, hint)


def mark_of(request: ExportRequest) -> dict[str, str]:
    """What an object says of the export that wrote it, so that a lost reply can be settled by looking."""
    return {MARK: f"{request.run}-{request.number}"}


def is_marked(metadata: Mapping[str, Any], mark: str) -> bool:
    return metadata.get(MARK) == mark
