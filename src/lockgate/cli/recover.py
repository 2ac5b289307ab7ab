"""`lockgate recover`: finish or undo an interrupted write."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import typer

from lockgate.cli.console import DEBUG, JSON, errors_shown, print_json
from lockgate.errors import ConfigError


def recover(
    path: Path = typer.Argument(help="A Parquet folder, or a file beside which a write was interrupted."),
    json: bool = JSON,
    debug: bool = DEBUG,
) -> None:
    """Finish or undo an interrupted write, and say what was done."""
    with errors_shown(debug):
        from lockgate.targets.folder import recover as recover_path

        if not path.exists() and not path.parent.is_dir():
            raise ConfigError(f"there is nothing at {path}", in_place="nothing was changed")
        report = recover_path(path)
        if json:
            print_json(asdict(report))
        else:
            typer.echo(str(report))
