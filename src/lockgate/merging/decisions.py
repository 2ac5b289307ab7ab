"""From matches to actions: which rows of which file are replaced, moved, dropped or kept, and what is new."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from lockgate.errors import PartitionMoveError
from lockgate.merging.key_index import comparable
from lockgate.merging.protocol import DataFile, FileChange, Found, Matches, SourceRows
from lockgate.merging.strategy import MergeStrategy

_SHOWN_KEYS = 5


@dataclass(frozen=True)
class Decision:
    """All that a merge will do, known before anything is written."""

    target_before: int
    inserted: int
    updated: int
    deleted: int
    added_rows: pa.Array  # source rows that go to new files: the new ones, and those that move
    changes: list[FileChange] = field(default_factory=list)
    removed: list[DataFile] = field(default_factory=list)


def decide(
    strategy: MergeStrategy,
    files: Sequence[DataFile],
    found: Found,
    source: SourceRows,
    *,
    allow_partition_moves: bool,
) -> Decision:
    """Apply the table of actions. Every matched row counts once, however many share a key."""
    actions = strategy.actions
    before = sum(f.rows for f in files)
    matches = found.matches
    matched = sum(len(m.rows) for m in matches)
    new = found.new_rows if found.new_rows is not None else _numbers([])
    if actions.matched == "keep":
        return Decision(before, len(new), 0, 0, new)
    moved = {m.file.name: _moved(m, source) for m in matches}
    if not allow_partition_moves:
        _refuse_moves(matches, moved, source)
    changes, removed, updated = [], [], 0
    arriving = [new]
    by_name = {m.file.name: m for m in matches}
    for file in files:
        own = by_name.get(file.name)
        if own is None:
            if actions.others == "remove":
                removed.append(file)
            continue
        leaving = moved[file.name]
        staying = pc.invert(leaving)
        changed = staying if own.changed is None else pc.and_(staying, own.changed)
        arriving.append(own.source_rows.filter(leaving))
        updated += changed.true_count + leaving.true_count
        others_go = actions.others == "remove" and len(own.rows) < file.rows
        if not changed.true_count and not leaving.true_count and not others_go:
            continue
        change = FileChange(
            file=file,
            rows=own.rows.filter(changed),
            source_rows=own.source_rows.filter(changed),
            dropped=own.rows.filter(leaving),
            keep_others=not others_go,
            kept=own.rows.filter(pc.and_not(staying, changed)) if own.changed is not None else None,
        )
        if change.rows_after:
            changes.append(change)
        else:
            removed.append(file)
    deleted = before - matched if actions.others == "remove" else 0
    added = pa.concat_arrays(arriving)
    if files and len(removed) == len(files) and not len(added):
        # The schema of a dataset is in its files: one stays, without rows.
        first = removed.pop(0)
        changes.append(FileChange(first, _numbers([]), _numbers([]), _numbers([]), keep_others=False))
    return Decision(before, len(new), updated, deleted, added, changes, removed)


def unmatched(matches: Sequence[Matches], rows: int) -> pa.Array:
    """The rows of a source of so many rows that no match names."""
    everything = pa.arange(0, rows)
    if not matches:
        return everything
    seen = pa.concat_arrays([m.source_rows for m in matches])
    return everything.filter(pc.inverse_permutation(seen, max_index=rows - 1).is_null())


def _moved(found: Matches, source: SourceRows) -> pa.Array:
    """Of each matched row, whether its source row belongs to another partition."""
    result = pa.repeat(pa.scalar(False), len(found.rows))
    for name in source.partition_columns:
        if name in source.key_columns or name not in found.file.partition:
            continue
        column = source.table.column(name)
        theirs = comparable(column.take(found.source_rows))
        mine = comparable(pa.repeat(pa.scalar(found.file.partition[name], column.type), 1))[0]
        same = pc.is_null(theirs) if not mine.is_valid else pc.fill_null(pc.equal(theirs, mine), False)
        result = pc.or_(result, pc.invert(same))
    return result


def _refuse_moves(matches: Sequence[Matches], moved: dict[str, pa.Array], source: SourceRows) -> None:
    shown: list[str] = []
    count = 0
    for found in matches:
        leaving = moved[found.file.name]
        count += leaving.true_count
        if leaving.true_count and len(shown) < _SHOWN_KEYS:
            rows = source.table.take(found.source_rows.filter(leaving).slice(0, _SHOWN_KEYS - len(shown)))
            for row in rows.select([*source.key_columns, *source.partition_columns]).to_pylist():
                key = ", ".join(f"{k}={row[k]!r}" for k in source.key_columns)
                to = ", ".join(f"{p}={row[p]!r}" for p in source.partition_columns)
                shown.append(f"{key} from {found.file.name.rpartition('/')[0]} to {to}")
    if count:
        raise PartitionMoveError(
            f"partition columns cannot change for existing keys: {count} would move, such as {'; '.join(shown)}",
            in_place="nothing was written",
            hint="give the rows their old partition values, or pass allow_partition_moves=True",
        )


def _numbers(values: list[int]) -> pa.Array:
    return pa.array(values, pa.int64())
