"""`lockgate.run`: a pipeline's file in, its result out."""

from __future__ import annotations

import secrets
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lockgate.config import Project, SparkSettings, load_project
from lockgate.errors import SparkUnavailable
from lockgate.running.load import load_plan
from lockgate.running.pipeline import PipelineRun, utc_now
from lockgate.running.preview import Preview
from lockgate.running.progress import Progress, Silent
from lockgate.running.result import RunResult
from lockgate.running.session import open_session
from lockgate.running.state import RunState

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def run(
    pipeline: str | Path,
    *,
    variables: Mapping[str, Any] | None = None,
    profile: str | None = None,
    spark: SparkSession | None = None,
    full_refresh: bool = False,
    backfill: tuple[str | None, str | None] | None = None,
) -> RunResult:
    """Run a pipeline and publish its results, all of them or none.

    A failure raises a `LockgateError` whose `result` says how far the run came. `spark` is a session to use instead
    of the profile's; it is left as it was found. `full_refresh` reads incremental sources from the beginning;
    `backfill` reads a range of their cursors again, from the first value up to the second one.
    """
    project = load_project(profile=profile)
    ready = make_run(pipeline, project, variables=variables, spark=spark, full_refresh=full_refresh, backfill=backfill)
    return ready.execute()


def make_run(
    pipeline: str | Path,
    project: Project,
    *,
    variables: Mapping[str, Any] | None = None,
    spark: SparkSession | None = None,
    settings: SparkSettings | None = None,
    progress: Progress | None = None,
    debug: bool = False,
    supersede: bool = False,
    full_refresh: bool = False,
    backfill: tuple[str | None, str | None] | None = None,
) -> PipelineRun:
    """A run that is ready to execute; raises PipelineError if the pipeline is wrong."""
    plan = load_plan(pipeline, project, variables)
    settings = settings or project.profile.spark
    identity = new_run_id(utc_now(), secrets.token_hex(4))

    def session() -> SparkSession:
        return spark or open_session(settings, name=f"lockgate {plan.pipeline}", scratch=project.state, debug=debug)

    return PipelineRun(
        plan=plan,
        project=project,
        run=identity,
        open_session=session,
        state=RunState(project.state),
        progress=progress or Silent(),
        supersede=supersede,
        full_refresh=full_refresh,
        start=backfill[0] if backfill else None,
        end=backfill[1] if backfill else None,
        local=_sees_our_files(settings),
    )


def make_preview(
    pipeline: str | Path,
    project: Project,
    *,
    variables: Mapping[str, Any] | None = None,
    spark: SparkSession | None = None,
    settings: SparkSettings | None = None,
    progress: Progress | None = None,
    debug: bool = False,
) -> Preview:
    """A preview that is ready to execute; raises PipelineError if the pipeline is wrong."""
    plan = load_plan(pipeline, project, variables)
    settings = settings or project.profile.spark
    progress = progress or Silent()

    @contextmanager
    def session() -> Iterator[SparkSession]:
        if spark is not None:
            yield spark
            return
        scratch = Path(tempfile.mkdtemp(prefix="lockgate-preview-"))  # a run has the project's state folder for it
        try:
            with progress.working("starting Spark"):
                own = open_session(settings, name=f"lockgate plan {plan.pipeline}", scratch=scratch, debug=debug)
        except SparkUnavailable:  # its hint names Spark's log, which is in there
            raise
        except BaseException:
            shutil.rmtree(scratch, ignore_errors=True)
            raise
        try:
            yield own
        finally:
            own.stop()
            shutil.rmtree(scratch, ignore_errors=True)

    return Preview(
        plan=plan,
        project=project,
        run=new_run_id(utc_now(), secrets.token_hex(4)),
        open_session=session,
        progress=progress,
        local=_sees_our_files(settings),
    )


def _sees_our_files(settings: SparkSettings) -> bool:
    return not settings.remote and settings.master.startswith("local")


def spark_settings(project: Project, *, master: str | None, remote: str | None) -> SparkSettings:
    """The profile's Spark, with what the command line puts in its place."""
    settings = project.profile.spark
    if master:
        return replace(settings, master=master, remote=None)
    return replace(settings, remote=remote) if remote else settings


def new_run_id(now: datetime, tail: str) -> str:
    """Sortable by time, readable, and safe in a file name.

    >>> new_run_id(datetime(2026, 11, 18, 6, 30), "7f3a")
    '2026-11-18T06-30-00-7f3a'
    """
    return f"{now:%Y-%m-%dT%H-%M-%S}-{tail}"
