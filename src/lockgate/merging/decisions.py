"""From matches to actions: which files are written again, which go, and how many rows that changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from lockgate.errors import PartitionMoveError
from lockgate.merging.protocol import DataFile, FileChange, FileMatches, FittedRows, Found
from lockgate.merging.strategy import MergeStrategy

_SHOWN_KEYS = 5


@dataclass(frozen=True)
class Decision:
    """All that a merge will do, known before anything is written."""

    target_before: int
    inserted: int
    updated: int
    deleted: int
    added: int  # source rows that go to new files: the new ones, and those that move
    changes: list[FileChange] = field(default_factory=list)
    removed: list[DataFile] = field(default_factory=list)


def decide(
    strategy: MergeStrategy,
    files: Sequence[DataFile],
    found: Found,
    source: FittedRows,
    *,
    allow_partition_moves: bool,
    schema_in_files: bool = True,
) -> Decision:
    """Apply the table of actions. Every matched row counts once, however many share a key."""
    actions = strategy.actions
    before = sum(f.rows for f in files)
    if actions.matched == "keep":
        return Decision(before, found.new, 0, 0, found.new)
    if not allow_partition_moves:
        _refuse_moves(found.matches, source)
    by_name = {m.file.name: m for m in found.matches}
    changes, removed = [], []
    for file in files:
        own = by_name.get(file.name)
        others_go = actions.others == "remove" and (own is None or own.count < file.rows)
        if not others_go and (own is None or not (own.replaced or own.moving)):
            continue
        change = FileChange(file, own, keep_others=not others_go)
        if change.rows_after:
            changes.append(change)
        else:
            removed.append(file)
    moving = sum(m.moving for m in found.matches)
    if schema_in_files and files and len(removed) == len(files) and not found.new and not moving:
        # The schema of a dataset is in its files: one stays, without rows.
        changes.append(FileChange(removed.pop(0), None, keep_others=False))
    return Decision(
        before,
        inserted=found.new,
        updated=sum(m.replaced for m in found.matches) + moving,
        deleted=before - sum(m.count for m in found.matches) if actions.others == "remove" else 0,
        added=found.new + moving,
        changes=changes,
        removed=removed,
    )


def _refuse_moves(matches: Sequence[FileMatches], source: FittedRows) -> None:
    moving = [m for m in matches if m.moving]
    if moving:
        count = sum(m.moving for m in moving)
        raise PartitionMoveError(
            f"partition columns cannot change for existing keys: {count} would move, "
            f"such as {'; '.join(source.shown_moves(moving, _SHOWN_KEYS))}",
            in_place="nothing was written",
            hint="give the rows their old partition values, or pass allow_partition_moves=True",
        )
