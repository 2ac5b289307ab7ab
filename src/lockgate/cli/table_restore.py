"""`lockgate table restore`."""

from __future__ import annotations

from dataclasses import asdict

import click

from lockgate.cli.console import DEBUG, JSON, PROFILE, errors_shown, print_json
from lockgate.cli.table import NAME


@click.command()
@NAME
@click.option("--version", type=click.IntRange(min=0), metavar="N", help="The version whose rows come back.")
@click.option("--timestamp", metavar="T", help="The version of that moment, such as 2026-01-31T10:00:00Z.")
@PROFILE
@JSON
@DEBUG
def restore(
    name: str, version: int | None, timestamp: str | None, profile: str | None, json: bool, debug: bool
) -> None:
    """Make a new version of the table NAME with the rows, columns and properties of an old one."""
    with errors_shown(debug, json):
        from lockgate.tables.entry import open_table

        with open_table(name, profile=profile) as table:
            before = table.version
            done = table.restore(version=version, timestamp=timestamp)
    if json:
        print_json({"table": name, **asdict(done)})
    elif done.version == before:
        click.echo(f"{name} is as it was at version {done.restored} already; nothing was written")
    else:
        click.echo(
            f"{name} is as it was at version {done.restored}: version {done.version}, "
            f"{done.files_added:,} files came back, {done.files_removed:,} left"
        )
