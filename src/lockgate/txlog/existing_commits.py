"""The commits of an existing log, in order, a few megabytes of them at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from lockgate.errors import DamagedLog
from lockgate.txlog.actions import Action, Add, CommitInfo, DomainMetadata, Metadata, Protocol, Txn, to_json
from lockgate.txlog.existing_files import ADDS, REMOVES
from lockgate.txlog.existing_lines import parsed_lines, read_line
from lockgate.txlog.existing_listing import LogFile

_BATCH_BYTES = 16 << 20
_ADD = b'{"add":{'
_REMOVE = b'{"remove":{'
_RECORDS = (CommitInfo, Protocol, Metadata, Txn, DomainMetadata)


@dataclass(frozen=True, slots=True)
class ExistingCommit:
    """What one commit says beside the files that join or leave."""

    version: int
    timestamp: int  # milliseconds since the epoch; grows with the version
    lines: tuple[str, ...] = ()  # every line but those of files, as it stands in the file
    info: Mapping[str, Any] = field(default_factory=dict)
    protocol: Protocol | None = None
    metadata: Metadata | None = None
    transactions: tuple[Txn, ...] = ()
    domains: tuple[DomainMetadata, ...] = ()
    adds: int = 0
    removes: int = 0
    changes: int = 0  # files of change data that it lists

    @property
    def actions(self) -> list[Action]:
        """Protocol, metadata, transactions and domains."""
        found: list[Action] = [each for each in (self.protocol, self.metadata) if each is not None]
        return [*found, *self.transactions, *self.domains]


@dataclass(frozen=True, slots=True)
class CommitBatch:
    commits: Sequence[ExistingCommit]
    adds: pa.Table
    removes: pa.Table


@dataclass
class _Lines:
    """Lines of one kind that wait to be parsed together."""

    kind: str
    lines: list[bytes] = field(default_factory=list)
    versions: list[int] = field(default_factory=list)

    def put(self, line: bytes, version: int) -> None:
        self.lines.append(line)
        self.versions.append(version)

    def taken(self, partition_columns: Sequence[str], where: str) -> pa.Table:
        table = parsed_lines(self.kind, self.lines, self.versions, partition_columns, where)
        self.lines, self.versions = [], []
        return table


def read_commits(
    files: Sequence[LogFile],
    first: int,
    read: Callable[[str], bytes],
    where: str,
    *,
    before: int = -1,
    metadata: Metadata | None = None,
    batch_bytes: int = _BATCH_BYTES,
) -> Iterator[CommitBatch]:
    """The commits in these files, which are those of the versions from `first` on without a gap.

    `before` is the time of the version before the first, `metadata` the table's there.
    """
    adds, removes = _Lines("add"), _Lines("remove")
    commits: list[ExistingCommit] = []
    tables: list[tuple[pa.Table, pa.Table]] = []
    size = 0
    columns = physical_partition_columns(metadata)

    def parse() -> None:
        tables.append((adds.taken(columns, where), removes.taken(columns, where)))

    def batch() -> CommitBatch:
        return CommitBatch(
            commits, pa.concat_tables([a for a, _ in tables] or [ADDS.empty_table()]),
            pa.concat_tables([r for _, r in tables] or [REMOVES.empty_table()]),
        )  # fmt: skip

    for version, file in enumerate(files, first):
        content = read(file.name)
        waiting = len(adds.lines), len(removes.lines)
        commit = _read(content, version, file, before, where, adds, removes)
        if commit.metadata is not None and (now := physical_partition_columns(commit.metadata)) != columns:
            # Lines before this commit have the old columns, its own the new ones.
            own = [_split(each, at) for each, at in zip((adds, removes), waiting, strict=True)]
            parse()
            columns = now
            adds, removes = own[0], own[1]
        commits.append(commit)
        before = commit.timestamp
        size += len(content)
        if size >= batch_bytes:
            parse()
            yield batch()
            commits, tables, size = [], [], 0
    parse()
    if commits:
        yield batch()


def physical_partition_columns(metadata: Metadata | None) -> list[str]:
    """The names under which files have their partition values: physical ones where columns are mapped."""
    if metadata is None or not metadata.partition_columns:
        return []
    from lockgate.txlog.column_mapping import physical_names

    names = physical_names(metadata)
    return [names.get(column, column) for column in metadata.partition_columns]


def _split(lines: _Lines, at: int) -> _Lines:
    own = _Lines(lines.kind, lines.lines[at:], lines.versions[at:])
    del lines.lines[at:], lines.versions[at:]
    return own


def _read(
    content: bytes, version: int, file: LogFile, before: int, where: str, adds: _Lines, removes: _Lines
) -> ExistingCommit:
    name = f"{where}/{file.name}"
    if not content.strip():
        raise DamagedLog(
            f"{name} is empty; a writer died while it wrote it, or the disk lost it",
            hint="restore the file from a copy, or remove it if it is the newest and nobody has read it",
        )
    kept: list[str] = []
    found: list[Action] = []
    counts = [len(adds.lines), len(removes.lines)]
    changes = 0
    for line in content.split(b"\n"):
        if line.startswith(_ADD):
            adds.put(line, version)
        elif line.startswith(_REMOVE):
            removes.put(line, version)
        elif line and not line.isspace():
            key, action = read_line(line, where, version)
            if key == "add" or key == "remove":
                (adds if isinstance(action, Add) else removes).put(to_json(action).encode(), version)
                continue
            kept.append(line.decode().strip())
            changes += key == "cdc"
            if isinstance(action, _RECORDS):
                found.append(action)
    info = _one(found, CommitInfo, name)
    return ExistingCommit(
        version,
        _timestamp(dict(info.info) if info else {}, file, before, name),
        tuple(kept),
        dict(info.info) if info else {},
        _one(found, Protocol, name),
        _one(found, Metadata, name),
        tuple(_unique(found, Txn, "app_id", name)),
        tuple(_unique(found, DomainMetadata, "domain", name)),
        len(adds.lines) - counts[0],
        len(removes.lines) - counts[1],
        changes,
    )


def _timestamp(info: Mapping[str, Any], file: LogFile, before: int, name: str) -> int:
    """The commit's own time where it has one, else its file's, as other readers take it; but always after the last."""
    own = info.get("inCommitTimestamp")
    if own is not None and (type(own) is not int or not 0 <= own < 2**62):
        raise DamagedLog(f"{name} has the inCommitTimestamp {own!r:.40}, which is no time")
    return max(own if own is not None else file.modified, before + 1)


def _one(found: Sequence[Action], kind: type, name: str) -> Any:
    of_kind = [each for each in found if isinstance(each, kind)]
    if len(of_kind) > 1:
        raise DamagedLog(f"{name} has {len(of_kind)} actions {kind.key}, and one at most is allowed")  # type: ignore[attr-defined]
    return of_kind[0] if of_kind else None


def _unique(found: Sequence[Action], kind: type, by: str, name: str) -> list[Any]:
    of_kind = [each for each in found if isinstance(each, kind)]
    if len({getattr(each, by) for each in of_kind}) < len(of_kind):
        raise DamagedLog(f"{name} has two actions {kind.key} for one {by}")  # type: ignore[attr-defined]
    return of_kind
