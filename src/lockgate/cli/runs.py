"""`lockgate runs` and `lockgate resume`: the record of runs, and finishing one that was interrupted."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import click

from lockgate.cli.console import DEBUG, JSON, errors_shown, print_json
from lockgate.cli.tables import print_table
from lockgate.config import load_project
from lockgate.errors import ConfigError, PartialPublish
from lockgate.modes import KEYED_MODES

if TYPE_CHECKING:
    from lockgate.running.result import ExportResult
    from lockgate.running.state import RunRecord, RunState


@click.command()
@click.argument("run", required=False)
@click.option("--limit", "-n", type=click.IntRange(min=1), default=20, help="How many of the newest runs to list.")
@JSON
@DEBUG
def runs(run: str | None, limit: int, json: bool, debug: bool) -> None:
    """List the runs of this project, newest first, or show one."""
    with errors_shown(debug, json):
        from lockgate.running.settle import stored_result
        from lockgate.running.state import RunState

        state = RunState(load_project().state)
        if run is None:
            records = state.runs(limit=limit)
            if json:
                print_json({"runs": [_line(r, state) for r in records]})
            elif not records:
                click.echo("no runs yet")
            else:
                lines = [_line(r, state) for r in records]
                rows = [[str(v) if v is not None else "-" for v in line.values()] for line in lines]
                print_table([name.replace("_", " ") for name in lines[0]], rows)
            return
        record = state.run(run)
        if record is None:
            raise ConfigError(f"there is no run {run} in {state.folder}", hint="`lockgate runs` lists them")
        result = stored_result(record, state)
        if json:
            print_json(result.to_json())
            return
        click.echo(f"run {record.id} of {record.pipeline}: {_status(record, state)}")
        click.echo(f"  started {record.started}, finished {record.finished or '-'}")
        for export in result.exports:
            click.echo(f"  {export.type} {export.mode} {export.destination}: {export.status}, {_did(export)}")
        for check in result.checks:
            click.echo(f"  check {check.name}: {'passed' if check.passed else f'{check.failing_rows} rows found'}")
        if record.error:
            click.echo("  error: " + record.error.replace("\n", "\n  "))
        if record.status in ("publishing", "partial") and not state.is_alive(record.id):
            click.echo(f"  `lockgate resume {record.id}` finishes it")


@click.command()
@click.argument("run")
@JSON
@DEBUG
def resume(run: str, json: bool, debug: bool) -> None:
    """Finish publishing a run that was interrupted. Needs no Spark: everything is staged already."""
    with errors_shown(debug, json):
        from lockgate.cli.progress import make_progress
        from lockgate.cli.run import interrupt, summary
        from lockgate.destinations.protocol import Surroundings
        from lockgate.running.pipeline import utc_now
        from lockgate.running.settle import resume as finish
        from lockgate.running.state import RunState
        from lockgate.storage.local import LocalStorage

        project = load_project()
        around = Surroundings(LocalStorage(), project.root, project.profile)
        signal.signal(signal.SIGTERM, interrupt)
        state = RunState(project.state)
        before = state.run(run)
        try:
            result = finish(run, state, around, make_progress(quiet=json), utc_now)
        except KeyboardInterrupt:
            raise PartialPublish(
                f"interrupted while finishing run {run}",
                in_place="what is published stays; the rest is staged",
                hint=f"run `lockgate resume {run}` again",
            ) from None
        if json:
            print_json(result.to_json())
        elif before is not None and before.status == "published":
            click.echo(f"run {run} had published everything already; nothing was changed")
        else:
            summary(result)


def _did(export: ExportResult) -> str:
    if export.mode not in KEYED_MODES or export.status != "published":
        return f"rows {export.rows}"
    from lockgate.cli.run import merge_counts

    return merge_counts(export)


def _status(record: RunRecord, state: RunState) -> str:
    if record.status in ("running", "publishing") and not state.is_alive(record.id):
        return f"died while {record.status}"
    return record.status


def _line(record: RunRecord, state: RunState) -> dict[str, str | int | None]:
    return {
        "run": record.id,
        "pipeline": record.pipeline,
        "status": _status(record, state),
        "started": record.started,
        "finished": record.finished,
        "exit_code": record.exit_code,
    }
