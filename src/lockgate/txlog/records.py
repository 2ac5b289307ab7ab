"""What reading the log gives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from lockgate.txlog.actions import Action, DomainMetadata, Metadata, Protocol, Txn

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class TableRecord:
    """A table as the log knows it. `current_version` is -1 before the first commit, `published_version` before the
    first commit file."""

    name: str
    id: int
    location: str
    current_version: int
    publish: bool
    published_version: int

    @property
    def lag(self) -> int:
        """How many versions wait to be published."""
        return self.current_version - self.published_version if self.publish else 0


@dataclass(frozen=True)
class Snapshot:
    """A table at one version; `timestamp` in milliseconds since 1970.

    `files` has the columns of `files.files_schema()`: path (as the log spells it: `paths.from_uri` gives the file's
    name), partition_values (JSON text), size, modification_time, data_change, stats, tags and deletion_vector (all
    three JSON text).
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
    """One version of a table; `timestamp` in milliseconds since 1970."""

    version: int
    timestamp: int
    operation: str | None
    operation_parameters: Mapping[str, Any]
    metrics: Mapping[str, Any]
    txn_id: str
    engine_info: str | None
    read_version: int | None
    blind_append: bool

    @property
    def time(self) -> datetime:
        return datetime.fromtimestamp(self.timestamp / 1000, UTC)


@dataclass(frozen=True, slots=True)
class VersionChanges:
    """The actions of one version, in the order of its commit file; the first is its `CommitInfo`."""

    version: int
    timestamp: int
    txn_id: str
    actions: Sequence[Action]
