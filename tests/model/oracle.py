"""What a merge means, over plain lists of rows. Written from SPEC §3 alone, and slow on purpose."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

Row = dict[str, Any]
Key = tuple[Any, ...]


class WouldMove(Exception):
    """A matched row would change its partition."""


@dataclass(frozen=True)
class Outcome:
    rows: list[Row]
    inserted: int
    updated: int
    deleted: int
    deduplicated: int = 0


def same(left: Any, right: Any) -> bool:
    """Equality of values: NULL equals NULL, NaN equals NaN, -0.0 equals 0.0."""
    if isinstance(left, float) and isinstance(right, float) and math.isnan(left) and math.isnan(right):
        return True
    return bool(left == right)


def key_of(row: Row, keys: Sequence[str]) -> Key | None:
    """The key in one spelling; None where a part of it is NULL, which matches nothing."""
    values = [row[name] for name in keys]
    if None in values:
        return None
    return tuple("NaN" if isinstance(v, float) and math.isnan(v) else v + 0.0 if v == 0.0 else v for v in values)


def first_of_each(source: list[Row], keys: Sequence[str], order: tuple[str, bool] | None) -> list[Row]:
    """One row a key: the last, or the first by (column, descending), NULLs as Spark has them, of equals the later."""
    best: dict[Key | None, tuple[Any, Row]] = {}
    for place, row in enumerate(source):
        rank: tuple[Any, ...] = (-place,)
        if order is not None:
            column, descending = order
            value = row[column]
            nulls = value is not None if not descending else value is None  # ASC: first, DESC: last
            rank = (nulls, 0 if value is None else -value if descending else value, -place)
        key = key_of(row, keys)
        if key not in best or rank < best[key][0]:
            best[key] = (rank, row)
    return [row for _, row in best.values()]


def merged(
    target: list[Row],
    source: list[Row],
    strategy: str,
    keys: Sequence[str],
    *,
    partition: str | None = None,
    order: tuple[str, bool] | None = None,
    skip_unchanged: bool = False,
    allow_partition_moves: bool = False,
) -> Outcome:
    given = len(source)
    if strategy == "deduplicate":
        source = first_of_each(source, keys, order)
    replacement = {key_of(row, keys): row for row in source}
    present = {key_of(row, keys) for row in target}
    new = [row for row in source if key_of(row, keys) not in present] if strategy != "update" else []
    if strategy == "insert":
        return Outcome(target + new, len(new), 0, 0)
    rows: list[Row] = []
    updated = deleted = 0
    for old in target:
        key = key_of(old, keys)
        if key is None or key not in replacement:
            if strategy == "full_merge":
                deleted += 1
            else:
                rows.append(old)
            continue
        fresh = replacement[key]
        if partition is not None and not allow_partition_moves and not same(old[partition], fresh[partition]):
            raise WouldMove(f"{old} to {fresh}")
        if skip_unchanged and all(same(old[name], fresh[name]) for name in old):
            rows.append(old)
            continue
        rows.append(fresh)
        updated += 1
    return Outcome(rows + new, len(new), updated, deleted, given - len(source))
