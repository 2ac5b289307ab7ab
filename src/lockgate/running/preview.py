"""What a run would change, found without one: the rows are computed, compared and counted, and nothing is written."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lockgate.config import Project
from lockgate.destinations.keyed_records import Wanted
from lockgate.destinations.options import local_path
from lockgate.destinations.protocol import Destination, ExportRequest
from lockgate.errors import (
    ArgumentError,
    CheckFailed,
    DatasetMergeError,
    LockgateError,
    RunError,
    StageError,
)
from lockgate.language.statements import SourceStep
from lockgate.merging.strategy import MergeStrategy
from lockgate.modes import KEYED_MODES
from lockgate.plan.describe import to_json
from lockgate.plan.steps import Plan
from lockgate.running.checks import failure, found, run_check
from lockgate.running.frames import Frames, opened_frames
from lockgate.running.incremental import Reading, check_reading
from lockgate.running.log_watermarks import with_those_of_the_log
from lockgate.running.progress import Progress, Silent
from lockgate.running.requests import export_requests
from lockgate.running.result import CheckResult
from lockgate.running.s3_sources import local_sources
from lockgate.running.sources import find_missing, refuse_unfinished
from lockgate.running.spark_errors import spark_message, speaks_of_sql
from lockgate.running.stage import check_columns, count_rows
from lockgate.running.state import RunState
from lockgate.storage.local import LocalStorage
from lockgate.storage.s3_address import is_s3

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lockgate.merging.result import MergeResult

NOTHING = "nothing was written"


@dataclass
class Prediction:
    """What a run would do to one destination. None: not known before it is done."""

    status: str = "skipped"  # planned, failed, or skipped after an error
    inserted: int | None = None
    updated: int | None = None
    deleted: int | None = None
    rows: int | None = None
    files: dict[str, int | None] = field(default_factory=lambda: dict.fromkeys(("rewritten", "added", "preserved")))
    rewritten_files: list[str] | None = None
    removed_files: list[str] | None = None


@dataclass
class PreviewResult:
    plan: Plan
    exports: list[Prediction]
    checks: list[CheckResult] = field(default_factory=list)
    failure: LockgateError | None = None  # what a run would end with

    def to_json(self) -> dict[str, Any]:
        """The plan's own JSON with the numbers in it, and how a run would end."""
        told = to_json(self.plan)
        told["exports"] = [
            {**export, **asdict(numbers)} for export, numbers in zip(told["exports"], self.exports, strict=True)
        ]
        status = "planned"
        if self.failure is not None:
            status = "check_failed" if isinstance(self.failure, CheckFailed) else "failed"
        return {
            "run": None,
            **told,
            "checks": [asdict(check) for check in self.checks],
            "status": status,
            "exit_code": self.failure.exit_code if self.failure else 0,
            "error": self.failure.render() if self.failure else None,
        }


@dataclass
class Preview:
    """A run without its staging, its publishing and its record."""

    plan: Plan
    project: Project
    run: str  # no run has this id; it names the views of the session
    open_session: Callable[[], AbstractContextManager[SparkSession]]
    progress: Progress = field(default_factory=Silent)
    full_refresh: bool = False  # these three as of a run
    start: str | None = None
    end: str | None = None
    local: bool = True  # as of a run

    def __post_init__(self) -> None:
        check_reading(Reading({}, self.full_refresh, self.start, self.end), self.plan)
        self._requests = list(export_requests(self.plan, self.project, self.run))
        self.result = PreviewResult(self.plan, [Prediction() for _ in self._requests])

    def execute(self) -> PreviewResult:
        """Find out. CHECKs that found rows are in the result as its `failure`; all that would stop a run before them
        is raised, and carries the result."""
        try:
            self._look()
        except LockgateError as error:
            self._ended(error)
            raise
        except Exception as error:  # Spark's, outside of any statement, or a mistake of ours
            told = f"the preview failed unexpectedly: {type(error).__name__}: {spark_message(error)}"
            raise self._ended(RunError(told, hint="--debug shows Spark's log and the traceback")) from error
        failed = [check for check in self.result.checks if not check.passed]
        if failed:
            self._ended(failure(failed))
        return self.result

    def _ended(self, error: LockgateError) -> LockgateError:
        error.in_place = NOTHING
        error.result = self.result
        self.result.failure = error
        return error

    def _look(self) -> None:
        self.progress.phase("plan")
        for step in self.plan.steps:
            if self.local and isinstance(step.statement, SourceStep):
                find_missing(step.statement, self.project.root)
                refuse_unfinished(step.statement, self.project.root)
        storage = LocalStorage()
        recorded = RunState(self.project.state).watermarks(self.plan.pipeline, self.project.profile.name)
        known = with_those_of_the_log(self.plan, self.project, recorded)
        reading = Reading(known, self.full_refresh, self.start, self.end)
        with (
            _no_bytecode(),
            local_sources(
                self.plan, self.project, self.run, storage, self.progress, local=self.local, looking=True
            ) as plan,
            self.open_session() as session,
            opened_frames(session, plan, self.project, self.run, reading) as frames,
        ):
            for number, step in enumerate(plan.steps):
                frames.build(step, number)
            for numbers, (number, request, destination) in zip(self.result.exports, self._requests, strict=True):
                with self._deciding(numbers, number, frames):
                    request = frames.asked(number, request)
                    layout = destination.layout(request)
                    check_columns(frames.result(number), layout, request.keys, request.order_by)
            for number in frames.keyed_steps:
                with self.progress.working(f"checking the rows of {self.plan.steps[number].name}"):
                    frames.check_rows(number)
            self.progress.phase("preview")
            for numbers, (number, request, destination) in zip(self.result.exports, self._requests, strict=True):
                name = self.plan.steps[number].name
                with self.progress.working(f"comparing {name}"), self._deciding(numbers, number, frames):
                    _predict(numbers, frames.result(number), frames.asked(number, request), destination)
                numbers.status = "planned"
                self.progress.done(name, f"{numbers.rows:,} rows")
            self.progress.phase("check")
            self._check(frames)

    @contextmanager
    def _deciding(self, numbers: Prediction, number: int, frames: Frames) -> Iterator[None]:
        numbers.status = "failed"
        with frames.exporting(self.plan.steps[number]), _in_words_of_pipelines():
            yield
        numbers.status = "skipped"

    def _check(self, frames: Frames) -> None:
        for number, step in enumerate(self.plan.steps):
            if step.kind != "check":
                continue
            try:
                with self.progress.working(f"checking {step.name}"):
                    check = run_check(step.name, frames.result(number))
            except Exception as error:
                raise frames.explain(error, step) from error
            self.result.checks.append(check)
            if check.passed:
                self.progress.done(step.name, "passed")
            else:
                self.progress.failed(step.name, found(check))


