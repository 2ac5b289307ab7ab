"""The history of an existing table as rows of the log, a few thousand at a time."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from lockgate.txlog.actions import Protocol, json_text, to_json
from lockgate.txlog.existing_commits import ExistingCommit
from lockgate.txlog.existing_table import ExistingTable
from lockgate.txlog.files import path_hash
from lockgate.txlog.store import ADD_COLUMNS, Row, TableRow

_BATCH = 20_000
_EXTRA = (
    ("base_row_id", "baseRowId"),
    ("default_row_commit_version", "defaultRowCommitVersion"),
    ("clustering_provider", "clusteringProvider"),
)
_NO_INFO = '{"commitInfo":{}}'
_INFO = '{"commitInfo"'
_VERSIONS = ("table_id", "version", "timestamp", "txn_id", "blind_append", "head")
_REMOVES = ("table_id", "version", "ordinal", "deletion_timestamp", "path", "line")
_LINES = ("table_id", "version", "line")


@dataclass(frozen=True, slots=True)
class Load:
    """Rows for one of the log's tables. They are made as they are taken."""

    table: str
    columns: tuple[str, ...]
    rows: Iterable[Row]


def history_of(table: ExistingTable, table_id: int, import_id: str) -> Iterator[Load]:
    """What one transaction writes. `import_id` makes the versions' transaction ids, which others may not have."""
    commits = table.commits
    yield Load("dl_table_versions", _VERSIONS, (_version_row(each, table_id, import_id) for each in commits))
    yield Load(
        "dl_metadata_updates",
        _LINES,
        ((table_id, each.version, to_json(each.metadata)) for each in commits if each.metadata is not None),
    )
    yield Load(
        "dl_protocol_updates",
        _LINES,
        ((table_id, each.version, to_json(_plain(each.protocol))) for each in commits if each.protocol is not None),
    )
    yield Load(
        "dl_txn_actions",
        ("table_id", "app_hash", "version", "line"),
        ((table_id, path_hash(txn.app_id), c.version, to_json(txn)) for c in commits for txn in c.transactions),
    )
    yield Load(
        "dl_domain_metadata",
        ("table_id", "domain_hash", "version", "line"),
        ((table_id, path_hash(each.domain), c.version, to_json(each)) for c in commits for each in c.domains),
    )
    adds = table.adds.to_batches(max_chunksize=_BATCH)
    yield Load("dl_add_files", ADD_COLUMNS, (row for batch in adds for row in _add_rows(batch, table_id)))
    times = {commit.version: commit.timestamp for commit in commits}
    removes, ordinals = table.removes.to_batches(max_chunksize=_BATCH), _Ordinals()
    yield Load(
        "dl_remove_files",
        _REMOVES,
        (row for batch in removes for row in _remove_rows(batch, table_id, times, ordinals)),
    )


def final_row(table: ExistingTable, table_id: int, name: str, location: str) -> TableRow:
    """The table's own row: at its newest version, all of which is published."""
    last = table.commits[-1]
    return TableRow(
        id=table_id,
        name=name,
        location=location,
        current_version=last.version,
        last_timestamp=last.timestamp,
        metadata_version=max(c.version for c in table.commits if c.metadata is not None),
        protocol_version=max(c.version for c in table.commits if c.protocol is not None),
        publish=True,
        published_version=last.version,
    )


def _version_row(commit: ExistingCommit, table_id: int, import_id: str) -> Row:
    blind = commit.info.get("isBlindAppend") is True
    head = "\n".join(_head(commit.lines))
    return table_id, commit.version, commit.timestamp, f"{import_id}-{commit.version}", blind, head


def _plain(protocol: Protocol) -> Protocol:
    """Lists of features count where the version says so only; some writers put empty ones elsewhere."""
    return Protocol(
        protocol.min_reader_version,
        protocol.min_writer_version,
        protocol.reader_features if protocol.min_reader_version == 3 else None,
        protocol.writer_features if protocol.min_writer_version == 7 else None,
    )


def _head(lines: Sequence[str]) -> list[str]:
    """The lines with commitInfo first, where the log looks for it."""
    info = [line for line in lines if line.startswith(_INFO)]
    return [*(info or [_NO_INFO]), *(line for line in lines if not line.startswith(_INFO))]


def _add_rows(adds: pa.RecordBatch, table_id: int) -> Iterator[Row]:
    columns = {name: adds.column(name).to_pylist() for name in adds.schema.names}
    extras = _extras(columns, adds)
    paths, vectors = columns["path"], columns["deletion_vector_id"]
    return zip(
        itertools.repeat(table_id, adds.num_rows),
        columns["version"],
        columns["removed_version"],
        columns["ordinal"],
        map(path_hash, paths, vectors),
        columns["size"],
        columns["modification_time"],
        columns["data_change"],
        paths,
        columns["partition_values"],
        columns["stats"],
        columns["tags"],
        columns["deletion_vector"],
        extras,
        strict=True,
    )


def _extras(columns: dict[str, list[Any]], adds: pa.RecordBatch) -> list[str | None]:
    if all(adds.column(name).null_count == adds.num_rows for name, _ in _EXTRA):
        return [None] * adds.num_rows
    rows = zip(*(columns[name] for name, _ in _EXTRA), strict=True)
    bodies = ({spelled: v for (_, spelled), v in zip(_EXTRA, row, strict=True) if v is not None} for row in rows)
    return [json_text(body) if body else None for body in bodies]


class _Ordinals:
    """Numbers from 0 within each version, as its rows come."""

    def __init__(self) -> None:
        self._version = -1
        self._next = 0

    def of(self, version: int) -> int:
        if version != self._version:
            self._version, self._next = version, 0
        self._next += 1
        return self._next - 1


def _remove_rows(removes: pa.RecordBatch, table_id: int, times: dict[int, int], ordinals: _Ordinals) -> list[Row]:
    names = ("version", "deletion_timestamp", "path", "line")
    rows = zip(*(removes.column(name).to_pylist() for name in names), strict=True)
    return [
        (
            table_id,
            version,
            ordinals.of(version),
            times[version] if time is None else time,
            path,
            line if line.startswith('{"remove":') else json_text(json.loads(line)),
        )
        for version, time, path, line in rows
    ]
