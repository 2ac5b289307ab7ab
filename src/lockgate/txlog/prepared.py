"""A commit made ready before any lock: read, validated against the table as it was known, its rows as far as known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lockgate.txlog.action_json import vector_body
from lockgate.txlog.actions import (
    Action,
    Add,
    CommitInfo,
    DomainMetadata,
    Metadata,
    Protocol,
    Remove,
    Txn,
    json_text,
    to_json,
)
from lockgate.txlog.commits import Operation, TableCommit
from lockgate.txlog.conflicts import Mine
from lockgate.txlog.files import path_hash

if TYPE_CHECKING:
    import pyarrow as pa

_ENGINE = "lockgate"
_OUR_OWN = ("timestamp", "inCommitTimestamp", "txnId", "isBlindAppend", "given")
_EXTRA = (
    ("base_row_id", "baseRowId"),
    ("default_row_commit_version", "defaultRowCommitVersion"),
    ("clustering_provider", "clusteringProvider"),
)


@dataclass
class Prepared:
    """One table's part of a transaction."""

    commit: TableCommit
    actions: Sequence[Action]
    adds: list[Add]
    add_table: pa.Table | None  # store.ADD_COLUMNS behind `ordinal`
    removes: list[Remove]
    metadata: Metadata | None
    protocol: Protocol | None
    txns: list[Txn]
    domains: list[DomainMetadata]
    info: dict[str, Any]
    mine: Mine
    blind_append: bool
    add_parts: list[tuple[Any, ...]]  # of each add: what its row holds behind `ordinal`
    state_versions: tuple[int, int] | None = None  # of metadata and protocol that it was validated against

    @property
    def is_simple(self) -> bool:
        """Whether it adds files and nothing else, whatever others commit meanwhile."""
        c = self.commit
        nothing_else = len(self.actions) - ("given" in self.info) == len(self.adds)
        changes_rows = all(add.data_change for add in self.adds)  # else a file may take its own place
        return (
            nothing_else and changes_rows and self.add_table is None and not self.mine.reads and c.read_version is None
        )

    def head(self, version: int, timestamp: int, txn_id: str) -> str:
        """The lines of the commit's file before those of files."""
        info: dict[str, Any] = {"timestamp": timestamp, "inCommitTimestamp": timestamp}
        info.update((k, v) for k, v in self.info.items() if k != "given")
        if self.commit.read_version is not None:
            info["readVersion"] = self.commit.read_version
        elif version > 0 and self.commit.expected_version is not None:
            info["readVersion"] = version - 1
        info["isBlindAppend"] = self.blind_append
        info.setdefault("engineInfo", _ENGINE)
        info["txnId"] = txn_id
        others = [self.protocol, self.metadata, *self.txns, *self.domains]
        lines = [json_text({"commitInfo": info})]
        lines += [to_json(each) for each in others if each is not None]
        return "\n".join(lines)


def prepare(commit: TableCommit, actions: Sequence[Action], add_table: pa.Table | None) -> Prepared:
    """Sort the actions, and work out all that does not depend on the version."""
    adds = [a for a in actions if isinstance(a, Add)]
    removes = [a for a in actions if isinstance(a, Remove)]
    metadata = next((a for a in actions if isinstance(a, Metadata)), None)
    protocol = next((a for a in actions if isinstance(a, Protocol)), None)
    txns = [a for a in actions if isinstance(a, Txn)]
    reads = commit.read_table or commit.read_files is not None
    changes_rows = any(a.data_change for a in adds) or add_table is not None
    mine = Mine(
        removes={a.path for a in removes},
        read_files=None if commit.read_files is None else frozenset(commit.read_files),
        read_partitions=commit.read_partitions,
        read_table=commit.read_table,
        app_ids=tuple(t.app_id for t in txns),
        changes_metadata=metadata is not None,
        changes_protocol=protocol is not None,
    )
    return Prepared(
        commit=commit,
        actions=actions,
        adds=adds,
        add_table=add_table,
        removes=removes,
        metadata=metadata,
        protocol=protocol,
        txns=txns,
        domains=[a for a in actions if isinstance(a, DomainMetadata)],
        info=_info(commit.operation, next((a for a in actions if isinstance(a, CommitInfo)), None)),
        mine=mine,
        blind_append=changes_rows and not removes and not reads and metadata is None and protocol is None,
        add_parts=[_add_parts(a) for a in adds],
    )


def _info(operation: Operation | str | None, given: CommitInfo | None) -> dict[str, Any]:
    info: dict[str, Any] = {}
    if isinstance(operation, str):
        operation = Operation(operation)
    if operation is not None:
        info["operation"] = operation.name
        # Delta's readers take both as maps of texts.
        info["operationParameters"] = {k: _as_text(v) for k, v in operation.parameters.items()}
        if operation.metrics:
            info["operationMetrics"] = {k: _as_text(v) for k, v in operation.metrics.items()}
    if given is not None:
        info["given"] = True
        info.update((k, v) for k, v in given.info.items() if k not in _OUR_OWN)
    info.setdefault("operation", "WRITE")
    info.setdefault("operationParameters", {})
    return info


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json_text(value)


def _add_parts(add: Add) -> tuple[Any, ...]:
    vector = add.deletion_vector
    extra = None
    if add.base_row_id is not None or add.default_row_commit_version is not None or add.clustering_provider is not None:
        extra = {spelled: getattr(add, name) for name, spelled in _EXTRA if getattr(add, name) is not None}
    values = add.partition_values
    return (
        path_hash(add.path, vector.unique_id if vector else None),
        add.size,
        add.modification_time,
        add.data_change,
        add.path,
        json_text(dict(values)) if values else "{}",
        add.stats,
        None if add.tags is None else json_text(dict(add.tags)),
        None if vector is None else json_text(vector_body(vector)),
        json_text(extra) if extra else None,
    )
