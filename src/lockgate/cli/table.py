"""`lockgate table`: the Delta tables of the profile's log. A command joins the group at the end of this file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from lockgate.cli.console import DEBUG, JSON, PROFILE, errors_shown, print_json
from lockgate.cli.table_import import import_, release
from lockgate.cli.tables import print_table

if TYPE_CHECKING:
    from lockgate.txlog.writer import TxnLogWriter

NAME = click.argument("name")


@click.group()
def table() -> None:
    """Delta tables of the profile's log: make them, look at them, publish them."""


@click.command()
@NAME
@click.option(
    "--schema", "schema_file", metavar="FILE", help="A JSON file: Delta's or Spark's schema, or names and types."
)
@click.option("--like", metavar="PARQUET", help="Take the columns of a Parquet file or of a folder of them.")
@click.option("--partition-by", multiple=True, metavar="COLUMN", help="A partition column; may be repeated.")
@click.option("--location", metavar="FOLDER", help="Where its files go; by default below the warehouse.")
@PROFILE
@JSON
@DEBUG
def create(
    name: str,
    schema_file: str | None,
    like: str | None,
    partition_by: tuple[str, ...],
    location: str | None,
    profile: str | None,
    json: bool,
    debug: bool,
) -> None:
    """Make the empty table NAME, such as sales.daily."""
    with errors_shown(debug, json):
        from lockgate.tables.entry import create_table
        from lockgate.tables.given_schema import given_schema

        columns = tuple(c.strip() for text in partition_by for c in text.split(","))
        schema = given_schema(schema_file, like)
        with create_table(name, schema, partition_by=columns, location=location, profile=profile) as made:
            told = {"table": name, "version": made.version, "location": made.location}
    if json:
        print_json(told)
    else:
        click.echo(f"{name} is made, at version {told['version']}, in {told['location']}")


@click.command("list")
@PROFILE
@JSON
@DEBUG
def list_tables(profile: str | None, json: bool, debug: bool) -> None:
    """List the tables of the log."""
    with errors_shown(debug, json), opened(profile) as txn_log:
        records = [
            {
                "table": each.name,
                "version": each.current_version,
                "published": each.published_version if each.publish else None,
                "location": each.location,
            }
            for each in txn_log.tables()
            if each.current_version >= 0
        ]
    if json:
        print_json({"tables": records})
    elif not records:
        click.echo("no tables yet")
    else:
        print_table(list(records[0]), [[_shown(v) for v in each.values()] for each in records])


@click.command()
@NAME
@PROFILE
@JSON
@DEBUG
def show(name: str, profile: str | None, json: bool, debug: bool) -> None:
    """Show the columns, size and state of the table NAME."""
    with errors_shown(debug, json):
        from lockgate.tables.entry import open_table

        with open_table(name, profile=profile) as found:
            told = found.summary()
    if json:
        print_json(told)
        return
    click.echo(f"{name}: version {told['version']}, published up to {_shown(told['published'])}")
    click.echo(f"  location {told['location']}")
    click.echo(f"  {told['files']:,} files, {_shown(told['rows'])} rows, {told['bytes']:,} bytes")
    click.echo(f"  partitioned by {', '.join(told['partition_by']) or 'nothing'}")
    for key, value in told["properties"].items():
        click.echo(f"  {key} = {value}")
    print_table(
        ["column", "type", "nullable"], [[c["name"], c["type"], _shown(c["nullable"])] for c in told["columns"]]
    )


@click.command()
@NAME
@click.option("--limit", "-n", type=click.IntRange(min=1), default=20, help="How many of the newest versions to list.")
@PROFILE
@JSON
@DEBUG
def history(name: str, limit: int, profile: str | None, json: bool, debug: bool) -> None:
    """List the versions of the table NAME, newest first."""
    with errors_shown(debug, json), opened(profile) as txn_log:
        from lockgate.tables.opening import needed_table

        needed_table(txn_log, name)
        records = [
            {
                "version": each.version,
                "time": datetime.fromtimestamp(each.timestamp / 1000, UTC).isoformat(timespec="milliseconds"),
                "operation": each.operation,
                "parameters": dict(each.operation_parameters),
                "metrics": dict(each.metrics),
                "transaction": each.txn_id,
            }
            for each in txn_log.history(name, limit=limit)
        ]
    if json:
        print_json({"table": name, "versions": records})
        return
    print_table(
        ["version", "time", "operation", "transaction"],
        [[_shown(r[k]) for k in ("version", "time", "operation", "transaction")] for r in records],
    )


@click.command()
@click.argument("name", required=False)
@PROFILE
@JSON
@DEBUG
def publish(name: str | None, profile: str | None, json: bool, debug: bool) -> None:
    """Write what is committed and not yet published to `_delta_log`, of the table NAME or of all."""
    with errors_shown(debug, json), opened(profile) as txn_log:
        from lockgate.tables.opening import needed_table

        if name is not None:
            needed_table(txn_log, name)
        done = txn_log.publish(name)
    if json:
        print_json({"published": done})
    elif not any(done.values()):
        click.echo("everything is published already")
    for each, versions in done.items() if not json else ():
        if versions:
            click.echo(f"{each}: {versions} version{'' if versions == 1 else 's'} published")


@click.command()
@PROFILE
@JSON
@DEBUG
def migrate(profile: str | None, json: bool, debug: bool) -> None:
    """Bring the log's own schema up to this version of Lockgate."""
    from lockgate.config import load_project
    from lockgate.tables.opening import migrated_log
    from lockgate.tables.places import log_address

    with errors_shown(debug, json):
        version = migrated_log(log_address(load_project(profile=profile)))
    if json:
        print_json({"schema_version": version})
    else:
        click.echo(f"the log has schema version {version}")


@contextmanager
def opened(profile: str | None) -> Iterator[TxnLogWriter]:
    """The log of the profile."""
    from lockgate.config import load_project
    from lockgate.tables.opening import opened_log
    from lockgate.tables.places import log_address

    with opened_log(log_address(load_project(profile=profile))) as txn_log:
        yield txn_log


def _shown(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else str(value)


for command in (create, list_tables, show, history, import_, release, publish, migrate):
    table.add_command(command)
