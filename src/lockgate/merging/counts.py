"""The row counts of a merge, and a guard against counts that cannot be true."""

from __future__ import annotations

from lockgate.errors import DatasetMergeError
from lockgate.merging.strategy import MergeStrategy


class MergeStats(dict[str, int]):
    """Rows inserted, updated and deleted, and the rows there are now, as items and as attributes.

    >>> stats = MergeStats(inserted=2, updated=1, deleted=0, total=5)
    >>> stats.inserted, stats["total"]
    (2, 5)
    """

    def __init__(self, *, inserted: int, updated: int, deleted: int, total: int) -> None:
        super().__init__(inserted=inserted, updated=updated, deleted=deleted, total=total)

    @property
    def inserted(self) -> int:
        return self["inserted"]

    @property
    def updated(self) -> int:
        return self["updated"]

    @property
    def deleted(self) -> int:
        return self["deleted"]

    @property
    def total(self) -> int:
        return self["total"]


def compute_merge_stats(
    *,
    strategy: MergeStrategy | str,
    target_before: int,
    target_after: int,
    inserted_rows: int,
    updated_rows: int,
    deleted_rows: int,
) -> MergeStats:
    """The counts of a merge, if they agree with each other and with the strategy.

    Counts that disagree mean that rows were lost or written twice, so nothing may become visible.

    >>> compute_merge_stats(
    ...     strategy="upsert", target_before=3, target_after=5, inserted_rows=2, updated_rows=1, deleted_rows=0
    ... )
    {'inserted': 2, 'updated': 1, 'deleted': 0, 'total': 5}
    """
    strategy = MergeStrategy(strategy)
    actions = strategy.actions
    counts = {
        "rows before": target_before,
        "rows after": target_after,
        "inserted": inserted_rows,
        "updated": updated_rows,
        "deleted": deleted_rows,
    }
    wrong = [f"{name} is negative" for name, count in counts.items() if count < 0]
    if target_after != target_before + inserted_rows - deleted_rows:
        wrong.append("rows after is not rows before + inserted - deleted")
    if updated_rows + deleted_rows > target_before:
        wrong.append("more rows were updated and deleted than there were")
    if inserted_rows and actions.new == "ignore":
        wrong.append(f"{strategy} inserts nothing")
    if updated_rows and actions.matched == "keep":
        wrong.append(f"{strategy} updates nothing")
    if deleted_rows and actions.others == "keep":
        wrong.append(f"{strategy} deletes nothing")
    if wrong:
        seen = ", ".join(f"{name} {count}" for name, count in counts.items())
        raise DatasetMergeError(
            f"the counts of this {strategy} do not agree: {'; '.join(wrong)} ({seen})",
            strategy=strategy,
            hint="this is a fault in Lockgate: please report it with the message",
        )
    return MergeStats(inserted=inserted_rows, updated=updated_rows, deleted=deleted_rows, total=target_after)
