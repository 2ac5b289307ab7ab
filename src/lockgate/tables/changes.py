"""Change data: which rows each version inserted, updated and deleted, found by comparing the files it added with those
it removed. A row that was only written again is no change, nor is any of a version that changed no data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from lockgate.errors import ArgumentError, TableNotFound
from lockgate.merging.keys import normalize_keys
from lockgate.merging.schema import require_columns
from lockgate.tables.diffing import labelled
from lockgate.tables.reading import read_arrow
from lockgate.tables.row_differences import as_schema, common_schema, compare
from lockgate.txlog.action_json import vector_body
from lockgate.txlog.actions import Add, Metadata, Protocol, Remove, json_text
from lockgate.txlog.files import files_schema
from lockgate.txlog.reading_features import BOTH
from lockgate.txlog.records import Snapshot, VersionChanges
from lockgate.txlog.retention import oldest_version
from lockgate.txlog.schema_json import arrow_schema

if TYPE_CHECKING:
    from lockgate.txlog.records import TableRecord
    from lockgate.txlog.writer import TxnLogWriter

_ADDED = pa.schema(
    [
        ("_change_type", pa.string()),
        ("_commit_version", pa.int64()),
        ("_commit_timestamp", pa.timestamp("us", "UTC")),
    ]
)


def table_changes(
    txn_log: TxnLogWriter,
    name: str,
    from_version: int,
    to_version: int | None = None,
    key_columns: str | Sequence[str] | None = None,
) -> pa.Table:
    """The changes of the versions from `from_version` to `to_version`, else the newest, oldest first. Without a key an
    updated row is a deleted and an inserted one."""
    record = txn_log.table(name)
    last = record.current_version if to_version is None else to_version
    oldest = oldest_version(txn_log.store.rows, record.id)
    if not oldest <= from_version <= last <= record.current_version:
        raise TableNotFound(
            f"{name} has the versions {oldest} to {record.current_version}, so there are no changes from "
            f"{from_version} to {last}",
            in_place="nothing was read",
            hint="`lockgate table history` lists the versions",
        )
    _, metadata = txn_log.metadata(name, version=last)
    schema = arrow_schema(metadata.schema_string)
    taken = [column for column in _ADDED.names if column in schema.names]
    if taken:
        raise ArgumentError(
            f"{name} has a column {taken[0]!r} of its own, which its change data would have as well",
            in_place="nothing was read",
        )
    keys = None if key_columns is None else normalize_keys(key_columns)
    if keys is not None:
        require_columns(schema, "table", keys, "key column")
    parts = list(_changes(txn_log, record, from_version, last, keys))
    for part in parts:
        schema = common_schema(part.drop_columns(_ADDED.names).schema, schema)
    schema = pa.schema([*common_schema(schema, schema), *_ADDED])
    return pa.concat_tables([schema.empty_table(), *(as_schema(part, schema) for part in parts)])


def _changes(
    txn_log: TxnLogWriter, record: TableRecord, first: int, last: int, keys: list[str] | None
) -> Iterator[pa.Table]:
    for version in txn_log.changes(record.name, first, last, understood=BOTH):
        adds = [a for a in version.actions if isinstance(a, Add) and a.data_change]
        removes = [a for a in version.actions if isinstance(a, Remove) and a.data_change]
        if not adds and not removes:
            continue
        now = txn_log.metadata(record.name, version=version.version)
        before = txn_log.metadata(record.name, version=version.version - 1) if removes else now
        went, came = _rows(record, version, before, removes), _rows(record, version, now, adds)
        if keys is not None:
            require_columns(common_schema(went.schema, came.schema), "table", keys, "key column")
        rows = labelled(compare(went, came, keys))
        count = rows.num_rows
        at = pa.scalar(version.timestamp * 1000, pa.timestamp("us", "UTC"))
        if count:
            yield rows.append_column(
                "_commit_version", pa.repeat(pa.scalar(version.version, pa.int64()), count)
            ).append_column("_commit_timestamp", pa.repeat(at, count))


def _rows(
    record: TableRecord, version: VersionChanges, state: tuple[Protocol, Metadata], files: Sequence[Add | Remove]
) -> pa.Table:
    """The rows of these files, which came or went with that version."""
    protocol, metadata = state
    listed = [
        {
            "path": each.path,
            "partition_values": json_text(dict(each.partition_values or {})),
            "size": each.size or 0,
            "modification_time": 0,
            "data_change": True,
            "stats": each.stats,
            "deletion_vector": None if each.deletion_vector is None else json_text(vector_body(each.deletion_vector)),
        }
        for each in files
    ]
    for each in files:
        if each.partition_values is None and metadata.partition_columns:
            raise ArgumentError(
                f"the log does not say in which partition the file {each.path!r} was that left {record.name} with "
                f"version {version.version}",
                in_place="nothing was read",
                hint="compare whole versions with `lockgate table diff`",
            )
    return read_arrow(
        Snapshot(
            table=record.name,
            location=record.location,
            version=version.version,
            timestamp=version.timestamp,
            protocol=protocol,
            metadata=metadata,
            transactions={},
            domains={},
            files=pa.Table.from_pylist(listed, files_schema()),
        )
    )
