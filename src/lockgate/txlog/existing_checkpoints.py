"""Checkpoints of every kind: one file, many parts, or a manifest (JSON or Parquet) with sidecars."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lockgate.errors import DamagedLog, ValidationError
from lockgate.txlog.actions import Action, DomainMetadata, Metadata, Protocol, Txn, from_json
from lockgate.txlog.existing_columns import file_rows
from lockgate.txlog.existing_files import ADDS, REMOVES, of_records
from lockgate.txlog.existing_lines import SCHEMAS, read_line
from lockgate.txlog.existing_listing import Checkpoint, LogFile

_SMALL = ("protocol", "metaData", "txn", "domainMetadata", "sidecar", "checkpointMetadata")
SIDECARS = "_sidecars"


@dataclass(frozen=True)
class CheckpointState:
    """The whole state of a table at one version."""

    version: int
    protocol: Protocol
    metadata: Metadata
    transactions: tuple[Txn, ...]
    domains: tuple[DomainMetadata, ...]
    adds: pa.Table
    tombstones: pa.Table  # files removed not long before: they are there for vacuum


@dataclass
class _Found:
    actions: list[Action] = field(default_factory=list)
    sidecars: list[str] = field(default_factory=list)
    adds: list[pa.Table] = field(default_factory=list)
    removes: list[pa.Table] = field(default_factory=list)
    manifest: bool = False


def read_checkpoint(checkpoint: Checkpoint, read: Callable[[str], bytes], where: str) -> CheckpointState:
    """The state that the checkpoint holds; an error names the file that cannot be read."""
    found = _Found()
    for file in checkpoint.files:
        if file.name.endswith(".json"):
            _read_manifest(read(file.name), file, checkpoint.version, where, found)
        else:
            _read_parquet(read(file.name), file.name, checkpoint.version, where, found)
    if found.sidecars and (found.adds or found.removes):
        raise DamagedLog(f"{where}/{checkpoint.files[0].name} lists files itself and in sidecars; it may do one only")
    for name in found.sidecars:
        _read_parquet(read(f"{SIDECARS}/{name}"), f"{SIDECARS}/{name}", checkpoint.version, where, found)
    return _state(checkpoint, found, f"{where}/{checkpoint.files[0].name}")


def _state(checkpoint: Checkpoint, found: _Found, name: str) -> CheckpointState:
    protocols = [each for each in found.actions if isinstance(each, Protocol)]
    metadata = [each for each in found.actions if isinstance(each, Metadata)]
    if len(protocols) != 1 or len(metadata) != 1:
        raise DamagedLog(
            f"{name} has {len(protocols)} protocol and {len(metadata)} metaData actions, and must have one of each",
            hint="the checkpoint is cut or was not written by Delta; remove it if the log has a newer one",
        )
    transactions = {each.app_id: each for each in found.actions if isinstance(each, Txn)}
    domains = [each for each in found.actions if isinstance(each, DomainMetadata) and not each.removed]
    return CheckpointState(
        checkpoint.version,
        protocols[0],
        metadata[0],
        tuple(transactions.values()),
        tuple({each.domain: each for each in domains}.values()),
        pa.concat_tables([ADDS.empty_table(), *found.adds]),
        pa.concat_tables([REMOVES.empty_table(), *found.removes]),
    )


def _read_manifest(content: bytes, file: LogFile, version: int, where: str, found: _Found) -> None:
    records: dict[str, list[Any]] = {"add": [], "remove": []}
    for line in content.split(b"\n"):
        if not line.strip():
            continue
        key, action = read_line(line, where, version, name=file.name)
        if key == "sidecar":
            found.sidecars.append(_sidecar_name(action, f"{where}/{file.name}"))
        elif key in records:
            records[key].append(action)
        elif key == "checkpointMetadata":
            _check_version(action, version, f"{where}/{file.name}")
        elif isinstance(action, (Protocol, Metadata, Txn, DomainMetadata)):
            found.actions.append(action)
    for key, tables in (("add", found.adds), ("remove", found.removes)):
        if records[key]:
            tables.append(of_records(records[key], [version] * len(records[key]), SCHEMAS[key]))


def _read_parquet(content: bytes, name: str, version: int, where: str, found: _Found) -> None:
    try:
        file = pq.ParquetFile(pa.BufferReader(content))
        table = file.read()
        table.validate(full=True)
        for key, body in _small_actions(table):
            if key == "sidecar":
                found.sidecars.append(_sidecar_name(body, f"{where}/{name}"))
            elif key == "checkpointMetadata":
                _check_version(body, version, f"{where}/{name}")
            else:
                found.actions.append(from_json({key: body}))
        for key, tables in (("add", found.adds), ("remove", found.removes)):
            if key in table.column_names and (rows := file_rows(key, table.column(key), version)).num_rows:
                tables.append(rows)
    except ValidationError as error:
        raise DamagedLog(f"{where}/{name}: {error.message}") from error
    except (pa.ArrowException, OSError, KeyError, TypeError, AttributeError, UnicodeDecodeError) as error:
        raise DamagedLog(
            f"{where}/{name} cannot be read as a checkpoint: {str(error)[:200]}",
            hint="restore it from a copy; or remove it, if a newer checkpoint or all commits since version 0 are there",
        ) from error


def _small_actions(table: pa.Table) -> Iterator[tuple[str, dict[str, Any]]]:
    for key in _SMALL:
        if key not in table.column_names:
            continue
        column = table.column(key)
        for body in column.filter(pc.is_valid(column)).to_pylist(maps_as_pydicts="strict"):
            yield key, {name: _plain(value) for name, value in body.items() if value is not None}


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items() if each is not None}
    return value


def _sidecar_name(body: Any, name: str) -> str:
    path = body.get("path") if isinstance(body, dict) else None
    if not isinstance(path, str):
        raise DamagedLog(f"{name} names a sidecar without a path")
    folder, _, last = unquote(path).rpartition("/")
    if last in ("", ".", "..") or "\0" in last or not (not folder or f"/{folder}".endswith(f"/_delta_log/{SIDECARS}")):
        raise DamagedLog(f"{name} names the sidecar {path!r}, which is not in the log's own folder {SIDECARS}")
    return last


def _check_version(body: Any, version: int, name: str) -> None:
    said = body.get("version") if isinstance(body, dict) else None
    if said != version:
        raise DamagedLog(f"{name} says that it is the checkpoint of version {said!r:.30}")
