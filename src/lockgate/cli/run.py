"""`lockgate run`: compute, stage, check, publish."""

from __future__ import annotations

import logging
import os
import signal
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import click

from lockgate.cli.console import DEBUG, JSON, PIPELINE, PROFILE, VAR, errors_shown, print_json, variables
from lockgate.config import load_project
from lockgate.errors import ConfigError, RunError
from lockgate.modes import KEYED_MODES

if TYPE_CHECKING:
    from lockgate.running.pipeline import PipelineRun
    from lockgate.running.result import ExportResult, RunResult


MASTER = click.option("--master", metavar="URL", help="A Spark master, such as spark://host:7077 or local[4].")
REMOTE = click.option("--remote", metavar="URL", help="A Spark Connect server, such as sc://host:15002.")

FULL_REFRESH = click.option("--full-refresh", is_flag=True, help="Read incremental sources from the beginning.")
FROM = click.option("--from", "start", metavar="VALUE", help="Read a range of incremental sources: from here on,")
TO = click.option("--to", "end", metavar="VALUE", help="up to this value of the cursor, without it.")


@click.command()
@PIPELINE
@VAR
@PROFILE
@MASTER
@REMOTE
@click.option("--supersede", is_flag=True, help="Give up what an interrupted earlier run of this pipeline had staged.")
@FULL_REFRESH
@FROM
@TO
@JSON
@DEBUG
def run(
    pipeline: Path,
    var: tuple[str, ...],
    profile: str | None,
    master: str | None,
    remote: str | None,
    supersede: bool,
    full_refresh: bool,
    start: str | None,
    end: str | None,
    json: bool,
    debug: bool,
) -> None:
    """Run a pipeline: all its results become visible, or none does."""
    signal.signal(signal.SIGTERM, interrupt)
    if not debug:
        # py4j logs tracebacks on the root logger when its socket is interrupted; our message says what happened.
        logging.getLogger().addHandler(logging.NullHandler())
    with errors_shown(debug, json):
        one_spark(master, remote)
        given = {"supersede": supersede, "full_refresh": full_refresh, "backfill": (start, end), "debug": debug}
        result = _execute(_ready(pipeline, variables(var), profile, master, remote, json, given))
    if json:
        print_json(result.to_json())
    else:
        summary(result)


def one_spark(master: str | None, remote: str | None) -> None:
    if master and remote:
        raise ConfigError("--master and --remote exclude each other", hint="give one of them")


def _ready(
    pipeline: Path,
    values: dict[str, Any],
    profile: str | None,
    master: str | None,
    remote: str | None,
    json: bool,
    given: dict[str, Any],
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
        **given,
    )


def _execute(ready: PipelineRun) -> RunResult:
    """Run it; Ctrl-C is an error like any other, since the run has cleaned up or kept what `resume` needs."""
    try:
        return ready.execute()
    except KeyboardInterrupt:
        raise (ready.ending or RunError("interrupted", in_place="nothing was run")) from None


def summary(result: RunResult) -> None:
    """What was published, one line an export."""
    for export in result.exports:
        click.echo(f"{export.type} {export.mode} {_merged(export) if export.mode in KEYED_MODES else _written(export)}")
    click.echo(f"run {result.run}: {result.status}")


def _written(export: ExportResult) -> str:
    place = os.path.relpath(export.paths[0]) if len(export.paths) == 1 else export.destination
    files = "" if len(export.paths) < 2 else f" in {len(export.paths)} files"
    return f"{place}: {export.inserted or 0:,} rows{files}"


def _merged(export: ExportResult) -> str:
    return f"{export.destination}: {merge_counts(export)}"


def merge_counts(export: ExportResult) -> str:
    """What a keyed export did, in words."""
    files = ", ".join(f"{what} {count:,}" for what, count in export.files.items())
    return f"rows {export.changes}; files {files}; by {export.engine}"


def interrupt(number: int, frame: FrameType | None) -> None:
    """SIGTERM ends a run as Ctrl-C does: with its staging cleaned up."""
    del number, frame
    raise KeyboardInterrupt
