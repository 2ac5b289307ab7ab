"""Runs that did not come to an end: finishing those that had begun to publish, sweeping those that had not."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime

from lockgate.destinations.protocol import Prepared, Surroundings
from lockgate.errors import (
    DatasetBusy,
    LockgateError,
    OutcomeUnknown,
    PartialPublish,
    PreviousRunUnfinished,
    ResumeError,
    WatermarkMoved,
)
from lockgate.running.progress import Progress
from lockgate.running.publish import discard_export, publish_exports
from lockgate.running.result import CheckResult, ExportResult, RunResult, StepResult
from lockgate.running.state import RunRecord, RunState

Clock = Callable[[], datetime]

_PATIENCE = 0.3  # seconds: somebody who only asks whether a run lives holds its lock for an instant
_TURN = 60.0  # seconds for a run of the same pipeline to finish publishing


def resume(run: str, state: RunState, around: Surroundings, progress: Progress, clock: Clock) -> RunResult:
    """Finish publishing a run. One that has published all is left as it is."""
    if state.run(run) is None:
        raise ResumeError(f"there is no run {run} in {state.folder}", hint="`lockgate runs` lists them")
    with state.run_lock(run) as lock:
        try:
            lock.acquire(_PATIENCE)
        except DatasetBusy:
            raise ResumeError(f"run {run} is still at work in another process", hint="wait for it to end") from None
        record = state.run(run)  # as it is now that nobody else can change it
        assert record is not None
        match record.status:
            case "published":
                return stored_result(record, state)
            case "publishing" | "partial":
                return roll_forward(record, state, around, progress, clock)
            case "superseded":
                raise ResumeError(
                    f"run {run} was superseded by run {record.superseded_by}",
                    in_place=f"what run {record.superseded_by} published",
                    hint=f"`lockgate runs {record.superseded_by}` shows it",
                )
            case "running":
                sweep_dead(record, state, around, clock)
    reason = "never finished staging" if record.status == "running" else "failed before anything was published"
    raise ResumeError(
        f"run {run} {reason}, so there is nothing to resume",
        in_place="every destination is as it was before that run",
        hint=f"run it again: lockgate run {record.pipeline}",
    )


def settle_previous(
    pipeline: str, by: str, state: RunState, around: Surroundings, progress: Progress, clock: Clock, *, supersede: bool
) -> None:
    """Before a new run: bring dead runs to their end, so that no result is lost or published out of turn."""
    for listed in state.unsettled():
        if listed.id == by:
            continue
        ours = listed.pipeline == pipeline
        with state.run_lock(listed.id) as lock:
            # A run of ours that publishes, or is being resumed, must be through before a newer one publishes.
            must_wait = ours and listed.status in ("publishing", "partial")
            try:
                lock.acquire(_TURN if must_wait else _PATIENCE)
            except DatasetBusy:
                if must_wait:
                    raise _unfinished(listed.id, "another process is still publishing it", None) from None
                continue
            record = state.run(listed.id)  # as it is now that nobody else can change it
            if record is None or record.status == "published":
                continue
            if record.status in ("publishing", "partial"):
                if ours:
                    _finish_or_give_up(record, by, state, around, progress, clock, supersede=supersede)
                continue
            try:
                if record.status == "running":
                    sweep_dead(record, state, around, clock)
                else:
                    discard_staged(record.id, state, around.of(record.profile))
            except LockgateError as error:  # somebody's leftovers are no reason not to run
                progress.note(f"what run {record.id} left could not be removed: {error.message}")


def _finish_or_give_up(
    record: RunRecord,
    by: str,
    state: RunState,
    around: Surroundings,
    progress: Progress,
    clock: Clock,
    *,
    supersede: bool,
) -> None:
    if supersede:
        state.supersede(record.id, by)
        discard_staged(record.id, state, around.of(record.profile))
        progress.note(f"run {record.id} is given up; what it had staged is discarded")
        return
    progress.note(f"run {record.id} was interrupted while publishing; finishing it first")
    try:
        roll_forward(record, state, around, progress, clock)
    except (ResumeError, WatermarkMoved) as error:  # nothing left to finish it with, or to publish
        progress.note(error.message)
    except LockgateError as error:
        raise _unfinished(record.id, error.message, error.in_place) from error


def _unfinished(run: str, reason: str, in_place: str | None) -> PreviousRunUnfinished:
    return PreviousRunUnfinished(
        f"the previous run {run} of this pipeline cannot be finished: {reason}",
        in_place=f"{in_place or 'the rest of it is staged'}; the new run was not started",
        hint=f"put that right and run `lockgate resume {run}`; or give its results up with `lockgate run --supersede`",
    )


def roll_forward(
    record: RunRecord, state: RunState, around: Surroundings, progress: Progress, clock: Clock
) -> RunResult:
    """Publish what is left of a run, and close its record."""
    result = stored_result(record, state)
    by_number = dict(enumerate(result.exports, start=1))
    try:
        publish_exports(record.id, state, around.of(record.profile), progress, by_number)
    except ResumeError as error:
        result.status, result.exit_code, result.error = "failed", 1, error.message
        state.finish(record.id, "failed", finished=_now(clock), exit_code=1, error=error.message, result=None)
        error.result = result
        raise
    except WatermarkMoved as error:  # all of its rows are there: another run, with a record of its own, was faster
        result.status, result.exit_code, result.error = "failed", 1, error.message
        state.finish(record.id, "failed", finished=_now(clock), exit_code=1, error=error.message, result=None)
        discard_staged(record.id, state, around.of(record.profile))
        error.result = result
        raise
    except LockgateError as error:
        # What was promised stays promised: the staged results are kept for the next try.
        result.status, result.exit_code, result.error = "partial", 3, error.message
        state.finish(
            record.id, "partial", finished=_now(clock), exit_code=3, error=error.message, result=result.to_json()
        )
        kind = OutcomeUnknown if isinstance(error, OutcomeUnknown) else PartialPublish
        kept = kind(error.message, in_place=error.in_place, hint=f"then run `lockgate resume {record.id}`")
        kept.result = result
        raise kept from error
    result.status, result.exit_code, result.error = "published", 0, None
    state.finish(record.id, "published", finished=_now(clock), exit_code=0, error=None, result=result.to_json())
    return result


def sweep_dead(record: RunRecord, state: RunState, around: Surroundings, clock: Clock) -> None:
    """A run that died before it began to publish: close its record, then remove what it had staged."""
    error = "the process died before anything was published"
    state.finish(record.id, "failed", finished=_now(clock), exit_code=1, error=error, result=None)
    discard_staged(record.id, state, around.of(record.profile))


def discard_staged(
    run: str, state: RunState, around: Surroundings, prepared: Mapping[int, Prepared] | None = None
) -> None:
    """Remove what a run had staged and not published; one that cannot be removed does not keep the others.
    `prepared`: what the run has prepared, by number, if it has not come to putting that on record."""
    problem: LockgateError | None = None
    for export in reversed(state.exports(run)):  # the first area made the folder that the later ones share
        if export.status in ("staging", "staged"):
            try:
                known = export.prepared or (prepared or {}).get(export.number)
                discard_export(replace(export, prepared=known), around)
                state.export_discarded(run, export.number)
            except LockgateError as error:
                problem = problem or error
    if problem:
        raise problem


def stored_result(record: RunRecord, state: RunState) -> RunResult:
    """The result as it was recorded, brought up to what the exports' own records say."""
    kept = record.result or {"run": record.id, "pipeline": record.pipeline}
    result = RunResult(
        run=kept["run"],
        pipeline=kept["pipeline"],
        status=record.status,
        exit_code=record.exit_code if record.exit_code is not None else 1,
        steps=[StepResult(**s) for s in kept.get("steps", [])],
        exports=[ExportResult(**e) for e in kept.get("exports", [])],
        checks=[CheckResult(**c) for c in kept.get("checks", [])],
        error=record.error,
    )
    for export in state.exports(record.id):
        if export.outcome and export.number <= len(result.exports):
            result.exports[export.number - 1].take(export.outcome)
    return result


def _now(clock: Clock) -> str:
    return clock().isoformat(timespec="seconds")
