"""`lockgate init`: a project that runs at once."""

from __future__ import annotations

from importlib.resources import as_file, files
from pathlib import Path

import click

from lockgate.cli.console import DEBUG, errors_shown
from lockgate.errors import ConfigError
from lockgate.storage.local import LocalStorage


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@DEBUG
def init(folder: Path, debug: bool) -> None:
    """Make a project with a pipeline, sample data and a profile that runs at once."""
    with errors_shown(debug):
        made = make_project(folder)
        for path in made:
            click.echo(f"  {path}")
        click.echo(f"\nA project is in {folder}. Try:\n  cd {folder}\n  lockgate check pipeline.sql")
        click.echo("  lockgate run pipeline.sql")


def make_project(folder: Path) -> list[Path]:
    """Copy the template; a file that is there already stops it before anything is written."""
    with as_file(files("lockgate.cli").joinpath("template")) as template:
        wanted = {p.relative_to(template): p for p in sorted(template.rglob("*")) if p.is_file() and p.suffix != ".pyc"}
        targets = {folder / _real_name(name): source for name, source in wanted.items()}
        taken = [str(t) for t in targets if t.exists()]
        if taken:
            raise ConfigError(
                f"{taken[0]} is there already",
                in_place="nothing was written",
                hint="choose an empty or a new folder",
            )
        storage = LocalStorage()
        for target, source in targets.items():
            storage.make_folders(target.parent)
            storage.write(target, source.read_bytes())
    return list(targets)


def _real_name(name: Path) -> Path:
    # A dot file in a package is easily lost on the way, so the template spells the dot out.
    return name.with_name(name.name.replace("dot_", ".", 1)) if name.name.startswith("dot_") else name
