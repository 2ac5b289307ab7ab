"""What an export into a PostgreSQL table asks, and what is wrong with it before anything runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from lockgate.config import Profile
from lockgate.destinations.options import Option, option_problems
from lockgate.destinations.protocol import Complaint, ExportRequest
from lockgate.errors import SchemaMismatchError
from lockgate.merging.order import parse_order_by
from lockgate.modes import KEYED_MODES
from lockgate.postgres.address import TYPE, address_problem, is_postgres

LONGEST_NAME = 63  # bytes; the server cuts a longer one without an error
MOST_STREAMS = 64

OPTIONS = {
    "connection": Option(str),
    "replace": Option(str, choices=("delete", "truncate")),
    "create": Option(bool),
    "lock_timeout": Option(int, positive=True),
    "statement_timeout": Option(int, positive=True),
    "settle_timeout": Option(int, positive=True),
    "parallel": Option(int, positive=True),
    "staging_schema": Option(str),
}
_SETTLE_TIMEOUT = 30  # seconds


@dataclass(frozen=True)
class TableName:
    """A table as it is named: exactly, and by the search path where no schema is given."""

    schema: str | None
    table: str

    @classmethod
    def parse(cls, text: str) -> TableName:
        """Split at the first dot.

        >>> TableName.parse("sales.Daily.2026")
        TableName(schema='sales', table='Daily.2026')
        """
        schema, dot, table = text.partition(".")
        return cls(schema, table) if dot else cls(None, text)


@dataclass(frozen=True)
class Wanted:
    """The write that an export asks for. It goes on record, so nothing of the connection but its name is in it."""

    connection: str
    schema: str | None
    table: str
    mode: str
    keys: tuple[str, ...]
    order_by: tuple[str, ...]
    truncate: bool
    create: bool
    lock_timeout: int | None  # seconds
    statement_timeout: int | None
    settle_timeout: int
    parallel: int
    staging_schema: str | None
    identity: str

    @classmethod
    def by(cls, request: ExportRequest) -> Wanted:
        name, options = TableName.parse(request.destination), request.options
        return cls(
            connection=options["connection"],
            schema=name.schema,
            table=name.table,
            mode=request.mode,
            keys=request.keys,
            order_by=request.order_by,
            truncate=options.get("replace", "delete").lower() == "truncate",
            create=options.get("create", True),
            lock_timeout=options.get("lock_timeout"),
            statement_timeout=options.get("statement_timeout"),
            settle_timeout=options.get("settle_timeout", _SETTLE_TIMEOUT),
            parallel=options.get("parallel", 1),
            staging_schema=options.get("staging_schema"),
            identity=f"{request.run}-{request.number}",
        )

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Wanted:
        lists = {name: tuple(value) for name, value in record.items() if isinstance(value, list)}
        return cls(**{**record, **lists})

    @property
    def keyed(self) -> bool:
        return self.mode in KEYED_MODES

    @property
    def shown(self) -> str:
        return f"{self.schema}.{self.table}" if self.schema else self.table


def problems(request: ExportRequest) -> list[Complaint]:
    return [
        *option_problems(request, OPTIONS),
        *_connection_problems(request.options.get("connection"), request.profile),
        *_name_problems(request.destination),
        *_mode_problems(request),
        *_parallel_problems(request.options),
    ]


def _connection_problems(name: Any, profile: Profile) -> Iterator[Complaint]:
    if name is None:
        hint = 'add OPTIONS {"connection": "..."} with a connection of the profile in lockgate.toml'
        yield Complaint("options", "missing-option", "TYPE POSTGRES needs the option 'connection'", hint)
        return
    if not isinstance(name, str):
        return  # said already
    postgres = [c.name for c in profile.connections.values() if is_postgres(c)]
    connection = profile.connections.get(name)
    if connection is None:
        close = get_close_matches(name, postgres, n=1)
        known = f"its PostgreSQL connections are {', '.join(sorted(postgres))}" if postgres else "it has none"
        hint = f"did you mean {close[0]}?" if close else f"write [profile.{profile.name}.connections.{name}]; {known}"
        message = f"option 'connection': the profile {profile.name} has no connection {name!r}"
        yield Complaint("options", "unknown-connection", message, hint)
    elif not is_postgres(connection):
        message = f"option 'connection': {name!r} is a connection of type {connection.type!r}, not 'postgres'"
        yield Complaint("options", "unknown-connection", message, f"name one of type {TYPE!r}")
    elif problem := address_problem(connection):
        message = f"option 'connection': {name!r} {problem.message}"
        yield Complaint("options", "bad-connection", message, problem.hint)


def _name_problems(text: str) -> Iterator[Complaint]:
    name = TableName.parse(text)
    hint = 'name a table: TO "schema.table", or TO "table" for one in the search path'
    if "\0" in text:
        yield Complaint("destination", "bad-name", "the destination holds a NUL character", hint)
    elif "://" in text:
        yield Complaint("destination", "bad-name", "TYPE POSTGRES writes to a table, and this is an address", hint)
    elif not name.table.strip() or (name.schema is not None and not name.schema.strip()):
        yield Complaint("destination", "bad-name", f"{text!r} does not name a table", hint)
    for part in (name.schema or "", name.table):
        if len(part.encode()) > LONGEST_NAME:
            message = f"{part!r} is longer than {LONGEST_NAME} bytes, where PostgreSQL cuts names"
            yield Complaint("destination", "bad-name", message, "shorten it")


def _mode_problems(request: ExportRequest) -> Iterator[Complaint]:
    try:
        parse_order_by(request.order_by)
    except SchemaMismatchError as error:
        message = error.message.replace("order_by", "ORDER BY")
        yield Complaint("mode", "mode", message, "name columns, each with ASC or DESC: updated_at DESC, id")
    if "replace" in request.options and request.mode != "REPLACE":
        message = f"option 'replace' says how MODE REPLACE empties the table, and the mode is {request.mode}"
        yield Complaint("options", "bad-option", message, "leave it out")


def _parallel_problems(options: Mapping[str, Any]) -> Iterator[Complaint]:
    parallel, schema = options.get("parallel", 1), options.get("staging_schema")
    if isinstance(parallel, int) and parallel > MOST_STREAMS:
        yield Complaint("options", "bad-option", f"option 'parallel' must be {MOST_STREAMS} or less, not {parallel}")
    if isinstance(parallel, int) and parallel > 1 and schema is None:
        message = "option 'parallel' needs a schema in which a staging table may be made"
        yield Complaint("options", "missing-option", message, 'add "staging_schema": "..."')
    if schema is not None and isinstance(schema, str):
        if not schema.strip() or "\0" in schema or len(schema.encode()) > LONGEST_NAME:
            yield Complaint("options", "bad-option", f"option 'staging_schema' does not name a schema: {schema!r}")
        elif "parallel" not in options:
            yield Complaint("options", "bad-option", "option 'staging_schema' is of no use without 'parallel'")
