"""Constraints of a table: one is added when all its rows keep it, and from then on every write must."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from lockgate.errors import ArgumentError
from lockgate.tables.file_differences import rows_of
from lockgate.tables.writable import Writable
from lockgate.targets.delta_rules import CONSTRAINT, check_rule, require_true
from lockgate.txlog.actions import Action, Protocol
from lockgate.txlog.commits import Operation
from lockgate.txlog.reading_features import DELETION_VECTORS
from lockgate.txlog.schema_json import arrow_schema

if TYPE_CHECKING:
    from lockgate.txlog.records import Snapshot

_NOTHING = "nothing was written"
_FEATURE = "checkConstraints"
_TRIES = 10


def add_constraint(table: Writable, name: str, condition: str) -> int:
    """The version from which on rows keep it. Rows that are there are checked first."""
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,99}", name):
        raise ArgumentError(
            f"{name!r} is not the name of a constraint", in_place=_NOTHING, hint="use letters, digits and _"
        )

    def change(_target: object) -> int:
        now = table.log.snapshot(table.name, understood=(DELETION_VECTORS,))
        if _key(now, name) is not None:
            raise ArgumentError(f"{table.name} has a constraint {name} already", in_place=_NOTHING)
        schema = arrow_schema(now.metadata.schema_string)
        rule = check_rule(name, condition, schema)

        def rows(columns: tuple[str, ...] | None = None) -> Iterator[pa.Table]:
            scanner = rows_of(now, schema).scanner(
                columns=list(columns) if columns else schema.names, batch_readahead=2, fragment_readahead=1
            )
            yield from (pa.Table.from_batches([batch]) for batch in scanner.to_batches())

        require_true([rule], lambda: rows(rule.columns), rows)
        settings = {**now.metadata.configuration, f"{CONSTRAINT}{name}": condition}
        actions: list[Action] = [replace(now.metadata, configuration=settings)]
        protocol = _protocol(now.protocol)
        if protocol != now.protocol:
            actions.insert(0, protocol)
        return _commit(table, now, actions, "ADD CONSTRAINT", {"name": name, "expr": condition}, read=True)

    version = table.changed(change, tries=_TRIES)
    table.publish()
    return version


def drop_constraint(table: Writable, name: str) -> int:
    def change(_target: object) -> int:
        now = table.log.snapshot(table.name, understood=(DELETION_VECTORS,))
        key = _key(now, name)
        if key is None:
            names = sorted(k.removeprefix(CONSTRAINT) for k in now.metadata.configuration if k.startswith(CONSTRAINT))
            raise ArgumentError(
                f"{table.name} has no constraint {name}",
                in_place=_NOTHING,
                hint=f"its constraints: {', '.join(names) or 'none'}",
            )
        settings = {k: v for k, v in now.metadata.configuration.items() if k != key}
        return _commit(table, now, [replace(now.metadata, configuration=settings)], "DROP CONSTRAINT", {"name": name})

    version = table.changed(change, tries=_TRIES)
    table.publish()
    return version


def _key(now: Snapshot, name: str) -> str | None:
    """Its property. Names of constraints are the same in upper and lower case."""
    wanted = f"{CONSTRAINT}{name}".lower()
    return next((key for key in now.metadata.configuration if key.lower() == wanted), None)


def _protocol(now: Protocol) -> Protocol:
    """With what a writer must know to keep constraints."""
    if now.writer_features is None:
        return replace(now, min_writer_version=max(now.min_writer_version, 3))
    if _FEATURE in now.writer_features:
        return now
    return replace(now, writer_features=[*now.writer_features, _FEATURE])


def _commit(
    table: Writable, now: Snapshot, actions: list[Action], operation: str, said: dict[str, str], *, read: bool = False
) -> int:
    return table.log.commit(
        table.name,
        None,
        actions,
        operation=Operation(operation, said),
        read_version=now.version,
        read_table=read,  # rows that are appended meanwhile were not checked
    )
