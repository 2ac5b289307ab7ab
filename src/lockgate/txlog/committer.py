"""A commit, once its lock is had: version, clashes, rows. One transaction takes several at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from lockgate.errors import LogError, TableNotFound, ValidationError, VersionConflict
from lockgate.txlog import statements
from lockgate.txlog.actions import from_json, to_json
from lockgate.txlog.commits import Note
from lockgate.txlog.conflicts import clash
from lockgate.txlog.files import path_hash
from lockgate.txlog.prepared import Prepared
from lockgate.txlog.rivals import rivals_of
from lockgate.txlog.store import LIVE, Changes, Locked, TableRow, Transaction
from lockgate.txlog.validation import TableState, validate

_NOTHING = "nothing was committed"


@dataclass
class Request:
    """All that is to be committed under one txn_id, or not at all."""

    txn_id: str
    parts: Sequence[Prepared]
    notes: Sequence[Note] = ()
    versions: dict[str, int] = field(default_factory=dict)
    rebased: int = 0
    error: BaseException | None = None

    @property
    def tables(self) -> list[str]:
        return [part.commit.table for part in self.parts]

    @property
    def can_be_grouped(self) -> bool:
        return len(self.parts) == 1 and self.parts[0].is_simple and not self.notes


def apply(transaction: Transaction, requests: Sequence[Request]) -> bool:
    """Check and write these requests in one transaction, without committing it. Several at once only where each
    `can_be_grouped`. One that is refused gets its error and is left out. Returns whether there is anything to commit.
    """
    locked = transaction.lock(
        sorted({name for request in requests for name in request.tables}), [request.txn_id for request in requests]
    )
    changes = Changes()
    seen: set[tuple[int, int]] = set()  # live files that this transaction adds
    for request in requests:
        try:
            _apply_one(transaction, locked, request, changes, seen)
        except LogError as error:
            request.error = error
            if len(requests) == 1:
                return False
    if not changes.versions:
        return False
    transaction.write(changes)
    return True


def _apply_one(
    transaction: Transaction, locked: Locked, request: Request, changes: Changes, seen: set[tuple[int, int]]
) -> None:
    rows = [_row_of(locked, name) for name in request.tables]
    before = locked.done.get(request.txn_id)
    if before:
        if any(row.id not in before for row in rows):
            raise ValidationError(
                f"the transaction {request.txn_id} went through before, on other tables", in_place=_NOTHING,
                hint="a txn_id stands for one transaction; give another one",
            )  # fmt: skip
        request.versions = {row.name: before[row.id] for row in rows}
        return
    checked = [_check(transaction, row, part) for row, part in zip(rows, request.parts, strict=True)]
    for note in request.notes:
        _check_note(transaction, note)
    for row, part in zip(rows, request.parts, strict=True):
        for parts in part.add_parts if seen else ():
            if (row.id, parts[0]) in seen:
                raise ValidationError(f"the file {parts[4]!r} is in {row.name} already", in_place=_NOTHING)
    for row, part, rebased in zip(rows, request.parts, checked, strict=True):
        request.versions[row.name] = _write(row, part, request.txn_id, locked.now, changes, seen)
        request.rebased += rebased
        locked.done.setdefault(request.txn_id, {})[row.id] = row.current_version
    changes.notes += [(note.name, note.base + 1, request.txn_id, note.text) for note in request.notes]


def _check_note(transaction: Transaction, note: Note) -> None:
    """Transactions that keep the same note are of one pipeline, and hold the locks of its tables."""
    found = transaction.rows(statements.NOTE, note.name)
    if found and found[0][0] > note.base:
        raise VersionConflict(
            f"the transaction {found[0][1]} has moved the note {note.name} on meanwhile",
            expected=note.base + 1,
            actual=found[0][0],
        )


def _row_of(locked: Locked, name: str) -> TableRow:
    if name not in locked.tables:
        raise no_such_table(name)
    return locked.tables[name]


def no_such_table(name: str) -> TableNotFound:
    return TableNotFound(
        f"the log has no table {name}", in_place=_NOTHING, hint="`lockgate table list` names them; create it first"
    )


def _check(transaction: Transaction, row: TableRow, part: Prepared) -> bool:
    """Raise where the commit cannot be the next version. Returns whether it was rebased."""
    commit = part.commit
    expected, current = commit.expected_version, row.current_version
    if expected is not None and expected != current + 1:
        raise VersionConflict(
            f"{row.name} is at version {current}, so the next commit becomes {current + 1}, not {expected}"
            + _said_by(transaction, row, current if expected <= current else None),
            expected=expected,
            actual=current,
        )
    if commit.read_version is not None and commit.read_version > current:
        raise ValidationError(
            f"{row.name} is at version {current}, so nobody can have read version {commit.read_version}",
            in_place=_NOTHING,
        )
    _check_state(transaction, row, part)
    rebased = commit.read_version is not None and commit.read_version < current
    if rebased:
        found = clash(part.mine, rivals_of(transaction, row, part))
        # Looked at last: whoever prunes removes a version first, and only then what it did.
        if not found and not transaction.rows(statements.VERSION, row.id, commit.read_version):
            raise VersionConflict(
                f"version {commit.read_version} of {row.name}, which this commit has read, was pruned meanwhile, so "
                "what came after it cannot be told any more",
                expected=expected,
                actual=current,
            )
        if found:
            raise VersionConflict(
                f"version {found.version} of {row.name} clashes with this commit: {found.what}"
                + _said_by(transaction, row, found.version),
                expected=expected,
                actual=current,
            )
    _check_applications(transaction, row, part)
    _check_removes(transaction, row, part)
    return rebased


def _said_by(transaction: Transaction, row: TableRow, version: int | None) -> str:
    """Who made a version, as far as it says so itself."""
    if version is None or version < 0:
        return ""
    found = transaction.rows(statements.VERSION, row.id, version)
    if not found:
        return ""
    info = from_json(found[0][4].partition("\n")[0]).info  # type: ignore[union-attr]
    return f" (version {version}: {info.get('operation', 'unknown')}, transaction {found[0][2]})"


def _check_state(transaction: Transaction, row: TableRow, part: Prepared) -> None:
    """Validate again where the schema or protocol is not the one that the commit was validated against."""
    if part.state_versions != (row.metadata_version, row.protocol_version):
        state = state_of(transaction.rows, row, row.current_version)
        validate(part.actions, state, table=row.name)
        metadata = part.metadata or state.metadata
        if part.add_table is not None and metadata is not None:
            from lockgate.txlog.file_rows import check_partitions

            check_partitions(part.add_table.column("partition_values"), set(metadata.partition_columns), row.name)
        part.state_versions = (row.metadata_version, row.protocol_version)


def state_of(rows: Callable[..., list[tuple[object, ...]]], row: TableRow, version: int) -> TableState:
    """Schema and protocol of a version."""
    protocol = rows(statements.PROTOCOL_AT, row.id, version)
    metadata = rows(statements.METADATA_AT, row.id, version)
    return TableState(
        from_json(str(protocol[0][1])) if protocol else None,  # type: ignore[arg-type]
        from_json(str(metadata[0][1])) if metadata else None,  # type: ignore[arg-type]
    )


def _check_applications(transaction: Transaction, row: TableRow, part: Prepared) -> None:
    for txn in part.txns:
        for version, line in transaction.rows(statements.TXNS_OF, row.id, path_hash(txn.app_id)):
            before = from_json(line)
            if before.app_id != txn.app_id:  # type: ignore[union-attr]
                continue
            if before.version >= txn.version:  # type: ignore[union-attr]
                raise VersionConflict(
                    f"the application {txn.app_id!r} committed its {before.version} to {row.name} as version "  # type: ignore[union-attr]
                    f"{version}, so {txn.version} was done before",
                    expected=part.commit.expected_version,
                    actual=row.current_version,
                    hint="leave this commit out: its work is in the table",
                )
            break


def _check_removes(transaction: Transaction, row: TableRow, part: Prepared) -> None:
    if not part.removes:
        return
    hashes = [path_hash(each.path, each.deletion_vector_id) for each in part.removes]
    live = transaction.live(row.id, hashes)
    for each, key in zip(part.removes, hashes, strict=True):
        if live.get(key) == each.path:
            continue
        gone = transaction.rows(statements.REMOVED_BY, row.id, each.path, -1)[0][0]
        if gone is not None:
            raise VersionConflict(
                f"the file {each.path!r} was removed from {row.name} by version {gone}",
                expected=part.commit.expected_version,
                actual=row.current_version,
            )
        raise ValidationError(f"the file {each.path!r} is to be removed and is not in {row.name}", in_place=_NOTHING)


def _write(row: TableRow, part: Prepared, txn_id: str, now: int, changes: Changes, seen: set[tuple[int, int]]) -> int:
    version = row.current_version + 1
    timestamp = max(now, row.last_timestamp + 1)
    table = row.id
    changes.versions.append(
        (table, version, timestamp, txn_id, part.blind_append, part.head(version, timestamp, txn_id))
    )
    for ordinal, parts in enumerate(part.add_parts):
        changes.adds.append((table, version, LIVE, ordinal, *parts))
        if not parts[3]:  # no row changes: it may take the place of itself, with other statistics
            changes.removed.append((version, table, parts[0]))
    if part.is_simple:  # only then may others share the transaction
        seen.update((table, parts[0]) for parts in part.add_parts)
    if part.add_table is not None:
        changes.add_tables.append((table, version, len(part.add_parts), part.add_table))
    for ordinal, each in enumerate(part.removes):
        if each.deletion_timestamp is None:
            each = replace(each, deletion_timestamp=timestamp)
        changes.removed.append((version, table, path_hash(each.path, each.deletion_vector_id)))
        changes.removes.append((table, version, ordinal, each.deletion_timestamp, each.path, to_json(each)))
    if part.metadata is not None:
        changes.metadata.append((table, version, to_json(part.metadata)))
        row.metadata_version = version
    if part.protocol is not None:
        changes.protocols.append((table, version, to_json(part.protocol)))
        row.protocol_version = version
    changes.txns += [(table, path_hash(each.app_id), version, to_json(each)) for each in part.txns]
    changes.domains += [(table, path_hash(each.domain), version, to_json(each)) for each in part.domains]
    row.current_version = version
    row.last_timestamp = timestamp
    changes.tables[table] = row
    return version
