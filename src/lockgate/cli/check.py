"""`lockgate check`: is the pipeline right? No Spark, no data, no writes."""

from __future__ import annotations

from pathlib import Path

import typer

from lockgate.cli.console import DEBUG, JSON, PROFILE, VAR, errors_shown, print_json, variables
from lockgate.config import load_project


def check(
    pipeline: Path = typer.Argument(help="The pipeline's file."),
    var: list[str] = VAR,
    profile: str | None = PROFILE,
    json: bool = JSON,
    debug: bool = DEBUG,
) -> None:
    """Parse and validate a pipeline; every error is shown, with its place."""
    with errors_shown(debug):
        from lockgate.running.load import check_pipeline

        found = check_pipeline(pipeline, load_project(profile=profile), variables(var))
        if json:
            print_json({"errors": [d.to_json() for d in found]})
        elif found:
            typer.echo("\n\n".join(d.render() for d in found), err=True)
            typer.echo(f"\n{len(found)} error{'s' if len(found) != 1 else ''} in {pipeline}", err=True)
        else:
            typer.echo(f"{pipeline}: no errors")
        if found:
            raise typer.Exit(2)
