"""Publishing: every staged export of a run is swapped in, one after the other, each step on record."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import cast

from lockgate.destinations import registry
from lockgate.destinations.protocol import Destination, Outcome, Prepared, PublishesTogether, Surroundings
from lockgate.destinations.s3_leftovers import abort_staged
from lockgate.errors import (
    LockgateError,
    OutcomeUnknown,
    PartialPublish,
    PublishError,
    ResumeError,
    StateError,
    WatermarkMoved,
)
from lockgate.modes import KEYED_MODES
from lockgate.running.log_watermarks import notes_of
from lockgate.running.progress import Progress
from lockgate.running.result import ExportResult
from lockgate.running.state import ExportRecord, RunState
from lockgate.storage.staging import StagingArea
from lockgate.txlog.commits import Note


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
    around = replace(around, notes=_notes(run, state, records))
    for record in records:
        if record.status == "published":  # by a process that may have died before it removed the area
            _clear(record, around, progress)
    published = {r.number for r in records if r.status == "published"}
    for record in sorted(records, key=_comes_last):
        if record.number in published or record.prepared is None:
            continue
        group = _published_with(record, records)
        waiting = [each for each in group if each.number not in published]
        try:
            with progress.working(f"publishing {', '.join(each.name for each in waiting)}"):
                outcomes = _publish(group, around)
        except OutcomeUnknown as error:
            for each in waiting:
                results[each.number].status = "unknown"
            raise _undecided(run, record, error, len(published), len(records)) from error
        except LockgateError as error:
            for each in waiting:
                results[each.number].status = "failed"
            decided = any(destination_of(each).is_decided(_needed(each), around) for each in waiting)
            if isinstance(error, WatermarkMoved) and not published and not decided:
                raise  # all of its rows are there, brought by another run: it has nothing to publish, now or later
            raise _stopped(run, record, error, len(published), len(records), decided) from error
        for each, outcome in zip(group, outcomes, strict=True):
            if each.number in published:
                continue
            state.export_published(run, each.number, outcome)
            results[each.number].take(outcome)
            published.add(each.number)
            # Only now: as long as the record says "staged", the area tells whether the swap has happened.
            _clear(each, around, progress)
            progress.done(each.name, _counts(results[each.number]))


def _notes(run: str, state: RunState, records: Sequence[ExportRecord]) -> tuple[Note, ...]:
    """The watermarks that the run brings, for a log that keeps them with its rows."""
    told = state.run(run)
    tables = [
        _needed(each).destination for each in records if each.prepared is not None and _needed(each).type == "DELTA"
    ]
    if told is None or not told.watermarks or not tables:
        return ()
    return notes_of(told.pipeline, told.profile, tables, told.watermarks)


def _comes_last(record: ExportRecord) -> bool:
    """What is published in one step goes first: it is all there, or nothing is, before anything else can be."""
    return record.prepared is None or not hasattr(destination_of(record), "publish_together")


def _published_with(record: ExportRecord, records: Sequence[ExportRecord]) -> list[ExportRecord]:
    """The exports that become visible in one step with this one: itself, and those of a TYPE that does all at once."""
    if not hasattr(destination_of(record), "publish_together"):
        return [record]
    kind = _needed(record).type
    return [each for each in records if each.prepared is not None and each.prepared.type == kind]


def _publish(group: Sequence[ExportRecord], around: Surroundings) -> list[Outcome]:
    destination = destination_of(group[0])
    if not hasattr(destination, "publish_together"):
        return [destination.publish(_needed(group[0]), around)]
    together = cast(PublishesTogether, destination)
    return together.publish_together([_needed(each) for each in group], around)


def _needed(record: ExportRecord) -> Prepared:
    assert record.prepared is not None
    return record.prepared


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
