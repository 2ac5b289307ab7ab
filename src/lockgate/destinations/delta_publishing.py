"""Staging and publishing exports to Delta tables: the part that needs Arrow and the log."""

from __future__ import annotations

import json
import logging
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from lockgate.datasets.by_spark import active_session
from lockgate.destinations.delta_changes import prepared_change
from lockgate.destinations.delta_records import OUTCOME, DeltaChange, DeltaExport, outcome_from, outcome_text
from lockgate.destinations.protocol import ExportRequest, Layout, Outcome, Prepared, StagedRows, Surroundings
from lockgate.errors import (
    CommitStateUnknown,
    OutcomeUnknown,
    PublishError,
    StageError,
    VersionConflict,
    WatermarkMoved,
)
from lockgate.merging.strategy import MergeStrategy
from lockgate.storage.local import LocalStorage
from lockgate.storage.staging import StagingArea
from lockgate.tables.opening import opened_log, published, refuse_other_files, registered
from lockgate.tables.writable import TRIES
from lockgate.targets.delta import DeltaTarget, commit_all
from lockgate.targets.described import ChangeDetails
from lockgate.txlog.actions import Add, from_json
from lockgate.txlog.commits import Note, TableCommit
from lockgate.txlog.reading_features import DELETION_VECTORS
from lockgate.txlog.schema_json import arrow_schema
from lockgate.txlog.writer import TxnLogWriter

log = logging.getLogger("lockgate.merge")

_AHEAD = "change"  # in the area: files written for the change that is made ready while staging


def staged_export(
    request: ExportRequest, area: StagingArea, rows: StagedRows, layout: Layout, address: str
) -> Prepared:
    """Make the change ready, for the version that the table has now."""
    root = area.path.parent
    for part in rows.parts:
        area.storage.fsync_file(part)
    for folder in {f for part in rows.parts for f in part.parents if f.is_relative_to(rows.root)}:
        area.storage.fsync_folder(folder)
    export = DeltaExport.by(request, root, rows.root, rows.schema, layout.partition_by)
    _refuse_other_zone(export)
    with opened_log(address, area.storage) as txn_log:
        target = _target(export, txn_log, area.storage)
        if target.snapshot is None and not txn_log.has_table(export.table):
            refuse_other_files(root)
        change = prepared_change(export, target, area.path / _AHEAD)
    return Prepared(
        destination=request.destination,
        type=request.type,
        mode=request.mode,
        staging=str(area.path),
        rows=sum(pq.read_metadata(part).num_rows for part in rows.parts),
        bytes=sum(part.stat().st_size for part in rows.parts),
        instructions={"export": export.to_json(), "change": change.to_json()},
    )


def _refuse_other_zone(export: DeltaExport) -> None:
    """Spark spells instants in the names of folders by the zone of its session, and does not say so there."""
    instants = [c for c in export.staged_by if arrow_schema(export.schema).field(c).type == pa.timestamp("us", "UTC")]
    session = active_session() if instants else None
    zone = session.conf.get("spark.sql.session.timeZone", "UTC") if session is not None else "UTC"
    if zone not in ("UTC", "Etc/UTC"):
        raise StageError(
            f"the table {export.table} is partitioned by the timestamp {instants[0]}, and the Spark session has the "
            f"zone {zone}",
            in_place="nothing was published; every destination is as it was",
            hint="set spark.sql.session.timeZone to UTC, or partition by a date",
        )


def publish_exports(prepared: Sequence[Prepared], around: Surroundings, address: str) -> list[Outcome]:
    """Each transaction has one change a table: exports to one table follow each other, all else is at once."""
    exports = [DeltaExport.from_json(each.instructions["export"]) for each in prepared]
    outcomes: dict[int, Outcome] = {}
    with opened_log(address, around.storage) as txn_log:
        rounds = _rounds(exports)
        for number, members in enumerate(rounds):
            together = [prepared[i] for i in members]
            notes = around.notes if number == len(rounds) - 1 else ()  # with the last rows that they stand for
            txn_id = _transaction(exports[members[0]].run, number)
            try:
                done = _publish_round(together, txn_id, around.storage, txn_log, notes)
            except CommitStateUnknown as error:
                raise OutcomeUnknown(error.message, in_place=error.in_place, hint="reach the log again") from error
            outcomes.update(zip(members, done, strict=True))
        for table in sorted({export.table for export in exports}):
            if txn_log.has_table(table):
                published(txn_log, table)
    return [outcomes[i] for i in range(len(prepared))]


