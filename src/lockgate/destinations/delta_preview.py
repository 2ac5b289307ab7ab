"""What a keyed export to a Delta table would do, found without a run: nothing is made, not even the log."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from lockgate.config import Project
from lockgate.destinations.keyed_records import Wanted
from lockgate.destinations.protocol import ExportRequest
from lockgate.merging.result import MergeResult
from lockgate.storage.local import LocalStorage
from lockgate.tables.merging import merge_table
from lockgate.tables.opening import newest_snapshot
from lockgate.tables.places import log_address, table_folder
from lockgate.tables.writable import LookedAt


def decided_merge(source: Any, request: ExportRequest) -> tuple[MergeResult, Path]:
    """The merge as far as its decision, and the folder of the table."""
    project = Project(request.project, request.profile)
    snapshot = newest_snapshot(log_address(project), request.destination)
    folder = Path(snapshot.location) if snapshot is not None else table_folder(project, request.destination)
    table = LookedAt(request.destination, folder, LocalStorage(), snapshot)
    return merge_table(table, source, dry_run=True, **asdict(Wanted.by(request))), folder
