"""A folder of Parquet files as one table: new files under new names, swapped in through the folder's journal."""

from __future__ import annotations

from pathlib import Path

from lockgate.destinations.options import Option, local_path, option_problems, path_problems
from lockgate.destinations.parquet_file import COMPRESSION
from lockgate.destinations.parquet_shape import refuse_other_shape
from lockgate.destinations.protocol import (
    DEFAULT_MAX_ROWS_PER_FILE,
    Complaint,
    ExportRequest,
    Layout,
    Outcome,
    Prepared,
    StagedRows,
)
from lockgate.errors import JournalError, PublishError, StageError
from lockgate.modes import KEYED_MODES
from lockgate.storage.local import LocalStorage
from lockgate.storage.staging import StagingArea
from lockgate.targets.folder import FolderTarget, is_hidden
from lockgate.targets.journal import Change
from lockgate.targets.journal import read as read_journal


class ParquetFolderDestination:
    type = "PARQUET"
    options = {
        "compression": COMPRESSION,
        "partition_by": Option(list),
        "max_rows_per_file": Option(int, positive=True),
    }

    def problems(self, request: ExportRequest) -> list[Complaint]:
        found = option_problems(request, self.options) + path_problems(request)
        columns = request.options.get("partition_by", [])
        if isinstance(columns, list) and not all(isinstance(c, str) and c for c in columns):
            found.append(Complaint("options", "bad-option", "option 'partition_by' must be a list of column names"))
        dotted = [c for c in columns if isinstance(c, str) and c.startswith(".")] if isinstance(columns, list) else []
        if dotted:
            message = f"a folder for the partition column {dotted[0]} would be hidden from every reader"
            found.append(Complaint("options", "bad-option", message, "rename the column"))
        if not path_problems(request) and local_path(request).resolve() in (
            request.project.resolve(),
            *request.project.resolve().parents,
        ):
            message = f"{request.destination!r} holds the project itself; a folder of data is a folder of its own"
            found.append(Complaint("destination", "bad-path", message, "name a folder inside the project"))
        if request.mode in KEYED_MODES:
            message = f"MODE {request.mode} on a Parquet folder is not available in this version"
            found.append(Complaint("mode", "mode-unavailable", message, "REPLACE and APPEND are"))
        hidden = [part for part in Path(request.destination).parts if is_hidden(part) and part not in (".", "..")]
        if hidden:
            message = f"{request.destination!r} has the hidden part {hidden[-1]!r}, which readers do not take for data"
            found.append(Complaint("destination", "bad-path", message, "use a name without a leading _ or ."))
        return found

    def layout(self, request: ExportRequest) -> Layout:
        return Layout(
            compression=request.options.get("compression", "snappy").lower(),
            partition_by=tuple(request.options.get("partition_by", ())),
            max_rows_per_file=request.options.get("max_rows_per_file", DEFAULT_MAX_ROWS_PER_FILE),
        )

    def staging_place(self, request: ExportRequest) -> Path:
        return local_path(request).resolve()

    def stage(self, request: ExportRequest, area: StagingArea, rows: StagedRows) -> Prepared:
        import pyarrow.parquet as pq

        root = self.staging_place(request)
        if area.path.parent != root:
            raise StageError(f"{area.path} is not inside {root}")
        FolderTarget(root, area.storage).refuse_delta()
        read_journal(root)  # a damaged one is found before anything is published
        if request.mode == "APPEND" and rows.parts:
            refuse_other_shape(root, rows.parts[0], rows.parts[0].relative_to(rows.root))
        moves = []
        count = size = 0
        for number, part in enumerate(rows.parts):
            count += pq.read_metadata(part).num_rows
            size += part.stat().st_size
            area.storage.fsync_file(part)
            partition = part.relative_to(rows.root).parent
            final = partition / f"part-{request.run}-{request.number}-{number:05d}.parquet"
            moves.append([part.relative_to(root).as_posix(), final.as_posix()])
        for folder in {f for part in rows.parts for f in part.parents if f.is_relative_to(rows.root)}:
            area.storage.fsync_folder(folder)
        return Prepared(
            destination=request.destination,
            type=request.type,
            mode=request.mode,
            staging=str(area.path),
            rows=count,
            bytes=size,
            instructions={"root": str(root), "moves": moves, "id": f"{request.run}-{request.number}"},
        )

    def publish(self, prepared: Prepared, storage: LocalStorage) -> Outcome:
        target = FolderTarget(Path(prepared.instructions["root"]), storage)
        moves = tuple((staged, final) for staged, final in prepared.instructions["moves"])
        with target.locked():  # finishes our own journal too, if we died right after deciding
            if not Path(prepared.staging).is_dir():
                raise PublishError(
                    f"what was staged for {prepared.destination} is gone: {prepared.staging}",
                    hint="run the pipeline again",
                )
            before = target.files()
            ours = {final for _, final in moves}
            if all((target.root / staged).exists() for staged, _ in moves):
                if prepared.mode == "APPEND" and moves:  # again, now that nobody else can change the folder
                    refuse_other_shape(target.root, target.root / moves[0][0], Path(moves[0][1]))
                removes = tuple(f for f in before if f not in ours) if prepared.mode == "REPLACE" else ()
                target.commit(Change(prepared.instructions["id"], Path(prepared.staging).name, moves, removes))
        kept = 0 if prepared.mode == "REPLACE" else len([f for f in before if f not in ours])
        return Outcome(
            inserted=prepared.rows,
            updated=0,
            deleted=None if prepared.mode == "REPLACE" else 0,
            files={"rewritten": 0, "added": len(moves), "preserved": kept},
            paths=tuple(str(target.root / final) for _, final in moves),
        )

    def is_decided(self, prepared: Prepared) -> bool:
        root = Path(prepared.instructions["root"])
        if not all((root / staged).exists() for staged, _ in prepared.instructions["moves"]):
            return True
        try:
            pending = read_journal(root)
        except JournalError:  # somebody's damaged journal: ours cannot have been written beside it
            return False
        return pending is not None and pending.identity == prepared.instructions["id"]

    def discard(self, prepared: Prepared, storage: LocalStorage) -> None:
        StagingArea.reopen(storage, Path(prepared.staging)).discard()
