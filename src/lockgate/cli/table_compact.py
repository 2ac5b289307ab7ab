"""`lockgate table compact` and `lockgate table analyze`."""

from __future__ import annotations

import re
from dataclasses import asdict

import click

from lockgate.cli.console import DEBUG, JSON, PROFILE, errors_shown, print_json
from lockgate.cli.dataset_options import columns
from lockgate.cli.table import NAME
from lockgate.errors import ConfigError

_UNITS = {"": 1, "B": 1, "KB": 2**10, "MB": 2**20, "GB": 2**30}


def size(text: str) -> int:
    """A number of bytes, as a person writes it.

    >>> size("128MB"), size("1.5 gb")
    (134217728, 1610612736)
    """
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMG]?B?)\s*", text.upper())
    unit = found and (found[2] if found[2] in _UNITS else f"{found[2]}B")
    if not found or int(float(found[1]) * _UNITS[unit or ""]) < 1:
        raise ConfigError(f"--target-size {text!r} is not a size", in_place="nothing was written", hint="such as 128MB")
    return int(float(found[1]) * _UNITS[unit or ""])


@click.command()
@NAME
@click.option("--target-size", default="128MB", show_default=True, metavar="SIZE", help="Of a file, at most.")
@click.option("--sort-by", multiple=True, metavar="COLUMNS", help="Write all files again, with rows in this order.")
@click.option("--zorder", multiple=True, metavar="COLUMNS", help="The same, by several columns with equal weight.")
@click.option("--statistics", is_flag=True, help="Take the statistics of all other files again, too.")
@PROFILE
@JSON
@DEBUG
def compact(
    name: str,
    target_size: str,
    sort_by: tuple[str, ...],
    zorder: tuple[str, ...],
    statistics: bool,
    profile: str | None,
    json: bool,
    debug: bool,
) -> None:
    """Write small files of the table NAME together. No row changes."""
    with errors_shown(debug, json):
        from lockgate.tables.entry import open_table

        with open_table(name, profile=profile) as table:
            done = table.compact(target_size=size(target_size), sort_by=columns(sort_by), zorder=columns(zorder))
            taken = table.analyze() if statistics else None
    if json:
        told = {"table": name, **asdict(done)}
        print_json(told if taken is None else {**told, "version": taken.version, "statistics": taken.changed})
        return
    if done.files_added:
        click.echo(
            f"{name}: {done.files_removed:,} files ({done.bytes_removed:,} bytes) became {done.files_added:,} "
            f"({done.bytes_added:,} bytes), version {done.version}"
        )
    else:
        click.echo(f"{name}: there is nothing to write together")
    if done.skipped:
        click.echo(f"{done.skipped:,} groups of files were changed by others meanwhile and left as they are")
    if taken is not None:
        click.echo(f"statistics of {taken.changed:,} files were renewed, version {taken.version}")


@click.command()
@NAME
@PROFILE
@JSON
@DEBUG
def analyze(name: str, profile: str | None, json: bool, debug: bool) -> None:
    """Take the statistics of all files of the table NAME again."""
    with errors_shown(debug, json):
        from lockgate.tables.entry import open_table

        with open_table(name, profile=profile) as table:
            done = table.analyze()
    if json:
        print_json({"table": name, **asdict(done)})
    elif done.changed:
        click.echo(f"{name}: statistics of {done.changed:,} of {done.files:,} files renewed, version {done.version}")
    else:
        click.echo(f"{name}: the statistics of all {done.files:,} files are right")
