"""Statistics of a table's files, taken from the files again: where another writer left them out, or they are wrong."""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from lockgate.errors import StorageError
from lockgate.tables.writable import Writable
from lockgate.txlog.actions import Add
from lockgate.txlog.commits import Operation
from lockgate.txlog.paths import from_uri
from lockgate.txlog.reading_features import DELETION_VECTORS
from lockgate.txlog.schema_json import arrow_schema
from lockgate.txlog.statistics import indexed_columns, statistics_json

if TYPE_CHECKING:
    import pyarrow as pa

    from lockgate.txlog.records import Snapshot

_TRIES = 25


@dataclass(frozen=True)
class AnalyzeResult:
    """What `analyze` found. `version` is the current one where nothing changed."""

    version: int
    files: int
    changed: int


def analyze_table(table: Writable) -> AnalyzeResult:
    """One new version in which files have fresh statistics. No row changes, and no file."""
    told: dict[str, str] = {}  # a file's statistics are taken once, however often the commit is tried

    def change(_target: object) -> AnalyzeResult:
        snapshot = table.log.snapshot(table.name, understood=(DELETION_VECTORS,))
        adds = _changed(table, snapshot, told)
        if not adds:
            return AnalyzeResult(snapshot.version, snapshot.files.num_rows, 0)
        version = table.log.commit(
            table.name,
            None,
            adds,
            txn_id=uuid.uuid4().hex,
            operation=Operation("COMPUTE STATS", {}, {"numFiles": len(adds)}),
            read_version=snapshot.version,
            read_files=[add.path for add in adds],  # one that somebody removes meanwhile must not come back
            read_partitions=[],
        )
        return AnalyzeResult(version, snapshot.files.num_rows, len(adds))

    result = table.changed(change, tries=_TRIES)
    table.publish()
    return result


def _changed(table: Writable, snapshot: Snapshot, told: dict[str, str]) -> list[Add]:
    schema = arrow_schema(snapshot.metadata.schema_string)
    columns = set(snapshot.metadata.partition_columns)
    inside = _without(schema, columns)
    leaves = indexed_columns(snapshot.metadata.configuration)
    adds = []
    for row in snapshot.files.to_pylist():
        if row["deletion_vector"] is not None:
            continue  # what it tells is of more rows than live
        name = from_uri(row["path"])
        if name not in told:
            path = table.folder / name
            if not path.exists():
                raise StorageError(
                    f"a file of {table.name} is gone: {path}",
                    in_place="nothing was written",
                    hint="bring it back from a copy, or restore an older version",
                )
            told[name] = statistics_json(path, inside, leaves=leaves)
        if told[name] != row["stats"]:
            adds.append(_add(row, told[name]))
    return adds


def _add(row: dict[str, Any], stats: str) -> Add:
    add = Add(
        path=row["path"],
        partition_values=json.loads(row["partition_values"]),
        size=row["size"],
        modification_time=row["modification_time"],
        data_change=False,
        stats=stats,
    )
    return add if row["tags"] is None else replace(add, tags=json.loads(row["tags"]))


def _without(schema: pa.Schema, columns: set[str]) -> pa.Schema:
    import pyarrow as pa

    return pa.schema([field for field in schema if field.name not in columns])
