"""The commands that keep Delta tables well join the group `lockgate table`."""

from __future__ import annotations

import click

from lockgate.cli import table_compact, table_diff, table_restore, table_vacuum

_COMMANDS = (table_compact.analyze, table_compact.compact, table_restore.restore, table_vacuum.vacuum, table_diff.diff)


def join(group: click.Group) -> None:
    for command in _COMMANDS:
        group.add_command(command)
