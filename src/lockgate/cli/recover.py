"""`lockgate recover`: finish or undo an interrupted write."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from lockgate.cli.console import DEBUG, JSON, errors_shown, print_json
from lockgate.errors import ConfigError


@click.command()
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--dry-run", is_flag=True, help="Say what would be done, and do nothing.")
@JSON
@DEBUG
def recover(path: Path, dry_run: bool, json: bool, debug: bool) -> None:
    """Finish or undo an interrupted write, and say what was done."""
    with errors_shown(debug, json):
        from lockgate.targets.folder import recover as recover_path
        from lockgate.targets.pending import pending

        if not path.exists() and not path.parent.is_dir():
            raise ConfigError(f"there is nothing at {path}", in_place="nothing was changed")
        report = pending(path) if dry_run else recover_path(path)
        if json:
            print_json(asdict(report))
            return
        click.echo(str(report))
        if dry_run:
            click.echo("dry run: nothing was changed")
