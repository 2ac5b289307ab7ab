"""`lockgate plan`: what a run would do."""

from __future__ import annotations

import logging
import signal
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lockgate.cli.console import DEBUG, JSON, PIPELINE, PROFILE, VAR, errors_shown, print_json, variables
from lockgate.cli.run import MASTER, REMOTE, interrupt, one_spark
from lockgate.cli.tables import print_table
from lockgate.config import load_project
from lockgate.errors import ConfigError, RunError

if TYPE_CHECKING:
    from lockgate.plan.steps import Plan
    from lockgate.running.preview import Preview, PreviewResult


@click.command()
@PIPELINE
@VAR
@PROFILE
@click.option("--preview", is_flag=True, help="Compute the rows and say what a run would change; write nothing.")
@MASTER
@REMOTE
@JSON
@DEBUG
def plan(
    pipeline: Path,
    var: tuple[str, ...],
    profile: str | None,
    preview: bool,
    master: str | None,
    remote: str | None,
    json: bool,
    debug: bool,
) -> None:
    """Show the steps of a pipeline in the order they run, what each reads, and what is written where and how."""
    with errors_shown(debug, json):
        one_spark(master, remote)
        if preview:
            _preview(pipeline, var, profile, master, remote, json, debug)
            return
        if master or remote:
            raise ConfigError("--master and --remote go with --preview; without it a plan needs no Spark")
        from lockgate.plan.describe import to_json
        from lockgate.running.load import load_plan

        made = load_plan(pipeline, load_project(profile=profile), variables(var))
        if json:
            print_json(to_json(made))
        else:
            _show(made)


def _show(made: Plan) -> None:
    from lockgate.plan.describe import engine_lines, to_rows

    heading, *rows = to_rows(made)
    print_table(heading, rows, title=f"plan of {made.pipeline}")
    for line in engine_lines(made):
        click.echo(line)


def _preview(
    pipeline: Path,
    var: tuple[str, ...],
    profile: str | None,
    master: str | None,
    remote: str | None,
    json: bool,
    debug: bool,
) -> None:
    signal.signal(signal.SIGTERM, interrupt)
    if not debug:
        logging.getLogger().addHandler(logging.NullHandler())  # as in a run: py4j logs when it is interrupted
    from lockgate.cli.progress import make_progress
    from lockgate.running.entry import make_preview, spark_settings

    project = load_project(profile=profile)
    ready = make_preview(
        pipeline,
        project,
        variables=variables(var),
        settings=spark_settings(project, master=master, remote=remote),
        progress=make_progress(quiet=json),
        debug=debug,
    )
    result = _execute(ready)
    if not json:
        _show(result.plan)
        for line in preview_lines(result):
            click.echo(line)
    if result.failure is not None:
        raise result.failure
    if json:
        print_json(result.to_json())


def _execute(ready: Preview) -> PreviewResult:
    try:
        return ready.execute()
    except KeyboardInterrupt:
        raise RunError("interrupted", in_place="nothing was written") from None


def preview_lines(result: PreviewResult) -> Iterator[str]:
    """What the preview found, an export and a check a line."""
    from lockgate.running.checks import found

    for export in result.to_json()["exports"]:
        changes = _changes(export) or f"{export['rows']:,} rows, what they change is not known"
        yield f"{export['type']} {export['mode']} {export['destination']}: {changes}"
    for check in result.checks:
        yield f"check {check.name}: {'passed' if check.passed else found(check)}"
    yield "preview: nothing was written"


def _changes(export: Mapping[str, Any]) -> str:
    removed = export["removed_files"]
    rows = {"insert": export["inserted"], "update": export["updated"], "delete": export["deleted"]}
    files = {"rewrite": export["files"]["rewritten"], "remove": None if removed is None else len(removed)}
    parts = []
    for what, counts in (("rows", rows), ("files", files)):
        known = ", ".join(f"{verb} {count:,}" for verb, count in counts.items() if count is not None)
        if known:
            parts.append(f"{what} to {known}")
    return "; ".join(parts)
