"""`lockgate table prune`."""

from __future__ import annotations

from dataclasses import asdict

import click

from lockgate.cli.console import DEBUG, JSON, PROFILE, errors_shown, print_json
from lockgate.cli.table import NAME


@click.command()
@NAME
@click.option("--keep-versions", type=click.IntRange(min=1), metavar="N", help="Forget all versions but the newest N.")
@click.option("--older-than", metavar="T", help="Forget versions that were over then, such as 2026-01-31T10:00:00Z.")
@click.option(
    "--published", is_flag=True, help="Remove files of `_delta_log` before the last checkpoint that is needed, too."
)
@PROFILE
@JSON
@DEBUG
def prune(
    name: str,
    keep_versions: int | None,
    older_than: str | None,
    published: bool,
    profile: str | None,
    json: bool,
    debug: bool,
) -> None:
    """Forget old versions of the table NAME. Its newest ones and its data files stay."""
    with errors_shown(debug, json):
        from lockgate.tables.entry import open_table

        with open_table(name, profile=profile) as table:
            done = table.prune(keep_versions=keep_versions, older_than=older_than, published_too=published)
    if json:
        print_json({"table": name, **asdict(done)})
    else:
        click.echo(
            f"{name}: {done.versions:,} versions forgotten ({done.rows:,} rows, {done.published_files:,} published "
            f"files); the oldest is {done.oldest} now"
        )