def is_committed(prepared: Prepared, address: str) -> bool:
    """Whether the log has a transaction of the run with this table."""
    export = DeltaExport.from_json(prepared.instructions["export"])
    with opened_log(address) as txn_log:
        return any(
            export.table in txn_log.find_transaction(_transaction(export.run, number))
            for number in range(export.number)
        )


def _rounds(exports: Sequence[DeltaExport]) -> list[list[int]]:
    """The exports by transaction: the first of each table, the second of each, and so on."""
    seen: Counter[str] = Counter()
    rounds: list[list[int]] = []
    for i, export in enumerate(exports):
        if seen[export.table] == len(rounds):
            rounds.append([])
        rounds[seen[export.table]].append(i)
        seen[export.table] += 1
    return rounds


def _transaction(run: str, number: int) -> str:
    return f"lockgate-run-{run}-{number}"


def _publish_round(
    members: Sequence[Prepared], txn_id: str, storage: LocalStorage, txn_log: TxnLogWriter, notes: Sequence[Note]
) -> list[Outcome]:
    exports = [DeltaExport.from_json(each.instructions["export"]) for each in members]
    changes = [DeltaChange.from_json(each.instructions["change"]) for each in members]
    for tried in range(1, TRIES + 1):
        done = txn_log.find_transaction(txn_id)
        if done:  # by a process that died before it could say so, or whose reply was lost
            return [_recorded(txn_log, e, c, done) for e, c in zip(exports, changes, strict=True)]
        _refuse_repeated(notes, txn_log)
        changes = [
            _current(each, export, change, txn_log, storage, tried)
            for each, export, change in zip(members, exports, changes, strict=True)
        ]
        try:
            versions = _commit(exports, changes, txn_id, storage, txn_log, notes)
        except VersionConflict as error:
            if tried == TRIES:
                error.hint = f"the change was made ready {TRIES} times; resume when fewer write to the table"
                raise
            log.info("a table was changed meanwhile, making the change ready again: %s", error.message)
            time.sleep(0.02 * 2**tried)
            continue
        return [
            replace(change.outcome, version=versions.get(export.table, change.read_version))
            for export, change in zip(exports, changes, strict=True)
        ]
    raise AssertionError("unreachable")


def _refuse_repeated(notes: Sequence[Note], txn_log: TxnLogWriter) -> None:
    """Another run, maybe of another machine, has read the same rows of an incremental source and published them."""
    for note in notes:
        found = txn_log.notes(note.name).get("")
        if found is not None and found[0] > note.base:
            source = note.name.rpartition(" ")[2]
            raise WatermarkMoved(
                f"another run has published the rows of the source {source} meanwhile",
                in_place="this run published nothing; every destination is as that run leaves it",
                hint="run the pipeline again: it takes what is new since then",
            )


def _current(
    prepared: Prepared,
    export: DeltaExport,
    change: DeltaChange,
    txn_log: TxnLogWriter,
    storage: LocalStorage,
    tried: int,
) -> DeltaChange:
    """The change if it still holds, else one that is made ready for the table as it is now."""
    target = _target(export, txn_log, storage)
    newest = target.snapshot.version if target.snapshot is not None else None
    if newest == change.read_version and change.is_staged(target.root) and tried == 1:
        return change
    if change.is_staged(target.root) and tried == 1 and _may_be_rebased(change, newest):
        return change
    if not (target.root / export.rows).is_dir():
        raise PublishError(
            f"what was staged for {prepared.destination} is gone: {prepared.staging}", hint="run the pipeline again"
        )
    return prepared_change(export, target, Path(prepared.staging) / f"again-{time.time_ns():x}")


