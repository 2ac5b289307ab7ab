"""`lockgate table vacuum`."""

from __future__ import annotations

from dataclasses import asdict

import click

from lockgate.cli.console import DEBUG, JSON, PROFILE, errors_shown, print_json
from lockgate.cli.table import NAME
from lockgate.errors import StorageError


@click.command()
@NAME
@click.option(
    "--retention", type=float, metavar="HOURS", help="Keep every version of the last HOURS.  [default: 168, a week]"
)
@click.option("--no-retention-check", is_flag=True, help="Allow a retention shorter than the table's own.")
@click.option("--dry-run", is_flag=True, help="List the files and their bytes, and remove nothing.")
@PROFILE
@JSON
@DEBUG
def vacuum(
    name: str,
    retention: float | None,
    no_retention_check: bool,
    dry_run: bool,
    profile: str | None,
    json: bool,
    debug: bool,
) -> None:
    """Remove data files of the table NAME that no version of the retention needs."""
    with errors_shown(debug, json):
        from lockgate.tables.entry import open_table

        with open_table(name, profile=profile) as table:
            done = table.vacuum(retention, dry_run=dry_run, check_retention=not no_retention_check)
        if json:
            print_json({"table": name, **asdict(done)})
        else:
            for file in done.files if dry_run else ():
                click.echo(file)
            said = "would be removed" if dry_run else "removed"
            click.echo(f"{len(done.files):,} files with {done.bytes:,} bytes {said}")
            if done.files and done.oldest_kept:
                click.echo(
                    f"versions before {done.oldest_kept} {'could' if dry_run else 'can'} no longer be read or restored"
                )
            if dry_run:
                click.echo("dry run: nothing was changed")
        if done.failed:
            raise StorageError(
                f"{len(done.failed)} files could not be removed: {next(iter(done.failed.values()))}",
                in_place=f"{len(done.files)} files were removed; every kept version of {name} is whole",
                hint="run the command again",
            )
