"""`lockgate plan`: what a run would do."""

from __future__ import annotations

from pathlib import Path

import click

from lockgate.cli.console import DEBUG, JSON, PIPELINE, PROFILE, VAR, errors_shown, print_json, variables
from lockgate.cli.tables import print_table
from lockgate.config import load_project


@click.command()
@PIPELINE
@VAR
@PROFILE
@JSON
@DEBUG
def plan(pipeline: Path, var: tuple[str, ...], profile: str | None, json: bool, debug: bool) -> None:
    """Show the steps of a pipeline in the order they run, what each reads, and what is written where and how."""
    with errors_shown(debug, json):
        from lockgate.plan.describe import to_json, to_rows
        from lockgate.running.load import load_plan

        made = load_plan(pipeline, load_project(profile=profile), variables(var))
        if json:
            print_json(to_json(made))
            return
        heading, *rows = to_rows(made)
        print_table(heading, rows, title=f"plan of {made.pipeline}")