def _may_be_rebased(change: DeltaChange, newest: int | None) -> bool:
    """Whether the log itself can tell if the change still holds: it has something to commit, on a table that was."""
    return newest is not None and change.read_version is not None and bool(change.moves or change.removes)


def _commit(
    exports: Sequence[DeltaExport],
    changes: Sequence[DeltaChange],
    txn_id: str,
    storage: LocalStorage,
    txn_log: TxnLogWriter,
    notes: Sequence[Note],
) -> dict[str, int]:
    both = list(zip(exports, changes, strict=True))
    wanted = [each for each in both if not _changes_nothing(*each)]
    if notes and not wanted:  # then a version without rows keeps them: the log must know how far the source was read
        wanted = [each for each in both if each[1].read_version is not None][:1]
    with ExitStack() as stack:
        commits, placed = [], []
        for export, change in wanted:
            root = export.root
            storage.make_folders(root)
            registered(txn_log, export.table, root)
            files = {name: root / staged for name, staged in change.moves.items()}
            placed.append(stack.enter_context(_target(export, txn_log, storage, change).placing(files)))
            commits.append(_table_commit(export, change, txn_log, storage))
        return commit_all(txn_log, commits, placed, txn_id=txn_id, notes=notes) if commits else {}


def _changes_nothing(export: DeltaExport, change: DeltaChange) -> bool:
    if change.moves or change.removes or change.removes_all:
        return False
    if change.read_version is not None:
        return change.schema is None
    return export.merge is not None and not MergeStrategy(export.merge.strategy).actions.creates


def _table_commit(
    export: DeltaExport, change: DeltaChange, txn_log: TxnLogWriter, storage: LocalStorage
) -> TableCommit:
    target = _target(export, txn_log, storage, change)
    details = ChangeDetails(
        schema=arrow_schema(change.schema) if change.schema is not None else None,
        partition_columns=change.partition_columns,
        replaces_schema=change.replaces_schema,
        read=change.read,
        read_all=change.read_all,
        operation=change.operation,
        parameters={**change.parameters, "run": export.run},
        metrics={OUTCOME: outcome_text(change.outcome)},
    )
    adds = [add for add in map(from_json, change.adds) if isinstance(add, Add)]
    removes = target.files() if change.removes_all else list(change.removes)
    return target.commit_with(adds, removes, details)


def _target(
    export: DeltaExport, txn_log: TxnLogWriter, storage: LocalStorage, change: DeltaChange | None = None
) -> DeltaTarget:
    """The table as it is now, or as it was when the change was made ready."""
    there = txn_log.has_table(export.table) and txn_log.current_version(export.table) >= 0
    snapshot = None
    if there and change is None:
        snapshot = txn_log.snapshot(export.table, understood=(DELETION_VECTORS,))
    elif change is not None and change.read_version is not None:
        snapshot = txn_log.snapshot(export.table, version=change.read_version, understood=(DELETION_VECTORS,))
    if snapshot is not None and Path(snapshot.location) != export.root:
        raise StageError(
            f"the table {export.table} is in {snapshot.location}, and its rows are staged for {export.folder}",
            in_place="nothing was published; every destination is as it was",
            hint="run the pipeline again",
        )
    return DeltaTarget(export.root, export.table, txn_log, storage, snapshot=snapshot)


def _recorded(txn_log: TxnLogWriter, export: DeltaExport, change: DeltaChange, done: dict[str, int]) -> Outcome:
    """What a transaction that went through has done, as its commit says."""
    version = done.get(export.table)
    if version is None:  # there was nothing to commit to this table
        return replace(change.outcome, version=change.read_version)
    record = next(each for each in txn_log.history(export.table) if each.version == version)
    outcome = outcome_from(json.loads(record.metrics[OUTCOME]))
    return replace(outcome, version=version, paths=change.outcome.paths)
