"""`lockgate table import` and `lockgate table release`."""

from __future__ import annotations

from pathlib import Path

import click

from lockgate.cli.console import DEBUG, JSON, PROFILE, errors_shown, print_json


@click.command("import")
@click.argument("name")
@click.argument("path")
@PROFILE
@JSON
@DEBUG
def import_(name: str, path: str, profile: str | None, json: bool, debug: bool) -> None:
    """Take the Delta table in the folder PATH into the log as NAME, where it lies, with all its versions."""
    with errors_shown(debug, json):
        from lockgate.config import load_project
        from lockgate.tables.importing import import_existing

        place = path if "://" in path else str(Path.cwd() / path)  # as it was typed: from here, not from the project
        imported = import_existing(load_project(profile=profile), name, place)
    if json:
        print_json(imported.to_json())
        return
    click.echo(f"imported {imported.table} from {imported.location}")
    click.echo(f"  versions:    {imported.first_version:,} to {imported.version:,}")
    click.echo(f"  files:       {imported.files:,}, {imported.bytes:,} bytes")
    if imported.partition_columns:
        click.echo(f"  partitioned: by {', '.join(imported.partition_columns)}")
    if imported.constraints:
        click.echo(f"  constraints: {', '.join(imported.constraints)}")
    for note in imported.notes:
        click.echo(f"  note: {note}")


@click.command("release")
@click.argument("name")
@PROFILE
@JSON
@DEBUG
def release(name: str, profile: str | None, json: bool, debug: bool) -> None:
    """Publish all of table NAME, and take it out of the log: it is an ordinary Delta table again."""
    with errors_shown(debug, json):
        from lockgate.config import load_project
        from lockgate.tables.releasing import release as release_table

        released = release_table(load_project(profile=profile), name)
    if json:
        print_json(released.to_json())
        return
    click.echo(
        f"released {released.table}: {released.location} is an ordinary Delta table at version {released.version:,}"
    )
