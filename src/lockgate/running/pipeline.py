"""One run of a pipeline: plan, stage, check, publish. Before publish nothing is visible; after it everything is."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from lockgate.config import Project
from lockgate.destinations.protocol import Destination, ExportRequest, Prepared, Surroundings
from lockgate.errors import (
    CheckFailed,
    LockgateError,
    MergeError,
    PartialPublish,
    PublishError,
    RunError,
    StateError,
    WatermarkMoved,
)
from lockgate.language.statements import SourceStep
from lockgate.plan.steps import Plan, Step
from lockgate.running.checks import failure, found, run_check
from lockgate.running.frames import Frames, opened_frames
from lockgate.running.incremental import Reading, check_reading
from lockgate.running.log_watermarks import with_those_of_the_log
from lockgate.running.progress import Progress, Silent
from lockgate.running.publish import publish_exports
from lockgate.running.requests import export_requests
from lockgate.running.result import ExportResult, RunResult, StepResult
from lockgate.running.s3_sources import local_sources
from lockgate.running.settle import discard_staged, settle_previous
from lockgate.running.sources import find_missing, recover_folders
from lockgate.running.spark_errors import spark_message
from lockgate.running.stage import bring_home, check_columns, stage_rows
from lockgate.running.state import RunState
from lockgate.sources.watermark import PendingWatermark
from lockgate.storage.local import LocalStorage
from lockgate.storage.staging import PREFIX, StagingArea, area_path
from lockgate.targets.folder import sweep_dead_staging

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def utc_now() -> datetime:
    return datetime.now(UTC)


@dataclass
class _Export:
    """An export on its way: what it asks, where it is staged, what has become of it."""

    number: int  # among the exports
    step_number: int  # among all steps
    step: Step
    request: ExportRequest
    destination: Destination
    result: ExportResult
    area: StagingArea | None = None
    prepared: Prepared | None = None


@dataclass
class PipelineRun:
    """Everything a run needs is passed in: the session, the storage, the clock and the id."""

    plan: Plan
    project: Project
    run: str
    open_session: Callable[[], SparkSession]
    state: RunState
    storage: LocalStorage = field(default_factory=LocalStorage)
    progress: Progress = field(default_factory=Silent)
    clock: Callable[[], datetime] = utc_now
    supersede: bool = False
    full_refresh: bool = False  # of incremental sources: read them from the beginning
    start: str | None = None  # a backfill of incremental sources: from this value of their cursors on
    end: str | None = None  # and up to this one
    local: bool = True  # Spark sees the same files as this process, so that missing ones can be found before it starts

    def __post_init__(self) -> None:
        self.result = RunResult(run=self.run, pipeline=self.plan.pipeline)
        self._steps = [StepResult(step.name, step.kind) for step in self.plan.steps]
        self.result.steps = self._steps
        self._exports = list(self._requests())
        self.ending: LockgateError | None = None  # what an interrupted or failed run ended with
        self._settling = False  # an earlier run; what is published meanwhile is its result, not ours
        self._watermarks: dict[str, PendingWatermark] = {}
        check_reading(Reading({}, self.full_refresh, self.start, self.end), self.plan)
        self._promised = False  # to publish: from then on staged results are kept until they are published
        self.result.exports = [export.result for export in self._exports]

    @property
    def _around(self) -> Surroundings:
        return Surroundings(self.storage, self.project.root, self.project.profile)

    def execute(self) -> RunResult:
        """Run to the end. An error carries the result, and says what is in place."""
        with self.state.run_lock(self.run) as lock:
            if not lock.try_acquire():
                raise StateError(f"another run has the id {self.run}", in_place="nothing was run", hint="run again")
            self.state.begin(self.run, self.plan.pipeline, self.project.profile.name, self._now())
            try:
                self._settle()
                self._stage_and_check()
                self._publish()
                self._finish("published", 0, None)
            except LockgateError as error:
                self.ending = self._failed(error)
                if self.ending is error:
                    raise
                raise self.ending from error
            except Exception as error:  # Spark's, outside of any statement, or a mistake of ours
                self.ending = self._failed(_unexpected(error))
                raise self.ending from error
            except BaseException:  # Ctrl-C: clean up, then pass it on; `ending` says what is in place
                self.ending = self._failed(self._interrupted())
                raise
        return self.result

    def _settle(self) -> None:
        self._settling = True
        settle_previous(
            self.plan.pipeline, self.run, self.state, self._around, self.progress, self.clock, supersede=self.supersede
        )
        self._settling = False

    def _requests(self) -> Iterator[_Export]:
        for step_number, request, destination in export_requests(self.plan, self.project, self.run):
            step = self.plan.steps[step_number]
            result = ExportResult(step.name, request.destination, request.type, request.mode)
            yield _Export(request.number, step_number, step, request, destination, result)

    # stage and check

    def _stage_and_check(self) -> None:
        self.progress.phase("plan")
        for step in self.plan.steps:
            if self.local and isinstance(step.statement, SourceStep):
                find_missing(step.statement, self.project.root)
                recover_folders(step.statement, self.project.root)
        with local_sources(self.plan, self.project, self.run, self.storage, self.progress, local=self.local) as plan:
            self._stage_and_check_with(plan)

    def _stage_and_check_with(self, plan: Plan) -> None:
        """`plan` is the run's own, but for sources on S3, which have been brought here."""
        self._make_areas()  # first of all: a folder that cannot be written is found before hours of work
        with self.progress.working("starting Spark"):
            session = self.open_session()
        # After earlier runs are settled: what they had promised to publish has moved its watermarks by now.
        profile = self.project.profile.name
        recorded = self.state.watermarks(self.plan.pipeline, profile)
        known = with_those_of_the_log(self.plan, self.project, recorded)
        if known != recorded:
            self.state.adopt_watermarks(self.plan.pipeline, profile, known)
        reading = Reading(known, self.full_refresh, self.start, self.end)
        with opened_frames(session, plan, self.project, self.run, reading) as frames:
            for number, step in enumerate(plan.steps):
                with self._timed(number):
                    frames.build(step, number)
                if step.kind not in ("check", "export"):
                    self._steps[number].status = "ready"
            for export in self._exports:
                with self._timed(export.step_number):
                    self._check_columns(export, frames)
            for number in frames.keyed_steps:
                self._check_rows(number, frames)
            self._watermarks = frames.watermarks(self.progress)
            self.progress.phase("stage")
            for export in self._exports:
                with self._timed(export.step_number):
                    self._stage(export, frames)
            self.progress.phase("check")
            self._check(frames)
            frames.require_unchanged()

    def _check_columns(self, export: _Export, frames: Frames) -> None:
        """Of all exports before the rows of any are computed."""
        export.result.status = "failed"  # until it is clear that it can be staged
        request = export.request = frames.asked(export.step_number, export.request)
        layout = export.destination.layout(request)
        with frames.exporting(export.step):
            check_columns(frames.result(export.step_number), layout, request.keys, request.order_by)
        export.result.status = "pending"

    def _check_rows(self, number: int, frames: Frames) -> None:
        name = self._steps[number].name
        try:
            with self._timed(number), self.progress.working(f"checking the rows of {name}"):
                frames.check_rows(number)
        except LockgateError as error:
            wrong = "its rows cannot be merged" if isinstance(error, MergeError) else "its rows cannot be computed"
            self.progress.failed(name, wrong)
            raise
        self.progress.done(name, "its rows can be merged")

    def _make_areas(self) -> None:
        places = {e.number: e.destination.staging_place(e.request) for e in self._exports}
        paths = {e.number: area_path(places[e.number], f"{self.run}-{e.number}") for e in self._exports}
        self.state.staging(self.run, {e.number: (e.result.name, paths[e.number]) for e in self._exports})
        for export in self._exports:
            sweep_dead_staging(self.storage, places[export.number])
            export.area = StagingArea.create(self.storage, places[export.number], f"{self.run}-{export.number}")

    def _stage(self, export: _Export, frames: Frames) -> None:
        assert export.area is not None
        export.result.status = "failed"  # until it is staged
        export.request = replace(export.request, window=frames.window(export.step))
        with frames.exporting(export.step), self._rows_area(export.area) as spark_area:
            with self.progress.working(f"staging {export.result.name}", watch=spark_area.rows):
                layout = export.destination.layout(export.request)
                rows = stage_rows(frames.result(export.step_number), layout, spark_area.rows, self.storage)
                if spark_area is not export.area:
                    rows = bring_home(self.storage, rows, export.area.rows)
                export.prepared = export.destination.stage(export.request, export.area, rows)
        export.result.status = "staged"
        export.result.rows = self._steps[export.step_number].rows = export.prepared.rows
        self._steps[export.step_number].status = "staged"
        self.progress.done(export.result.name, f"{export.prepared.rows:,} rows, {export.prepared.bytes:,} bytes staged")

    @contextmanager
    def _rows_area(self, area: StagingArea) -> Iterator[StagingArea]:
        """Where Spark writes: the export's own area, or one in the profile's `staging` folder that goes again."""
        if not self.project.profile.staging:
            yield area
            return
        folder = self.project.root / self.project.profile.staging
        sweep_dead_staging(self.storage, folder)
        outside = StagingArea.create(self.storage, folder, area.path.name.removeprefix(PREFIX))
        try:
            yield outside
        finally:
            outside.discard()

    def _check(self, frames: Frames) -> None:
        for number, step in enumerate(self.plan.steps):
            if step.kind != "check":
                continue
            try:
                with self._timed(number), self.progress.working(f"checking {step.name}"):
                    check = run_check(step.name, frames.result(number))
            except Exception as error:
                raise frames.explain(error, step) from error
            self.result.checks.append(check)
            self._steps[number].rows = check.failing_rows
            self._steps[number].status = "passed" if check.passed else "failed"
            if check.passed:
                self.progress.done(step.name, "passed")
            else:
                self.progress.failed(step.name, found(check))
        failed = [check for check in self.result.checks if not check.passed]
        if failed:
            raise failure(failed)

    # publish

    def _publish(self) -> None:
        self.progress.phase("publish")
        for export in self._exports:
            assert export.area is not None
            export.area.seal()
        self._promised = True
        try:
            self.state.publishing(self.run, self.result.to_json(), self._prepared(), self._watermarks)
        except WatermarkMoved:
            self._promised = False
            raise
        results = {export.number: export.result for export in self._exports}
        try:
            publish_exports(self.run, self.state, self._around, self.progress, results)
        finally:
            for export in self._exports:
                self._steps[export.step_number].status = export.result.status
        for step in self._steps:
            step.status = "done" if step.status == "ready" else step.status

    def _prepared(self) -> dict[int, Prepared]:
        return {export.number: export.prepared for export in self._exports if export.prepared}

    # ends

    def _failed(self, error: LockgateError) -> LockgateError:
        """Close the run after an error; returns the error to end with, whose exit code says what is in place."""
        for export in self._exports:
            if export.result.status == "pending":
                export.result.status = "skipped"
        if self._promised and not isinstance(error, PublishError | PartialPublish | WatermarkMoved):
            error = self._interrupted_publishing(error)
        if isinstance(error, PartialPublish):
            status = "partial"
        else:
            status = "check_failed" if isinstance(error, CheckFailed) else "failed"
        try:
            self._finish(status, error.exit_code, error)  # on record first: whoever finds areas knows they are dead
        except LockgateError as unrecorded:  # the error that ended the run is the one to tell
            self.progress.note(f"the record of the run could not be written: {unrecorded.message}")
        if status != "partial":
            self._discard()
        error.result = self.result
        return error

    def _interrupted_publishing(self, error: LockgateError) -> PartialPublish:
        done, total = sum(e.result.status == "published" for e in self._exports), len(self._exports)
        rest = "the rest is staged" if done < total else "only the record of the run is not closed"
        return PartialPublish(
            f"publishing was interrupted: {error.message}",
            in_place=f"published {done} of {total} exports; {rest}",
            hint=f"run `lockgate resume {self.run}`",
        )

    def _interrupted(self) -> RunError:
        if self._settling:
            in_place = "this run published nothing; `lockgate runs` says how far the earlier one has come"
        else:
            in_place = "nothing was published; every destination is as it was"
        return RunError("interrupted", in_place=in_place)

    def _discard(self) -> None:
        for export in self._exports:
            if export.area is not None:
                export.area.release()
            if export.result.status == "staged":
                export.result.status = "skipped"
        try:
            discard_staged(self.run, self.state, self._around, self._prepared())
        except LockgateError as error:  # the error that ended the run is the one to tell
            self.progress.note(f"not everything that was staged could be removed: {error.message}")

    def _finish(self, status: str, code: int, error: LockgateError | None) -> None:
        self.result.status, self.result.exit_code = status, code
        self.result.error = error.render() if error else None
        for export in self._exports:
            if export.area is not None:
                export.area.release()
        self.state.finish(
            self.run, status, finished=self._now(), exit_code=code, error=self.result.error,
            result=self.result.to_json(),
        )  # fmt: skip

    @contextmanager
    def _timed(self, number: int) -> Iterator[None]:
        began = time.perf_counter()
        try:
            yield
        except BaseException:
            self._steps[number].status = "failed"
            raise
        finally:
            self._steps[number].seconds = round(self._steps[number].seconds + time.perf_counter() - began, 3)

    def _now(self) -> str:
        return self.clock().isoformat(timespec="seconds")


def _unexpected(error: Exception) -> RunError:
    return RunError(
        f"the run failed unexpectedly: {type(error).__name__}: {spark_message(error)}",
        in_place="nothing was published; every destination is as it was",
        hint="--debug shows Spark's log and the traceback",
    )
