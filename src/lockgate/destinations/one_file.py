"""One file as a destination: staged beside it, swapped in by a rename. CSV, JSON and single Parquet files share it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path

from lockgate.destinations.options import Option, local_path, option_problems, path_problems
from lockgate.destinations.protocol import Complaint, ExportRequest, Layout, Outcome, Prepared, StagedRows, Surroundings
from lockgate.errors import PublishError, StageError
from lockgate.modes import KEYED_MODES
from lockgate.storage.local import LocalStorage
from lockgate.storage.staging import StagingArea

LONGEST_NAME = 200  # leaves room for what APPEND adds
KEYED_HINT = 'keyed modes need a table: a Parquet folder (TYPE PARQUET, TO "folder")'


class OneFileDestination(ABC):
    """REPLACE swaps the file; APPEND adds `<stem>-<run>-<n><suffix>` beside it and never edits in place."""

    type: str
    options: Mapping[str, Option]

    def problems(self, request: ExportRequest) -> list[Complaint]:
        found = option_problems(request, self.options) + path_problems(request)
        if request.mode in KEYED_MODES:
            message = f"MODE {request.mode} is not possible on one {self.type} file: rows in it cannot be found by key"
            found.append(Complaint("mode", "mode-unsupported", message, KEYED_HINT))
        if len(Path(request.destination).name.encode()) > LONGEST_NAME:
            message = f"the name of the file is longer than {LONGEST_NAME} bytes, and filesystems end at 255"
            found.append(Complaint("destination", "bad-path", message, "shorten it; APPEND adds the run to it"))
        if request.destination.endswith("/"):
            message = f"TYPE {self.type} writes one file, and {request.destination!r} names a folder"
            found.append(Complaint("destination", "bad-path", message, "name the file"))
        return found

    @abstractmethod
    def layout(self, request: ExportRequest) -> Layout: ...

    @abstractmethod
    def write(self, request: ExportRequest, rows: StagedRows, file: Path, storage: LocalStorage) -> int:
        """Make `file` of the staged rows, durably; returns the number of rows."""

    def staging_place(self, request: ExportRequest) -> Path:
        return final_path(request).parent

    def stage(self, request: ExportRequest, area: StagingArea, rows: StagedRows) -> Prepared:
        final = final_path(request)
        refuse_what_is_no_file(final, self.type)
        staged = area.path / "result"
        count = self.write(request, rows, staged, area.storage)
        area.storage.fsync_folder(area.path)
        return Prepared(
            destination=request.destination,
            type=request.type,
            mode=request.mode,
            staging=str(area.path),
            rows=count,
            bytes=staged.stat().st_size,
            instructions={"staged": str(staged), "final": str(final)},
        )

    def publish(self, prepared: Prepared, around: Surroundings) -> Outcome:
        storage = around.storage
        staged, final = Path(prepared.instructions["staged"]), Path(prepared.instructions["final"])
        replaced = final.exists()
        if staged.exists():
            refuse_what_is_no_file(final, self.type)
            if replaced:
                storage.keep_attributes(final, staged)
            storage.replace(staged, final)
        elif not Path(prepared.staging).is_dir():
            raise PublishError(
                f"what was staged for {prepared.destination} is gone: {prepared.staging}",
                hint="run the pipeline again",
            )
        # Either it was swapped in just now, or before a crash that may have come before this sync.
        storage.fsync_folder(final.parent)
        files = {"rewritten": int(replaced), "added": int(not replaced), "preserved": 0}
        deleted = None if prepared.mode == "REPLACE" else 0
        return Outcome(inserted=prepared.rows, updated=0, deleted=deleted, files=files, paths=(str(final),))

    def is_decided(self, prepared: Prepared, around: Surroundings) -> bool:
        del around
        return not Path(prepared.instructions["staged"]).exists()

    def discard(self, prepared: Prepared, around: Surroundings) -> None:
        StagingArea.reopen(around.storage, Path(prepared.staging)).discard()


def final_path(request: ExportRequest) -> Path:
    """The file that will appear. A link is followed, so that the link stays and its target is replaced."""
    path = local_path(request)
    if request.mode == "APPEND":
        stem, suffix = split_suffixes(path.name)
        path = path.with_name(f"{stem}-{request.run}-{request.number}{suffix}")
    return path.resolve() if path.is_symlink() else path.parent.resolve() / path.name


def refuse_what_is_no_file(final: Path, kind: str) -> None:
    """A folder cannot be replaced by a file, and a device or a pipe must not be."""
    if final.exists() and not final.is_file():
        what = "a folder" if final.is_dir() else "no regular file"
        raise StageError(
            f"{final} is {what}, and TYPE {kind} writes one file",
            in_place="it is as it was",
            hint="name a file inside it" if final.is_dir() else "name another file",
        )


def split_suffixes(name: str) -> tuple[str, str]:
    """A file name as stem and suffix, where a compression suffix belongs to the one before it.

    >>> split_suffixes("daily.csv.gz")
    ('daily', '.csv.gz')
    >>> split_suffixes("v1.2.json")
    ('v1.2', '.json')
    """
    path = Path(name)
    suffix = path.suffix
    stem = path.stem
    if suffix.lower() in COMPRESSION_OF_SUFFIX and Path(stem).suffix:
        suffix = Path(stem).suffix + suffix
        stem = Path(stem).stem
    return stem, suffix


COMPRESSION_OF_SUFFIX = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd", ".lz4": "lz4"}
