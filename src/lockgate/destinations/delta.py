"""TYPE DELTA: a table of the profile's log, in all modes. All such exports of a run become visible in one transaction.

The staged files are the table's files: they get a second name in its folder, and the commit makes them part of it. A
keyed export is merged while staging. If another writer comes in between and the log finds that the two clash, the
staged rows are merged again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from lockgate.config import Project
from lockgate.destinations.folder_problems import FOLDER_OPTIONS, MERGE_OPTIONS, partition_problems
from lockgate.destinations.options import option_problems
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
from lockgate.errors import ArgumentError, LockgateError, SchemaMismatchError
from lockgate.merging.order import parse_order_by
from lockgate.modes import KEYED_MODES
from lockgate.storage.staging import StagingArea
from lockgate.tables.places import log_address, name_problem, table_folder


class DeltaDestination:
    type = "DELTA"
    options = {**FOLDER_OPTIONS, **MERGE_OPTIONS}

    def problems(self, request: ExportRequest) -> list[Complaint]:
        keyed = request.mode in KEYED_MODES
        only_keyed = [name for name in request.options if name in MERGE_OPTIONS and name != "schema"]
        if request.mode == "REPLACE" and "schema" in request.options:
            only_keyed.append("schema")
        others = request.options if keyed else {k: v for k, v in request.options.items() if k not in only_keyed}
        found = [
            *option_problems(replace(request, options=others), self.options),
            *partition_problems(request),
            *_place_problems(request),
        ]
        if not keyed:
            hint = f"the keyed modes are {', '.join(KEYED_MODES)}"
            for name in only_keyed:
                message = f"option {name!r} is for merges by key, not for {request.mode}"
                found.append(Complaint("options", "unknown-option", message, hint))
        try:
            parse_order_by(request.order_by)
        except SchemaMismatchError as error:
            message = error.message.replace("order_by", "ORDER BY")
            found.append(Complaint("mode", "mode", message, "name columns, each with ASC or DESC: updated_at DESC, id"))
        return found

    def layout(self, request: ExportRequest) -> Layout:
        if request.mode in KEYED_MODES:
            return Layout()  # the merge lays out the table's files, whatever the staged ones look like
        return Layout(
            compression=request.options.get("compression", "snappy").lower(),
            partition_by=_partition_by(request),
            max_rows_per_file=request.options.get("max_rows_per_file", DEFAULT_MAX_ROWS_PER_FILE),
        )

    def staging_place(self, request: ExportRequest) -> Path:
        found = _peeked(request)
        return Path(found[0]) if found is not None else table_folder(_project(request), request.destination)

    def stage(self, request: ExportRequest, area: StagingArea, rows: StagedRows) -> Prepared:
        from lockgate.destinations.delta_publishing import staged_export

        return staged_export(request, area, rows, self.layout(request), log_address(_project(request)))

    def publish(self, prepared: Prepared, around: Surroundings) -> Outcome:
        return self.publish_together([prepared], around)[0]

    def publish_together(self, prepared: Sequence[Prepared], around: Surroundings) -> list[Outcome]:
        """All of them in one transaction of the log; none twice, however often this is called."""
        from lockgate.destinations.delta_publishing import publish_exports

        return publish_exports(prepared, around, _address(around))

    def is_decided(self, prepared: Prepared, around: Surroundings) -> bool:
        from lockgate.destinations.delta_publishing import is_committed

        try:
            return is_committed(prepared, _address(around))
        except LockgateError:  # the log is out of reach: it may have happened
            return True

    def discard(self, prepared: Prepared, around: Surroundings) -> None:
        StagingArea.reopen(around.storage, Path(prepared.staging)).discard()


def _place_problems(request: ExportRequest) -> list[Complaint]:
    problem = name_problem(request.destination)
    if problem:
        return [Complaint("destination", "bad-path", problem, 'TYPE DELTA goes to a table: TO "sales.daily"')]
    try:
        table_folder(_project(request), request.destination)
        log_address(_project(request))
    except ArgumentError as error:
        return [Complaint("destination", "scheme-unavailable", error.message, error.hint)]
    return []


def _project(request: ExportRequest) -> Project:
    return Project(request.project, request.profile)


def _address(around: Surroundings) -> str:
    return log_address(Project(around.project, around.profile))


def _peeked(request: ExportRequest) -> tuple[str, tuple[str, ...]] | None:
    """Where the table is and its partition columns, or None. A log that is not there yet is not made for it."""
    from lockgate.tables.opening import place_and_partitions

    return place_and_partitions(log_address(_project(request)), request.destination)


def _partition_by(request: ExportRequest) -> tuple[str, ...]:
    if "partition_by" in request.options:
        return tuple(request.options["partition_by"])
    found = _peeked(request)
    return found[1] if found is not None else ()
