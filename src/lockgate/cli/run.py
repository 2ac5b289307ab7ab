"""`lockgate run`: compute, stage, check, publish."""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

import click

from lockgate.cli.console import DEBUG, JSON, PIPELINE, PROFILE, VAR, errors_shown, message, print_json, variables
from lockgate.config import load_project
from lockgate.errors import ConfigError, LockgateError

if TYPE_CHECKING:
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
    with errors_shown(debug):
        if master and remote:
            raise ConfigError("--master and --remote exclude each other", hint="give one of them")
        try:
            result = _run(pipeline, var, profile, master, remote, supersede, json, debug)
        except KeyboardInterrupt:
            click.echo("interrupted; `lockgate runs` says what is in place", err=True)
            raise SystemExit(130) from None
        except LockgateError as error:
            if not json:
                raise
            _print_failure(pipeline, error, debug)
            raise SystemExit(error.exit_code) from None
    if json:
        print_json(result.to_json())
    else:
        summary(result)


def _run(
    pipeline: Path,
    var: tuple[str, ...],
    profile: str | None,
    master: str | None,
    remote: str | None,
    supersede: bool,
    json: bool,
    debug: bool,
) -> RunResult:
    project = load_project(profile=profile)
    values = variables(var)
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
    ).execute()


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
