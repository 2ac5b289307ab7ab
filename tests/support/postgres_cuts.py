"""One small export into a PostgreSQL table, and the messages of the protocol at which something may happen to it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

import lockgate
from lockgate.config import Profile
from lockgate.destinations.protocol import Surroundings
from lockgate.running.pipeline import utc_now
from lockgate.running.progress import Silent
from lockgate.running.result import RunResult
from lockgate.running.settle import resume
from lockgate.running.state import RunState
from lockgate.storage.local import LocalStorage
from support.arrow_run import ArrowRun
from support.cutting_proxy import Cut, CuttingProxy, Side
from support.postgres import Database, socket_path, through
from support.postgres_runs import postgres_run, to_table

Messages = Mapping[Side, list[tuple[str, bytes]]]
RUN = "2026-01-01T00-00-00-aaaa"
ROWS = pa.table({"id": [2, 3], "v": ["B", "C"]})
OLD = [(1, "a"), (2, "b")]
NEW = {"APPEND": [(1, "a"), (2, "B"), (2, "b"), (3, "C")], "UPSERT": [(1, "a"), (2, "B"), (3, "C")]}
COUNTS = {"APPEND": (2, 0, 0), "UPSERT": (1, 1, 0)}


def old_table(database: Database) -> None:
    database.run("DROP TABLE IF EXISTS t")
    database.run("CREATE TABLE t (id int, v text)")
    database.run("INSERT INTO t VALUES (1, 'a'), (2, 'b')")


def content(database: Database) -> list[tuple[Any, ...]]:
    return database.run('SELECT id, v FROM t ORDER BY id, v COLLATE "C"')


def run_of(folder: Path, profile: Profile, mode: str, *, run: str = RUN) -> ArrowRun:
    keys = ["id"] if mode == "UPSERT" else []
    return postgres_run(folder, profile, [(to_table("t", mode, keys, settle_timeout=1), ROWS)], run=run)


def finished(folder: Path, profile: Profile) -> RunResult:
    # The profile of a record is that of lockgate.toml, and there is none here.
    around = replace(Surroundings(LocalStorage(), folder, profile))
    return resume(RUN, RunState(folder / ".lockgate"), around, Silent(), utc_now)


def messages_of_a_run(folder: Path, database: Database, mode: str) -> Messages:
    old_table(database)
    with proxied(database) as proxy:
        run_of(folder, through(proxy.port, database), mode).execute()
        return proxy.messages


def attempt(folder: Path, profile: Profile, mode: str) -> RunResult | lockgate.LockgateError:
    try:
        return run_of(folder, profile, mode).execute()
    except lockgate.LockgateError as error:
        return error


def transaction_begins(messages: Messages) -> dict[str, int]:
    """What comes before is the same for every session: mostly the server's types, a message each."""
    return {
        "client": next(n for n, (kind, body) in enumerate(messages["client"]) if kind == "P" and b"BEGIN" in body),
        "server": next(n for n, (kind, body) in enumerate(messages["server"]) if kind == "C" and b"BEGIN" in body),
    }


def copying(messages: Messages) -> int:
    """The client's first message with rows."""
    return 1 + next(n for n, (_, body) in enumerate(messages["client"]) if b"FROM STDIN" in body)


def swapping(messages: Messages) -> int:
    """The client's message that carries out the last statement which changes the table."""
    starts = max(n for n, (_, body) in enumerate(messages["client"]) if b'INSERT INTO "public"."t"' in body)
    return next(n for n, (kind, _) in enumerate(messages["client"]) if n > starts and kind == "E")


def committing(messages: Messages) -> int:
    """The client's message that carries out COMMIT."""
    return max(n for n, (kind, _) in enumerate(messages["client"]) if kind == "E")


@contextmanager
def proxied(database: Database, cut: Cut | None = None) -> Iterator[CuttingProxy]:
    proxy = CuttingProxy(socket_path(database), cut)
    try:
        yield proxy
    finally:
        proxy.close()
