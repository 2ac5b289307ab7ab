"""`lockgate run`: compute, stage, check, publish."""

from __future__ import annotations

import logging
import signal
import sys
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import click

from lockgate.cli.console import DEBUG, JSON, PIPELINE, PROFILE, VAR, errors_shown, message, print_json, variables
from lockgate.config import load_project
from lockgate.errors import ConfigError, LockgateError, PartialPublish, RunError

if TYPE_CHECKING:
    from lockgate.running.pipeline import PipelineRun
    from lockgate.running.result import RunResult


@click.command()
@PIPELINE
@VAR
@PROFILE
@click.option("--master", metavar="URL", help="A Spark master, such as spark://host:7077 or local[4].")
@click.option("--remote", metavar="URL", help="A Spark Connect server, such as sc://host:15002.")
@click.option("--supersede", is_flag=True, help="Give up what an interrupted earlier run of this pipeline had staged.")
@JSON
@DEBUG
def run(
    pipeline: Path,
    var: tuple[str, ...],
    profile: str | None,
    master: str | None,
    remote: str | None,
    supersede: bool,
    json: bool,
    debug: bool,
) -> None:
    """Run a pipeline: all its results become visible, or none does."""
    signal.signal(signal.SIGTERM, _interrupt)
    if not debug:
        # py4j logs tracebacks on the root logger when its socket is interrupted; our message says what happened.
        logging.getLogger().addHandler(logging.NullHandler())
    with errors_shown(debug):
        if master and remote:
            raise ConfigError("--master and --remote exclude each other", hint="give one of them")
        try:
            ready = _ready(pipeline, variables(var), profile, master, remote, supersede, json, debug)
            result = _execute(ready)
        except LockgateError as error:
            if not json:
                raise
            _print_failure(pipeline, error, debug)
            raise SystemExit(error.exit_code) from None
    if json:
        print_json(result.to_json())
    else:
        summary(result)


def _ready(
    pipeline: Path,
    values: dict[str, Any],
    profile: str | None,
    master: str | None,
    remote: str | None,
    supersede: bool,
    json: bool,
    debug: bool,
) -> PipelineRun:
    project = load_project(profile=profile)
    from lockgate.cli.progress import make_progress
    from lockgate.running.entry import make_run, spark_settings

    return make_run(
        pipeline,
        project,
        variables=values,
        settings=spark_settings(project, master=master, remote=remote),
        progress=make_progress(quiet=json),
        debug=debug,
        supersede=supersede,
    )


def _execute(ready: PipelineRun) -> RunResult:
    """Run it; Ctrl-C is an error like any other, since the run has cleaned up or kept what `resume` needs."""
    try:
        return ready.execute()
    except KeyboardInterrupt:
        stopped: LockgateError
        if ready.result.status == "partial":
            stopped = PartialPublish("interrupted while publishing", hint=f"run `lockgate resume {ready.run}`")
        else:
            stopped = RunError("interrupted", in_place="nothing was published; every destination is as it was")
        stopped.result = ready.result
        raise stopped from None


def _print_failure(pipeline: Path, error: LockgateError, debug: bool) -> None:
    """With --json a failure is a result too: the same object on standard output, the message on standard error."""
    result = error.result
    if result is not None:
        print_json(result.to_json())
    else:
        status = "invalid" if error.exit_code == 2 else "failed"
        print_json(
            {"run": None, "pipeline": str(pipeline), "status": status, "exit_code": error.exit_code,
             "steps": [], "exports": [], "checks": [], "error": error.render()}
        )  # fmt: skip
    if debug:
        import traceback

        traceback.print_exception(error, file=sys.stderr)
    click.echo(message(error), err=True)


def summary(result: RunResult) -> None:
    """What was published, one line an export."""
    for export in result.exports:
        place = export.paths[0] if len(export.paths) == 1 else export.destination
        files = "" if len(export.paths) < 2 else f" in {len(export.paths)} files"
        click.echo(f"{export.type} {export.mode} {place}: {export.inserted or 0:,} rows{files}")
    click.echo(f"run {result.run}: {result.status}")


def _interrupt(number: int, frame: FrameType | None) -> None:
    """SIGTERM ends a run as Ctrl-C does: with its staging cleaned up."""
    del number, frame
    raise KeyboardInterrupt
