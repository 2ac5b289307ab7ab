"""A folder of Parquet files as one table: new files under new names, swapped in through the folder's journal."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from lockgate.destinations.folder_problems import FOLDER_OPTIONS, MERGE_OPTIONS, folder_problems
from lockgate.destinations.folder_staging import discard_staged_folder, is_pending, refuse_bad_place, require_staged
from lockgate.destinations.options import local_path
from lockgate.destinations.parquet_shape import refuse_other_shape
from lockgate.destinations.protocol import (
    DEFAULT_MAX_ROWS_PER_FILE,
    Complaint,
    ExportRequest,
    Layout,
    Outcome,
    Prepared,
    StagedRows,
    Surroundings,
)
from lockgate.modes import KEYED_MODES
from lockgate.storage.staging import StagingArea
from lockgate.targets.folder import FolderTarget
from lockgate.targets.journal import Change


class ParquetFolderDestination:
    """REPLACE and APPEND. The keyed modes are in `parquet_keyed`."""

    type = "PARQUET"
    options = FOLDER_OPTIONS

    def problems(self, request: ExportRequest) -> list[Complaint]:
        for_merges = [name for name in request.options if name in MERGE_OPTIONS]
        others = {name: value for name, value in request.options.items() if name not in for_merges}
        hint = f"the keyed modes are {', '.join(KEYED_MODES)}"
        return [
            *folder_problems(replace(request, options=others), self.options),
            *(
                Complaint(
                    "options", "unknown-option", f"option {name!r} is for merges by key, not for {request.mode}", hint
                )
                for name in for_merges
            ),
        ]

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
        refuse_bad_place(area, root)
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

    def publish(self, prepared: Prepared, around: Surroundings) -> Outcome:
        storage = around.storage
        target = FolderTarget(Path(prepared.instructions["root"]), storage)
        moves = tuple((staged, final) for staged, final in prepared.instructions["moves"])
        with target.locked():  # finishes our own journal too, if we died right after deciding
            require_staged(prepared)
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

    def is_decided(self, prepared: Prepared, around: Surroundings) -> bool:
        del around
        root = Path(prepared.instructions["root"])
        moves = prepared.instructions["moves"]
        return not all((root / staged).exists() for staged, _ in moves) or is_pending(prepared)

    def discard(self, prepared: Prepared, around: Surroundings) -> None:
        discard_staged_folder(prepared, around.storage)
