"""The merge itself: strategy × engine × target. This file reads like the definition of a merge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import pyarrow as pa

from lockgate.errors import DatasetMergeError
from lockgate.merging.counts import compute_merge_stats
from lockgate.merging.decisions import Decision, decide
from lockgate.merging.protocol import Added, DataFile, Engine, OpenTarget, Rewrite, Rows, Source, Target, Written
from lockgate.merging.result import MergeFileMetadata, MergeResult
from lockgate.merging.schema import agree, require_keys
from lockgate.merging.shape import Shape, shape_of
from lockgate.merging.strategy import MergeStrategy
from lockgate.targets.described import NOTHING_TO_SAY, ChangeDetails


@dataclass(frozen=True)
class MergeRequest:
    """What the caller asked for."""

    strategy: MergeStrategy
    key_columns: tuple[str, ...]
    identity: str
    partition_by: tuple[str, ...] | None = None  # None: as the dataset is
    schema: Literal["strict", "evolve"] = "strict"
    order_by: Sequence[str] = ()
    skip_unchanged: bool = False
    allow_partition_moves: bool = False
    dry_run: bool = False
    compression: str | None = None
    max_rows_per_file: int = 5_000_000
    row_group_size: int = 500_000
    shown_root: str = ""  # how the caller spelled the path; results name files by it


@dataclass(frozen=True)
class StagedMerge:
    """A merge that is staged and durable, and not yet visible."""

    result: MergeResult
    moves: Mapping[str, Path] = field(default_factory=dict)  # names in the dataset -> staged files
    removes: Sequence[str] = ()
    details: ChangeDetails = NOTHING_TO_SAY


def merge_rows(source: Source[Rows], target: Target, engine: Engine[Rows], request: MergeRequest) -> MergeResult:
    """Merge the source into the target. Nothing is visible until all of it is."""
    source, nothing = checked_source(source, request)
    if not target.exists() and not request.strategy.actions.creates:
        return nothing
    with target.opened(request.identity, dry_run=request.dry_run) as opened:
        staged = stage_merge(source, opened, engine, request, nothing)
        if staged.moves or staged.removes:
            version = opened.commit(staged.moves, staged.removes, staged.details)
            return replace(staged.result, version=version)
        return staged.result


def checked_source(source: Source[Rows], request: MergeRequest) -> tuple[Source[Rows], MergeResult]:
    """The source with one row a key, and the result of a merge that has not changed anything yet."""
    given = source.rows
    if request.strategy.actions.deduplicates:
        source = source.deduplicated(request.key_columns, request.order_by)
    else:
        source = source.checked(request.key_columns)
    return source, MergeResult(
        request.strategy.value, given, 0, 0, 0, 0, 0, deduplicated=given - source.rows, dry_run=request.dry_run
    )


def stage_merge(
    source: Source[Rows], opened: OpenTarget, engine: Engine[Rows], request: MergeRequest, nothing: MergeResult
) -> StagedMerge:
    """Find, decide and write. A dry run stops before the first byte."""
    shape = shape_of(opened, source.schema, request.partition_by, engine.read_footers)
    if not shape.files and not request.strategy.actions.creates:
        return StagedMerge(nothing)
    require_keys(shape.schema, "target", request.key_columns)
    schema = shape.schema if shape.is_new else shape.held(agree(source.schema, shape.schema, mode=request.schema))
    rows = source.fitted(schema, request.key_columns, shape.partition_columns)
    candidates = shape.candidates(rows.key_bounds())
    shape = shape.knowing(candidates)
    found = engine.find(candidates, rows, request.strategy, compare=request.skip_unchanged)
    decision = decide(
        request.strategy,
        shape.files,
        found,
        rows,
        allow_partition_moves=request.allow_partition_moves,
        schema_in_files=shape.schema_in_files,
    )
    result = replace(nothing, engine=engine.name)
    if request.dry_run:
        return StagedMerge(_planned(result, decision, shape, request))
    with ThreadPoolExecutor(1) as beside:
        adding = None
        if decision.added or shape.needs_first_file:
            adding = beside.submit(engine.add, found, rows, shape.new_files(schema, opened.staging(), request))
        rewritten = _rewrite(opened, engine, decision, rows, shape, schema, request)
        added = adding.result() if adding else []
    names = [opened.name_when_rewritten(r.file.name, n) for n, (r, _) in enumerate(rewritten)]
    old = [r.file.name for (r, _), name in zip(rewritten, names, strict=True) if name != r.file.name]
    done = _done(result, decision, shape, list(zip(names, [w for _, w in rewritten], strict=True)), added, request)
    return StagedMerge(
        done,
        moves=dict(zip(names, [w.path for _, w in rewritten], strict=True)) | {a.name: a.written.path for a in added},
        removes=old + [f.name for f in decision.removed],
        details=ChangeDetails(
            partitions={name: r.file.partition for name, (r, _) in zip(names, rewritten, strict=True)}
            | shape.partitions_of([a.name for a in added], schema),
            schema=schema,
            partition_columns=shape.partition_columns,
            read=tuple(f.name for f in candidates),
            read_all=request.strategy.actions.others == "remove",
            operation="MERGE",
            parameters={"strategy": request.strategy.value, "keys": list(request.key_columns)},
            metrics={
                "numTargetRowsInserted": done.inserted,
                "numTargetRowsUpdated": done.updated,
                "numTargetRowsDeleted": done.deleted,
                "numTargetFilesAdded": len(done.rewritten_files) + len(done.inserted_files),
                "numTargetFilesRemoved": len(old) + len(decision.removed),
            },
        ),
    )


def _rewrite(
    opened: OpenTarget,
    engine: Engine[Rows],
    decision: Decision,
    source: Rows,
    shape: Shape,
    schema: pa.Schema,
    request: MergeRequest,
) -> list[tuple[Rewrite, Written]]:
    jobs = [
        Rewrite(
            file=change.file,
            matches=change.matches,
            keep_others=change.keep_others,
            staged=opened.staging() / f"old-{number:05d}.parquet",
            schema=shape.needed_schema(change.file, schema),
        )
        for number, change in enumerate(decision.changes)
    ]
    written = engine.rewrite(jobs, source) if jobs else []
    for job, file in zip(jobs, written, strict=True):
        if file.rows != job.rows_after:
            raise DatasetMergeError(
                f"the {engine.name} engine wrote {file.rows} rows for {job.file.name} where {job.rows_after} were due",
                strategy=request.strategy,
                key_columns=request.key_columns,
                files=(job.file.path,),
                hint="please report this; another engine may do the merge",
            )
    return list(zip(jobs, written, strict=True))


def _done(
    result: MergeResult,
    decision: Decision,
    shape: Shape,
    rewritten: Sequence[tuple[str, Written]],
    added: Sequence[Added],
    request: MergeRequest,
) -> MergeResult:
    """The result, with its counts taken from the files that were staged."""
    after = (
        sum(w.rows for _, w in rewritten)
        + sum(a.written.rows for a in added)
        + sum(f.rows for f in _untouched(decision, shape))
    )
    files = [MergeFileMetadata(_shown(name, request), w.rows, "rewritten", w.size) for name, w in rewritten] + [
        MergeFileMetadata(_shown(a.name, request), a.written.rows, "inserted", a.written.size) for a in added
    ]
    return _with_files(result, decision, shape, files, after, request)


def _planned(result: MergeResult, decision: Decision, shape: Shape, request: MergeRequest) -> MergeResult:
    """What a dry run says: the same counts, and the files that would be rewritten."""
    after = decision.target_before + decision.inserted - decision.deleted
    files = [
        MergeFileMetadata(_shown(change.file.name, request), change.rows_after, "rewritten")
        for change in decision.changes
    ]
    return _with_files(result, decision, shape, files, after, request)


def _with_files(
    result: MergeResult,
    decision: Decision,
    shape: Shape,
    files: list[MergeFileMetadata],
    after: int,
    request: MergeRequest,
) -> MergeResult:
    stats = compute_merge_stats(
        strategy=request.strategy,
        target_before=decision.target_before,
        target_after=after,
        inserted_rows=decision.inserted,
        updated_rows=decision.updated,
        deleted_rows=decision.deleted,
    )
    untouched = [MergeFileMetadata(_shown(f.name, request), f.rows, "preserved") for f in _untouched(decision, shape)]
    return replace(
        result,
        target_count_before=decision.target_before,
        target_count_after=stats.total,
        inserted=stats.inserted,
        updated=stats.updated,
        deleted=stats.deleted,
        files=files + untouched,
        rewritten_files=[f.path for f in files if f.operation == "rewritten"],
        inserted_files=[f.path for f in files if f.operation == "inserted"],
        preserved_files=[f.path for f in untouched],
        removed_files=[_shown(f.name, request) for f in decision.removed],
    )


def _untouched(decision: Decision, shape: Shape) -> list[DataFile]:
    touched = {c.file.name for c in decision.changes} | {f.name for f in decision.removed}
    return [f for f in shape.files if f.name not in touched]


def _shown(name: str, request: MergeRequest) -> str:
    return f"{request.shown_root}/{name}"
