"""APPEND of Parquet objects below a prefix: all of them by one entry in the dataset's journal.

The objects are uploaded while the export is staged, in parallel from this machine. Publishing decides that they become
visible, and completes the uploads.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path, PurePath

from lockgate.destinations.parquet_folder import ParquetFolderDestination
from lockgate.destinations.parquet_shape import FileShape, refuse_difference, shape_of_file
from lockgate.destinations.protocol import Complaint, ExportRequest, Layout, Outcome, Prepared, StagedRows, Surroundings
from lockgate.destinations.s3_leftovers import abort_staged
from lockgate.destinations.s3_place import (
    connection_of,
    inner_request,
    mark_of,
    no_replace,
    staging_folder,
    storage_for,
)
from lockgate.errors import PublishError, S3Unreachable
from lockgate.storage.links import temporary_folder
from lockgate.storage.s3_address import parse_address
from lockgate.storage.s3_record import begin_upload
from lockgate.storage.s3_upload import Uploaded, upload_file
from lockgate.storage.staging import StagingArea
from lockgate.targets import s3_journal
from lockgate.targets.s3_folder import OpenS3Folder, S3Folder
from lockgate.targets.s3_mirror import Mirror

_AT_ONCE = 4


class S3AppendDestination:
    type = "PARQUET"

    def __init__(self) -> None:
        self._local = ParquetFolderDestination()

    def problems(self, request: ExportRequest) -> list[Complaint]:
        found = self._local.problems(inner_request(request, self.type))
        return [*found, no_replace(request)] if request.mode == "REPLACE" else found

    def layout(self, request: ExportRequest) -> Layout:
        return self._local.layout(inner_request(request, self.type))

    def staging_place(self, request: ExportRequest) -> Path:
        return staging_folder(request.project)

    def stage(self, request: ExportRequest, area: StagingArea, rows: StagedRows) -> Prepared:
        import pyarrow.parquet as pq

        connection = connection_of(request)
        s3 = storage_for(request.profile.connections, connection, area.storage)
        root = parse_address(request.destination)
        if rows.parts:
            first = rows.parts[0]
            new = shape_of_file(first, first.relative_to(rows.root))
            refuse_difference(root, _shape_there(S3Folder(root, s3)), new)
        names = {}
        for number, part in enumerate(rows.parts):
            folder = part.relative_to(rows.root).parent
            names[(folder / f"part-{request.run}-{request.number}-{number:05d}.parquet").as_posix()] = part
        try:
            mark = mark_of(request)
            begun = {
                name: begin_upload(s3, root.inside(name), mark, area.path, area.storage, connection) for name in names
            }
            with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="objects") as pool:
                sent = list(pool.map(lambda n: upload_file(s3, root.inside(n), begun[n], names[n]), names))
        except BaseException as error:
            try:
                abort_staged(area.path, Surroundings(area.storage, request.project, request.profile))
            except Exception as also:  # the area remembers them for whoever comes
                error.add_note(f"and its uploads could not be aborted now: {also}")
            raise
        return Prepared(
            destination=request.destination,
            type=request.type,
            mode=request.mode,
            staging=str(area.path),
            rows=sum(pq.read_metadata(part).num_rows for part in rows.parts),
            bytes=sum(upload.size for upload in sent),
            instructions={
                "format": self.type,
                "connection": connection,
                "id": f"{request.run}-{request.number}",
                "uploads": {name: upload.to_json() for name, upload in zip(names, sent, strict=True)},
            },
        )

    def publish(self, prepared: Prepared, around: Surroundings) -> Outcome:
        with target_of(prepared, around).opened(prepared.instructions["id"]) as opened:
            if (done := done_before(prepared, opened)) is not None:
                return done
            uploads = {n: Uploaded.from_json(u) for n, u in prepared.instructions["uploads"].items()}
            _require(opened, uploads)
            outcome = Outcome(
                inserted=prepared.rows,
                updated=0,
                deleted=0,
                files={"rewritten": 0, "added": len(uploads), "preserved": len(opened.files())},
                paths=tuple(str(upload.address) for upload in uploads.values()),
            )
            opened.commit_uploads(uploads, (), asdict(outcome))
            return outcome

    def is_decided(self, prepared: Prepared, around: Surroundings) -> bool:
        return is_decided(prepared, around)

    def discard(self, prepared: Prepared, around: Surroundings) -> None:
        discard(prepared, around)


def target_of(prepared: Prepared, around: Surroundings) -> S3Folder:
    root = parse_address(prepared.destination)
    return S3Folder(root, storage_for(around.profile.connections, prepared.instructions["connection"], around.storage))


def done_before(prepared: Prepared, opened: OpenS3Folder) -> Outcome | None:
    """What this export did when it was published before; the journal knows."""
    note = opened.state.note_of(prepared.instructions["id"])
    return None if note is None else Outcome(**{**note, "paths": tuple(note["paths"])})


def is_decided(prepared: Prepared, around: Surroundings) -> bool:
    """Not known is decided too: it may have happened, and then it is not undone."""
    target = target_of(prepared, around)
    try:
        state = s3_journal.read(target.s3, target.address)
    except S3Unreachable:
        return True
    ours = prepared.instructions["id"]
    return state.note_of(ours) is not None or (state.change is not None and state.change.identity == ours)


def discard(prepared: Prepared, around: Surroundings) -> None:
    """Abort what is not needed any more. A change that is decided needs its uploads: it is carried out first."""
    area = Path(prepared.staging)
    if area.is_dir():
        target = target_of(prepared, around)
        pending = s3_journal.read(target.s3, target.address).change
        if pending is not None and pending.identity == prepared.instructions["id"]:
            with target.opened(prepared.instructions["id"]):
                pass  # opening the dataset finishes it
        abort_staged(area, around)
    StagingArea.reopen(around.storage, area).discard()


def _require(opened: OpenS3Folder, uploads: Mapping[str, Uploaded]) -> None:
    """Before it is decided, and after the journal was read: who aborts uploads puts another journal first."""
    for upload in uploads.values():
        if opened.s3.parts(upload.address, upload.identity) is None:
            raise PublishError(
                f"the upload to {upload.address} is gone: somebody aborted it, or a rule of the bucket did",
                hint="run the pipeline again",
            )


def _shape_there(target: S3Folder) -> FileShape | None:
    """The shape of one of the files that are there: they are all alike."""
    objects = target.objects()
    if not objects:
        return None
    name = next(reversed(objects))
    with temporary_folder("lockgate-s3-") as scratch:
        mirror = Mirror(target.s3, Path(scratch), {name: objects[name]})
        return shape_of_file(Path(mirror.path_of(name)), PurePath(name))
