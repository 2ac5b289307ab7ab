"""UPSERT, INSERT, UPDATE, FULL_MERGE and DEDUPLICATE into a folder of Parquet files.

The merge is done while staging: its files lie in the export's area, beside the rows that Spark staged. To publish it
is to swap these files in, if the dataset is still the one that they were made for; else the staged rows are merged
again, now with the dataset held.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lockgate.destinations.folder_problems import FOLDER_OPTIONS, MERGE_OPTIONS, folder_problems
from lockgate.destinations.folder_staging import discard_staged_folder, is_pending, refuse_bad_place, require_staged
from lockgate.destinations.keyed_records import Decision, DoneMark, Wanted, fingerprint
from lockgate.destinations.options import local_path
from lockgate.destinations.protocol import Complaint, ExportRequest, Layout, Outcome, Prepared, StagedRows, Surroundings
from lockgate.errors import SchemaMismatchError
from lockgate.merging.order import parse_order_by
from lockgate.storage.staging import StagingArea
from lockgate.targets.journal import read as read_journal
from lockgate.targets.open_folder import DatasetFolder, OpenFolder

if TYPE_CHECKING:
    from lockgate.destinations.keyed_merge import KeyedMerge

_AHEAD, _AGAIN = "merge", "again"  # in the area: the merge made while staging, and the one made while publishing


class ParquetKeyedDestination:
    type = "PARQUET"
    options = {**FOLDER_OPTIONS, **MERGE_OPTIONS}

    def problems(self, request: ExportRequest) -> list[Complaint]:
        found = folder_problems(request, self.options)
        try:
            parse_order_by(request.order_by)
        except SchemaMismatchError as error:
            message = error.message.replace("order_by", "ORDER BY")
            found.append(Complaint("mode", "mode", message, "name columns, each with ASC or DESC: updated_at DESC, id"))
        return found

    def layout(self, request: ExportRequest) -> Layout:
        del request
        return Layout()  # the merge lays out the dataset's files, whatever the staged ones look like

    def staging_place(self, request: ExportRequest) -> Path:
        return local_path(request).resolve()

    def stage(self, request: ExportRequest, area: StagingArea, rows: StagedRows) -> Prepared:
        import pyarrow.parquet as pq

        root = self.staging_place(request)
        refuse_bad_place(area, root)
        for part in rows.parts:
            area.storage.fsync_file(part)
        area.storage.fsync_folder(rows.root)
        instructions = {
            "root": str(root),
            "id": f"{request.run}-{request.number}",
            "rows": rows.root.relative_to(root).as_posix(),
            "merge": asdict(Wanted.by(request)),
        }
        decision = _merge(instructions, DatasetFolder(root, area.storage), area.path / _AHEAD).ahead()
        return Prepared(
            destination=request.destination,
            type=request.type,
            mode=request.mode,
            staging=str(area.path),
            rows=sum(pq.read_metadata(part).num_rows for part in rows.parts),
            bytes=sum(part.stat().st_size for part in rows.parts),
            instructions={**instructions, "decision": decision.to_json()},
        )

    def publish(self, prepared: Prepared, around: Surroundings) -> Outcome:
        storage = around.storage
        require_staged(prepared)
        area = Path(prepared.staging)
        target = DatasetFolder(Path(prepared.instructions["root"]), storage)
        decision = Decision.from_json(prepared.instructions["decision"])
        mark = DoneMark(area)
        done = mark.read()
        if done is not None and not is_pending(prepared):
            storage.fsync_folder(target.root)  # who carried it out may have died just before
            return done
        if done is None and decision.changes_nothing and _is_as_it_was(target, decision):
            mark.set(storage, decision.outcome)  # no lock: a dataset that is not there needs none made for it
            return decision.outcome
        with target.opened(prepared.instructions["id"], staging=area / _AGAIN) as opened:
            done = mark.read()  # again: on the way in, a journal that we had left was carried out
            if done is not None:
                return done
            if fingerprint(target) != decision.dataset or not decision.is_staged(target.root):
                storage.remove_tree(area / _AHEAD)
                decision = _merge(prepared.instructions, target, area / _AGAIN).held(opened)
            _commit(decision, opened, mark, target)
            return decision.outcome

    def is_decided(self, prepared: Prepared, around: Surroundings) -> bool:
        del around
        return DoneMark(Path(prepared.staging)).path.exists() or is_pending(prepared)

    def discard(self, prepared: Prepared, around: Surroundings) -> None:
        discard_staged_folder(prepared, around.storage)


def _merge(instructions: Mapping[str, Any], target: DatasetFolder, folder: Path) -> KeyedMerge:
    from lockgate.destinations.keyed_merge import KeyedMerge

    return KeyedMerge(
        target=target,
        identity=instructions["id"],
        wanted=Wanted.from_json(instructions["merge"]),
        rows=target.root / instructions["rows"],
        folder=folder,
    )


def _is_as_it_was(target: DatasetFolder, decision: Decision) -> bool:
    return read_journal(target.root) is None and fingerprint(target) == decision.dataset


def _commit(decision: Decision, opened: OpenFolder, mark: DoneMark, target: DatasetFolder) -> None:
    """Swap in the files and set the mark, all at once."""
    if decision.changes_nothing:
        mark.set(target.storage, decision.outcome)
        return
    mark.write_draft(target.storage, decision.outcome)
    moves = {final: target.root / staged for final, staged in decision.moves.items()}
    opened.commit({**moves, mark.path.relative_to(target.root).as_posix(): mark.draft}, decision.removes)
