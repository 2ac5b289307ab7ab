"""The commands that keep Delta tables well join the group `lockgate table`."""

from __future__ import annotations

import click

from lockgate.cli import table_alter, table_compact, table_diff, table_prune, table_restore, table_vacuum

_COMMANDS = (
    table_alter.alter,
    table_compact.analyze,
    table_compact.compact,
    table_diff.diff,
    table_prune.prune,
    table_restore.restore,
    table_vacuum.vacuum,
)


def join(group: click.Group) -> None:
    for command in _COMMANDS:
        group.add_command(command)
