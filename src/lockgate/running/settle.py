"""Runs that did not come to an end: finishing those that had begun to publish, sweeping those that had not."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from lockgate.errors import LockgateError, PartialPublish, PreviousRunUnfinished, ResumeError
from lockgate.running.progress import Progress
from lockgate.running.publish import publish_exports
from lockgate.running.result import CheckResult, ExportResult, RunResult, StepResult
from lockgate.running.state import RunRecord, RunState
from lockgate.storage.local import LocalStorage
from lockgate.storage.staging import StagingArea

Clock = Callable[[], datetime]


def resume(run: str, state: RunState, storage: LocalStorage, progress: Progress, clock: Clock) -> RunResult:
    """Finish publishing a run. One that has published all is left as it is."""
    record = state.run(run)
    if record is None:
        raise ResumeError(f"there is no run {run} in {state.folder}", hint="`lockgate runs` lists them")
    if record.status == "published":
        return stored_result(record, state)
    if record.status == "superseded":
        raise ResumeError(
            f"run {run} was superseded by run {record.superseded_by}",
            in_place=f"what run {record.superseded_by} published",
            hint=f"`lockgate runs {record.superseded_by}` shows it",
        )
    with state.run_lock(run) as lock:
        if not lock.try_acquire():
            raise ResumeError(f"run {run} is still at work in another process", hint="wait for it to end")
        if record.status in ("publishing", "partial"):
            return roll_forward(record, state, storage, progress, clock)
        if record.status == "running":
            sweep_dead(record, state, storage, clock)
    reason = "failed" if record.status in ("failed", "check_failed") else "died"
    raise ResumeError(
        f"run {run} {reason} and never finished staging and checking, so there is nothing to publish",
        in_place="every destination is as it was before that run",
        hint=f"run it again: lockgate run {record.pipeline}",
    )


def settle_previous(
    pipeline: str, by: str, state: RunState, storage: LocalStorage, progress: Progress, clock: Clock, *, supersede: bool
) -> None:
    """Before a new run: bring dead runs to their end, so that no result is lost or published out of turn."""
    for record in state.unsettled():
        if state.is_alive(record.id):
            continue
        if record.status == "running":
            sweep_dead(record, state, storage, clock)
        elif record.pipeline == pipeline and supersede:
            discard_staged(record.id, state, storage)
            state.supersede(record.id, by)
            progress.note(f"run {record.id} is given up; what it had staged is discarded")
        elif record.pipeline == pipeline:
            progress.note(f"run {record.id} was interrupted while publishing; finishing it first")
            with state.run_lock(record.id) as lock:
                if not lock.try_acquire():
                    continue
                try:
                    roll_forward(record, state, storage, progress, clock)
                except LockgateError as error:
                    raise PreviousRunUnfinished(
                        f"the previous run {record.id} of this pipeline cannot be finished: {error.message}",
                        in_place=f"{error.in_place or 'the rest of it is staged'}; the new run was not started",
                        hint=f"put that right and run `lockgate resume {record.id}`; "
                        "or give its results up with `lockgate run --supersede`",
                    ) from error


def roll_forward(
    record: RunRecord, state: RunState, storage: LocalStorage, progress: Progress, clock: Clock
) -> RunResult:
    """Publish what is left of a run, and close its record."""
    result = stored_result(record, state)
    by_number = dict(enumerate(result.exports, start=1))
    try:
        publish_exports(record.id, state, storage, progress, by_number)
    except LockgateError as error:
        # What was promised stays promised: the staged results are kept for the next try.
        result.status, result.exit_code, result.error = "partial", 3, error.message
        state.finish(
            record.id, "partial", finished=_now(clock), exit_code=3, error=error.message, result=result.to_json()
        )
        kept = PartialPublish(error.message, in_place=error.in_place, hint=f"then run `lockgate resume {record.id}`")
        kept.result = result
        raise kept from error
    result.status, result.exit_code, result.error = "published", 0, None
    state.finish(record.id, "published", finished=_now(clock), exit_code=0, error=None, result=result.to_json())
    return result


def sweep_dead(record: RunRecord, state: RunState, storage: LocalStorage, clock: Clock) -> None:
    """A run that died before it began to publish: remove what it had staged."""
    discard_staged(record.id, state, storage)
    error = "the process died before anything was published"
    state.finish(record.id, "failed", finished=_now(clock), exit_code=1, error=error, result=None)


def discard_staged(run: str, state: RunState, storage: LocalStorage) -> None:
    for export in reversed(state.exports(run)):  # the first area made the folder that the later ones share
        if export.status in ("staging", "staged"):
            StagingArea.reopen(storage, export.staging).discard()
            state.export_discarded(run, export.number)


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
