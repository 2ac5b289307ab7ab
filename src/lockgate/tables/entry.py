"""`lockgate.open_table` and `lockgate.create_table`."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lockgate.config import load_project
from lockgate.errors import ArgumentError, TableExists, VersionConflict
from lockgate.tables.opening import needed_table, opened_log, published, registered
from lockgate.tables.places import log_address, table_folder
from lockgate.tables.table import Table
from lockgate.targets.delta_actions import first_actions
from lockgate.txlog.commits import Operation

if TYPE_CHECKING:
    import pyarrow as pa

_NOTHING = "nothing was written"


def open_table(name: str, *, profile: str | None = None, log: Any = None) -> Table:
    """The Delta table of that name. `log` is an address or an open log, if not that of the profile.

    >>> import pyarrow as pa, tempfile
    >>> address = f"sqlite:///{tempfile.mkdtemp()}/log.db"
    >>> _ = create_table("sales.daily", pa.schema({"id": pa.int64()}), location=tempfile.mkdtemp(), log=address)
    >>> open_table("sales.daily", log=address).version
    0
    """
    project = load_project(profile=profile)
    with ExitStack() as stack:
        if log is None or isinstance(log, str):
            txn_log = opened_log(log_address(project, log))
            stack.callback(txn_log.close)
        else:
            txn_log = log
        record = needed_table(txn_log, name)
        table = Table(name, Path(record.location), txn_log, owned=stack)
        stack.pop_all()
        return table


def create_table(
    name: str,
    schema: pa.Schema,
    *,
    partition_by: str | Sequence[str] = (),
    location: str | os.PathLike[str] | None = None,
    properties: Mapping[str, str] | None = None,
    profile: str | None = None,
    log: Any = None,
) -> Table:
    """Make an empty table: version 0. It lives in the profile's warehouse unless `location` says otherwise.

    >>> import pyarrow as pa, tempfile
    >>> address = f"sqlite:///{tempfile.mkdtemp()}/log.db"
    >>> create_table("t", pa.schema({"id": pa.uint8()}), location=tempfile.mkdtemp(), log=address).schema
    id: int16
    """
    import pyarrow as pa

    if not isinstance(schema, pa.Schema):
        raise ArgumentError(f"schema must be a pyarrow schema, not {type(schema).__name__}", in_place=_NOTHING)
    columns = (partition_by,) if isinstance(partition_by, str) else tuple(partition_by)
    if len(set(columns)) < len(columns):
        raise ArgumentError(f"partition_by names a column twice: {', '.join(columns)}", in_place=_NOTHING)
    project = load_project(profile=profile)
    folder = table_folder(project, name, os.fspath(location) if location is not None else None)
    actions = first_actions(schema, columns, properties=_texts(properties), created_time=time.time_ns() // 1_000_000)
    with ExitStack() as stack:
        if log is None or isinstance(log, str):
            txn_log = opened_log(log_address(project, log))
            stack.callback(txn_log.close)
        else:
            txn_log = log
        record = registered(txn_log, name, folder)
        if record.current_version >= 0 or Path(record.location) != folder:
            raise TableExists(
                f"there is a table {name} already, in {record.location}",
                in_place="it is as it was",
                hint="open it with open_table, or choose another name",
            )
        try:
            txn_log.commit(name, 0, actions, operation=Operation("CREATE TABLE", {"partitionBy": list(columns)}))
        except VersionConflict as error:
            raise TableExists(f"somebody has just made the table {name}", in_place="it is theirs") from error
        published(txn_log, name)
        table = Table(name, folder, txn_log, owned=stack)
        stack.pop_all()
        return table


def _texts(properties: Mapping[str, str] | None) -> dict[str, str]:
    if not all(isinstance(k, str) and isinstance(v, str) for k, v in (properties or {}).items()):
        raise ArgumentError(f"properties must be texts, not {dict(properties or {})!r}", in_place=_NOTHING)
    return dict(properties or {})
