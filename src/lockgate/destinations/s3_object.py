"""One object on S3: its parts are uploaded while it is staged, and it appears when the upload is completed.

REPLACE takes the place of the object; APPEND makes a new one beside it, or below a prefix. Nothing is copied and
nothing is deleted.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, TypeVar

from lockgate.destinations.one_file import OneFileDestination, split_suffixes
from lockgate.destinations.protocol import Complaint, ExportRequest, Layout, Outcome, Prepared, StagedRows, Surroundings
from lockgate.destinations.s3_leftovers import abort_staged
from lockgate.destinations.s3_place import (
    connection_of,
    inner_request,
    is_marked,
    is_prefix,
    mark_of,
    staging_folder,
    storage_for,
)
from lockgate.errors import ObjectChanged, ObjectMissing, OutcomeUnknown, PublishError, S3Unreachable, StageError
from lockgate.storage.local import LocalStorage
from lockgate.storage.s3 import S3Object, S3Storage
from lockgate.storage.s3_address import S3Address, parse_address
from lockgate.storage.s3_record import MARK, begin_upload
from lockgate.storage.s3_upload import Upload, Uploaded, upload_file
from lockgate.storage.staging import StagingArea

T = TypeVar("T")

_DONE = "published"  # in the staging area: the outcome, once it is known
_SUFFIXES = {"CSV": ".csv", "JSON": ".json", "PARQUET": ".parquet"}
_COMPRESSED = {"gzip": ".gz", "bz2": ".bz2", "zstd": ".zst", "lz4": ".lz4"}


class S3ObjectDestination:
    """Wraps what knows the format, whose bytes go to an upload instead of a file."""

    def __init__(self, form: OneFileDestination) -> None:
        self.type = form.type
        self._form = form

    def problems(self, request: ExportRequest) -> list[Complaint]:
        inner = self._inner(request)
        if is_prefix(request.destination, self.type):
            inner = replace(inner, destination=f"{request.destination.rstrip('/')}/part{_SUFFIXES[self.type]}")
        found = self._form.problems(inner)
        if request.mode == "REPLACE" and is_prefix(request.destination, self.type):
            message = (
                f"MODE REPLACE of all objects below {request.destination} is not possible: S3 swaps in one at a time"
            )
            hint = "name one object, such as s3://bucket/name.csv; use MODE APPEND; or use TYPE DELTA for a table"
            found.append(Complaint("mode", "mode-unsupported", message, hint))
        return found

    def layout(self, request: ExportRequest) -> Layout:
        return self._form.layout(self._inner(request))

    def staging_place(self, request: ExportRequest) -> Path:
        return staging_folder(request.project)

    def stage(self, request: ExportRequest, area: StagingArea, rows: StagedRows) -> Prepared:
        connection = connection_of(request)
        s3 = storage_for(request.profile.connections, connection, area.storage)
        address = self._address(request)
        there = s3.head(address)
        mark = mark_of(request)
        if request.mode == "APPEND" and there is not None:
            raise StageError(f"{address} is there already", in_place="nothing was published", hint="run again")
        try:
            identity = begin_upload(s3, address, mark, area.path, area.storage, connection)
            count, uploaded = self._upload(request, area, rows, s3, address, identity)
        except BaseException as error:
            self._give_up(area, request, error)
            raise
        return Prepared(
            destination=request.destination,
            type=request.type,
            mode=request.mode,
            staging=str(area.path),
            rows=count,
            bytes=uploaded.size,
            instructions={
                "format": self.type,
                "object": uploaded.to_json(),
                "mark": mark[MARK],
                "before": there.etag if there else None,
                "connection": connection,
            },
        )

    def _upload(
        self,
        request: ExportRequest,
        area: StagingArea,
        rows: StagedRows,
        s3: S3Storage,
        address: S3Address,
        identity: str,
    ) -> tuple[int, Uploaded]:
        file = area.path / "result"
        with Upload(s3, address, identity) as upload:
            count = self._form.write(self._inner(request), rows, file, _IntoUpload(upload, area.storage))
            if not file.exists():
                return count, upload.finish()
        return count, upload_file(s3, address, identity, file)  # a single part, which is the object as it is

    def _give_up(self, area: StagingArea, request: ExportRequest, error: BaseException) -> None:
        """Leave no open upload behind a failure. If S3 cannot be reached, the area remembers it for whoever comes."""
        try:
            abort_staged(area.path, Surroundings(area.storage, request.project, request.profile))
        except Exception as also:
            error.add_note(f"and its upload could not be aborted now: {also}")

    def _address(self, request: ExportRequest) -> S3Address:
        """The object that will appear."""
        address = parse_address(request.destination)
        if is_prefix(request.destination, self.type):
            compression = str(request.options.get("compression", "")).lower()
            suffix = _SUFFIXES[self.type] + (_COMPRESSED.get(compression, "") if self.type != "PARQUET" else "")
            return address.inside(f"part-{request.run}-{request.number}{suffix}")
        if request.mode == "APPEND":
            stem, suffix = split_suffixes(address.name)
            return address.beside(f"{stem}-{request.run}-{request.number}{suffix}")
        return address

    def _inner(self, request: ExportRequest) -> ExportRequest:
        return inner_request(request, self.type)

    def publish(self, prepared: Prepared, around: Surroundings) -> Outcome:
        done = Path(prepared.staging) / _DONE
        if done.exists():
            return _outcome(prepared)
        s3 = _storage(prepared, around)
        uploaded = Uploaded.from_json(prepared.instructions["object"])
        if not _is_ours(s3.head(uploaded.address), prepared):
            _complete(s3, uploaded, prepared)
        if done.parent.is_dir():
            around.storage.write(done, json.dumps(asdict(_outcome(prepared))).encode())
        return _outcome(prepared)

    def is_decided(self, prepared: Prepared, around: Surroundings) -> bool:
        """Not known is decided too: it may have happened, and then it is not undone."""
        if (Path(prepared.staging) / _DONE).exists():
            return True
        try:
            return _is_ours(_storage(prepared, around).head(_address(prepared)), prepared)
        except S3Unreachable:
            return True

    def discard(self, prepared: Prepared, around: Surroundings) -> None:
        area = Path(prepared.staging)
        if not (area / _DONE).exists():  # else its upload is completed, and so no more
            abort_staged(area, around)
        StagingArea.reopen(around.storage, area).discard()


def _complete(s3: S3Storage, uploaded: Uploaded, prepared: Prepared) -> None:
    """Make the upload the object. What S3 answers decides; where it does not answer, the object itself is asked."""
    address = uploaded.address
    try:
        s3.complete(address, uploaded.identity, uploaded.etags, new=prepared.mode == "APPEND")
    except ObjectChanged as error:  # an own reply may have been lost, and the second try refused
        if not _is_ours(s3.head(address), prepared):
            raise PublishError(f"{address} is there already", hint="run the pipeline again") from error
    except ObjectMissing as error:
        now = s3.head(address)
        if _is_ours(now, prepared):
            return
        if (now.etag if now else None) == prepared.instructions["before"]:
            raise PublishError(
                f"the upload to {address} is gone: somebody aborted it, or a rule of the bucket did",
                hint="run the pipeline again",
            ) from error
        raise OutcomeUnknown(
            f"the upload to {address} is gone, and another writer's object is there",
            in_place="the object of another writer, whole; ours may have been there before it",
            hint="`lockgate run --supersede` gives this run up and runs the pipeline again",
        ) from error
    except S3Unreachable as error:
        if not _found_ours(s3, prepared):
            raise OutcomeUnknown(
                f"it is not known whether {address} was published: {error.message}",
                in_place="the old object or the new one, whole",
                hint=error.hint,
            ) from error


def _found_ours(s3: S3Storage, prepared: Prepared) -> bool:
    try:
        return _is_ours(s3.head(_address(prepared)), prepared)
    except S3Unreachable:
        return False


def _is_ours(found: S3Object | None, prepared: Prepared) -> bool:
    return found is not None and is_marked(found.metadata, prepared.instructions["mark"])


def _address(prepared: Prepared) -> S3Address:
    return Uploaded.from_json(prepared.instructions["object"]).address


def _storage(prepared: Prepared, around: Surroundings) -> S3Storage:
    return storage_for(around.profile.connections, prepared.instructions["connection"], around.storage)


def _outcome(prepared: Prepared) -> Outcome:
    replaced = prepared.instructions["before"] is not None
    return Outcome(
        inserted=prepared.rows,
        updated=0,
        deleted=None if prepared.mode == "REPLACE" else 0,
        files={"rewritten": int(replaced), "added": int(not replaced), "preserved": 0},
        paths=(str(_address(prepared)),),
    )


class _IntoUpload(LocalStorage):
    """What a format takes for a file that it creates is an upload; all else is done by the storage that was given."""

    def __init__(self, upload: Upload, given: LocalStorage) -> None:
        self._upload = upload
        self._given = given

    def _do(self, step: str, path: Path, action: Callable[[], T]) -> T:
        return self._given._do(step, path, action)

    @contextmanager
    def create(self, path: Path) -> Iterator[Any]:
        del path
        yield self._upload
