"""`lockgate recover`: finish or undo an interrupted write."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from lockgate.cli.console import DEBUG, JSON, errors_shown, print_json
from lockgate.errors import ConfigError


@click.command()
@click.argument("path")
@click.option("--s3-connection", metavar="NAME", help="Of the profile, for s3:// addresses.")
@click.option("--dry-run", is_flag=True, help="Say what would be done, and do nothing.")
@JSON
@DEBUG
def recover(path: str, s3_connection: str | None, dry_run: bool, json: bool, debug: bool) -> None:
    """Finish or undo an interrupted write, and say what was done."""
    with errors_shown(debug, json):
        from lockgate.storage.s3_address import is_s3
        from lockgate.targets.folder import RecoveryReport
        from lockgate.targets.folder import recover as recover_path
        from lockgate.targets.pending import pending

        report: RecoveryReport
        if is_s3(path):
            from lockgate.targets.s3_recovery import recover_s3

            report = recover_s3(path, connection=s3_connection, dry_run=dry_run)
        else:
            if not Path(path).exists() and not Path(path).parent.is_dir():
                raise ConfigError(f"there is nothing at {path}", in_place="nothing was changed")
            report = pending(path) if dry_run else recover_path(path)
        if json:
            print_json(asdict(report))
            return
        click.echo(str(report))
        if dry_run:
            click.echo("dry run: nothing was changed")
