"""Logs for tests: small tables in either store."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable
from pathlib import Path

from lockgate.txlog.actions import Add, Metadata, Protocol, Remove
from lockgate.txlog.writer import TxnLogWriter
from support.postgres import Database

SCHEMA = json.dumps(
    {
        "type": "struct",
        "fields": [
            {"name": "id", "type": "long", "nullable": True, "metadata": {}},
            {"name": "day", "type": "string", "nullable": True, "metadata": {}},
        ],
    }
)
PROTOCOL = Protocol(1, 2)
METADATA = Metadata("5fba94ed-9794-4965-ba6e-6ee3c0d22af9", SCHEMA, created_time=1_700_000_000_000)
PARTITIONED = Metadata("5fba94ed-9794-4965-ba6e-6ee3c0d22af9", SCHEMA, ("day",), created_time=1_700_000_000_000)
TABLE = "sales.orders"
_numbers = itertools.count()


class Place:
    """Where a test's log and tables are."""

    def __init__(self, folder: Path, url: str) -> None:
        self.folder = folder
        self.url = url
        self.location = str(folder / "orders")

    def open(self, **options: object) -> TxnLogWriter:
        return TxnLogWriter.open(self.url, **options)  # type: ignore[arg-type]

    def table(self, log: TxnLogWriter, *, metadata: Metadata = METADATA, publish: bool = False) -> None:
        """A table with its first version."""
        log.create_table(TABLE, self.location, publish=publish)
        assert log.commit(TABLE, 0, [PROTOCOL, metadata]) == 0


def place(folder: Path, store: str, server: Database | None) -> Place:
    """A new, empty place."""
    if store == "sqlite":
        return Place(folder, f"sqlite:///{folder / 'log.db'}")
    assert server is not None
    schema = f"txlog{next(_numbers)}"  # sooner made than a database
    with server.session() as session:
        session.execute(f"CREATE SCHEMA {schema}".encode())
    return Place(folder, f"{server.url}&options=-csearch_path%3D{schema}")


def add(path: str, **more: object) -> Add:
    given = {"partition_values": {}, "size": 100, "modification_time": 1_700_000_000_000, "stats": '{"numRecords":1}'}
    return Add(path, **{**given, **more})  # type: ignore[arg-type]


def adds(paths: Iterable[str]) -> list[Add]:
    return [add(path) for path in paths]


def remove(path: str, **more: object) -> Remove:
    return Remove(path, **more)  # type: ignore[arg-type]


def paths(log: TxnLogWriter, version: int | None = None, table: str = TABLE) -> list[str]:
    return sorted(log.snapshot(table, version=version).files.column("path").to_pylist())
