"""Reading the log: tables, snapshots of any version, history, changes.

`TxnLog` is what reads; `writer.TxnLogWriter` is a `TxnLog` that also writes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lockgate.txlog.actions import DomainMetadata, Metadata, Protocol, Txn

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class TableRecord:
    """A table as the log knows it. `current_version` is -1 before the first commit."""

    name: str
    id: int
    location: str
    current_version: int
    publish: bool
    published_version: int


@dataclass(frozen=True)
class Snapshot:
    """A table at one version.

    `files` has the columns path, partition_values (JSON text), size, modification_time, data_change, stats (JSON
    text), tags (JSON text), deletion_vector (JSON text). `path` is spelled as in the log: `paths.from_uri`.
    """

    table: str
    location: str
    version: int
    timestamp: int
    protocol: Protocol
    metadata: Metadata
    transactions: Mapping[str, Txn]
    domains: Mapping[str, DomainMetadata]
    files: pa.Table


@dataclass(frozen=True, slots=True)
class HistoryRecord:
    """One version of a table, as `history` lists it. `timestamp` is in milliseconds since 1970."""

    version: int
    timestamp: int
    operation: str | None
    operation_parameters: Mapping[str, Any]
    metrics: Mapping[str, Any]
    txn_id: str
    engine_info: str | None
    read_version: int | None
    blind_append: bool
