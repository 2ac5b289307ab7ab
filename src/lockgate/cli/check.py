"""`lockgate check`: is the pipeline right? No Spark, no data, no writes."""

from __future__ import annotations

from pathlib import Path

import click

from lockgate.cli.console import DEBUG, JSON, PIPELINE, PROFILE, VAR, errors_shown, print_json, variables
from lockgate.config import load_project


@click.command()
@PIPELINE
@VAR
@PROFILE
@JSON
@DEBUG
def check(pipeline: Path, var: tuple[str, ...], profile: str | None, json: bool, debug: bool) -> None:
    """Parse and validate a pipeline; every error is shown, with its place."""
    with errors_shown(debug, json):
        from lockgate.running.load import check_pipeline

        found = check_pipeline(pipeline, load_project(profile=profile), variables(var))
        if json:
            print_json({"errors": [d.to_json() for d in found]})
        elif found:
            click.echo("\n\n".join(d.render() for d in found), err=True)
            click.echo(f"\n{len(found)} error{'s' if len(found) != 1 else ''} in {pipeline}", err=True)
        else:
            click.echo(f"{pipeline}: no errors")
        if found:
            raise SystemExit(2)