def _predict(numbers: Prediction, frame: DataFrame, request: ExportRequest, destination: Destination) -> None:
    keyed = request.mode in KEYED_MODES
    if keyed and request.type in ("PARQUET", "S3"):
        _take(numbers, _merged(frame, request), request, _place(request))
        return
    if keyed and request.type == "DELTA":
        from lockgate.destinations.delta_preview import decided_merge

        merged, root = decided_merge(_source(frame, request), request)
        _take(numbers, merged, request, root)
        return
    numbers.rows = count_rows(frame, destination.layout(request))
    if keyed:  # how a destination of another package merges is its own business
        return
    numbers.inserted, numbers.updated = numbers.rows, 0
    if request.mode == "APPEND":  # always new files
        numbers.deleted = 0
        numbers.files["rewritten"] = 0
        numbers.rewritten_files, numbers.removed_files = [], []


def _merged(frame: DataFrame, request: ExportRequest) -> MergeResult:
    """The merge as far as its decision. A DataFrame is compared by Spark, unless an engine of this machine is asked."""
    from lockgate.datasets.entry import merge

    options = asdict(Wanted.by(request))
    if is_s3(request.destination):
        options["s3_connection"] = request.options.get("connection")
    return merge(_source(frame, request), _place(request), dry_run=True, **options)


def _place(request: ExportRequest) -> str | Path:
    return request.destination.rstrip("/") if is_s3(request.destination) else local_path(request).resolve()


def _source(frame: DataFrame, request: ExportRequest) -> Any:
    if Wanted.by(request).engine in ("arrow", "duckdb"):
        # Without what Spark says of the schema of its rows, as a run has it.
        return frame.toArrow().replace_schema_metadata(None)
    return frame


def _take(numbers: Prediction, merged: MergeResult, request: ExportRequest, folder: str | Path) -> None:
    numbers.rows = merged.source_count
    numbers.inserted, numbers.updated, numbers.deleted = merged.inserted, merged.updated, merged.deleted
    root, shown = f"{folder}/", request.destination.rstrip("/")
    numbers.rewritten_files = [f"{shown}/{path.removeprefix(root)}" for path in merged.rewritten_files]
    numbers.removed_files = [f"{shown}/{path.removeprefix(root)}" for path in merged.removed_files]
    # How many files new rows make is known when they are written; a new dataset gets one even without rows.
    makes_dataset = not merged.files and not merged.removed_files and MergeStrategy(merged.strategy).actions.creates
    adds = merged.inserted or makes_dataset or request.options.get("allow_partition_moves", False)
    numbers.files = {
        "rewritten": len(merged.rewritten_files),
        "added": None if adds else 0,
        "preserved": len(merged.preserved_files),
    }


@contextmanager
def _in_words_of_pipelines() -> Iterator[None]:
    """What a merge says to a caller in Python, as a run says it."""
    from lockgate.destinations.keyed_merge import advice_for_pipelines

    try:
        with advice_for_pipelines():
            yield
    except ArgumentError as error:  # a target that is a file: the pipeline's text is right, and its place is not
        raise StageError(error.message, hint=error.hint) from error
    except DatasetMergeError as error:  # the Spark engine computes the rows, which a run does before the merge
        cause = error.__cause__
        if cause is not None and speaks_of_sql(cause):
            raise cause from None
        raise


@contextmanager
def _no_bytecode() -> Iterator[None]:
    """Python keeps what it compiles beside the project's functions, where a preview has nothing to leave."""
    before, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        yield
    finally:
        sys.dont_write_bytecode = before
