"""Publishing: every staged export of a run is swapped in, one after the other, each step on record."""

from __future__ import annotations

from lockgate.destinations import registry
from lockgate.destinations.protocol import Destination, Surroundings
from lockgate.destinations.s3_leftovers import abort_staged
from lockgate.errors import LockgateError, OutcomeUnknown, PartialPublish, PublishError, ResumeError, StateError
from lockgate.modes import KEYED_MODES
from lockgate.running.progress import Progress
from lockgate.running.result import ExportResult
from lockgate.running.state import ExportRecord, RunState
from lockgate.storage.staging import StagingArea


def publish_exports(
    run: str, state: RunState, around: Surroundings, progress: Progress, results: dict[int, ExportResult]
) -> None:
    """Publish what the record says is staged and not yet published. Safe to call again at any point."""
    records = state.exports(run)
    lost = [r.name for r in records if r.status not in ("staged", "published")]
    if lost:
        raise ResumeError(
            f"what run {run} had staged for {', '.join(lost)} was discarded",
            in_place="its other exports, if any, are as they were published",
            hint="run the pipeline again",
        )
    done = sum(r.status == "published" for r in records)
    for record in records:
        if record.status == "published":  # by a process that may have died before it removed the area
            _clear(record, around, progress)
        if record.status != "staged" or record.prepared is None:
            continue
        result = results[record.number]
        try:
            with progress.working(f"publishing {record.name}"):
                outcome = destination_of(record).publish(record.prepared, around)
        except OutcomeUnknown as error:
            result.status = "unknown"
            raise _undecided(run, record, error, done, len(records)) from error
        except LockgateError as error:
            result.status = "failed"
            decided = destination_of(record).is_decided(record.prepared, around)
            raise _stopped(run, record, error, done, len(records), decided) from error
        state.export_published(run, record.number, outcome)
        result.take(outcome)
        done += 1
        # Only now: as long as the record says "staged", the area tells whether the swap has happened.
        _clear(record, around, progress)
        progress.done(record.name, _counts(result))


def _clear(record: ExportRecord, around: Surroundings, progress: Progress) -> None:
    """Remove what was staged for an export that is published; failing at that is no failure of the run."""
    try:
        discard_export(record, around)
    except LockgateError as error:
        progress.note(f"{record.name} is published, but its staging folder is still there: {error.message}")


def discard_export(record: ExportRecord, around: Surroundings) -> None:
    """Remove what was staged. What that is only the destination knows, once it has prepared something."""
    if record.prepared is not None:
        destination_of(record).discard(record.prepared, around)
    else:
        abort_staged(record.staging, around)
        StagingArea.reopen(around.storage, record.staging).discard()


def destination_of(record: ExportRecord) -> Destination:
    assert record.prepared is not None
    destination = registry.find(record.prepared.type)
    if destination is None:
        raise StateError(
            f"the run {record.run} staged {record.name} for TYPE {record.prepared.type}, which is not installed",
            hint="install the package that brings it, then resume",
        )
    return destination


def _stopped(
    run: str, record: ExportRecord, error: LockgateError, done: int, total: int, decided: bool
) -> LockgateError:
    reason = f"{record.name} could not be published: {error.message}"
    if done == 0 and not decided:
        return PublishError(reason, in_place="nothing was published; every destination is as it was", hint=error.hint)
    advice = f"{error.hint}; then " if error.hint else ""
    this_one = "this one is swapped in but not yet safe, " if decided else ""
    return PartialPublish(
        reason,
        in_place=f"published {done} of {total} exports; {this_one}the rest is staged",
        hint=f"{advice}run `lockgate resume {run}`",
    )


def _undecided(run: str, record: ExportRecord, error: OutcomeUnknown, done: int, total: int) -> OutcomeUnknown:
    advice = f"{error.hint}; then " if error.hint else ""
    return OutcomeUnknown(
        f"{record.name}: {error.message}",
        in_place=f"published {done} of {total} exports; {error.in_place}",
        hint=f"{advice}run `lockgate resume {run}`, which asks again and writes nothing twice",
    )


def _counts(result: ExportResult) -> str:
    if result.mode in KEYED_MODES:
        return result.changes
    rows = result.rows if result.rows is not None else result.inserted
    return f"{rows:,} rows" if rows is not None else ""
