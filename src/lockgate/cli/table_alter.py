"""`lockgate table alter`."""

from __future__ import annotations

import json as texts

import click

from lockgate.cli.console import DEBUG, JSON, PROFILE, errors_shown, print_json
from lockgate.cli.table import NAME
from lockgate.errors import ConfigError


def pair(option: str, text: str) -> tuple[str, str]:
    """NAME=VALUE.

    >>> pair("--set", "owner=a=b")
    ('owner', 'a=b')
    """
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise ConfigError(f"{option} {text!r} is not NAME=VALUE", in_place="nothing was written")
    return name.strip(), value.strip()


@click.command()
@NAME
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="Set a property; may be repeated.")
@click.option("--unset", multiple=True, metavar="KEY", help="Remove a property; may be repeated.")
@click.option("--add-column", metavar="NAME=TYPE", help="Add a column, its type as Delta spells it: long, date, …")
@click.option("--widen-column", metavar="NAME=TYPE", help="Give a column a wider type.")
@click.option("--add-constraint", metavar="NAME=SQL", help="A condition that every row must keep from now on.")
@click.option("--drop-constraint", metavar="NAME", help="Remove a constraint.")
@PROFILE
@JSON
@DEBUG
def alter(
    name: str,
    settings: tuple[str, ...],
    unset: tuple[str, ...],
    add_column: str | None,
    widen_column: str | None,
    add_constraint: str | None,
    drop_constraint: str | None,
    profile: str | None,
    json: bool,
    debug: bool,
) -> None:
    """Change one thing of the table NAME: its properties, a column or a constraint."""
    with errors_shown(debug, json):
        wanted = [bool(settings or unset), *map(bool, (add_column, widen_column, add_constraint, drop_constraint))]
        if sum(wanted) != 1:
            raise ConfigError(
                "say one thing that is to be changed", in_place="nothing was written", hint="such as --set owner=sales"
            )
        from lockgate.tables.entry import open_table
        from lockgate.txlog.schema_json import arrow_schema

        with open_table(name, profile=profile) as table:
            if add_column or widen_column:
                column, kind = pair("the column", str(add_column or widen_column))
                field = {"name": column, "type": kind, "nullable": True, "metadata": {}}
                arrow = arrow_schema(texts.dumps({"type": "struct", "fields": [field]})).field(column).type
                version = (table.add_column if add_column else table.widen_column)(column, arrow)
            elif add_constraint:
                version = table.add_constraint(*pair("--add-constraint", add_constraint))
            elif drop_constraint:
                version = table.drop_constraint(drop_constraint)
            else:
                version = table.set_properties(
                    {**dict(pair("--set", each) for each in settings), **dict.fromkeys(unset, None)}
                )
    if json:
        print_json({"table": name, "version": version})
    else:
        click.echo(f"{name} is at version {version}")
