"""The five strategies as one table of actions. Every engine and every target follows this table and no other."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal


class MergeStrategy(StrEnum):
    """What a merge does with matched, new and other rows.

    >>> MergeStrategy("upsert").actions.matched
    'replace'
    """

    INSERT = "insert"
    UPDATE = "update"
    UPSERT = "upsert"
    FULL_MERGE = "full_merge"
    DEDUPLICATE = "deduplicate"

    @property
    def actions(self) -> Actions:
        return _ACTIONS[self]

    @classmethod
    def _missing_(cls, value: object) -> MergeStrategy:
        if isinstance(value, str) and value.lower() != value:
            return cls(value.lower())
        raise ValueError(f"there is no merge strategy {value!r}; known: {', '.join(cls)}")


@dataclass(frozen=True)
class Actions:
    """`matched`: rows of the target whose key is in the source. `new`: source rows whose key is not in the target."""

    matched: Literal["replace", "keep"]
    new: Literal["insert", "ignore"]
    others: Literal["keep", "remove"]
    deduplicates: bool = False  # the source is reduced to one row a key first

    @property
    def creates(self) -> bool:
        """Whether a target that is not there yet is made."""
        return self.new == "insert"


_ACTIONS = {
    MergeStrategy.INSERT: Actions(matched="keep", new="insert", others="keep"),
    MergeStrategy.UPDATE: Actions(matched="replace", new="ignore", others="keep"),
    MergeStrategy.UPSERT: Actions(matched="replace", new="insert", others="keep"),
    MergeStrategy.FULL_MERGE: Actions(matched="replace", new="insert", others="remove"),
    MergeStrategy.DEDUPLICATE: Actions(matched="replace", new="insert", others="keep", deduplicates=True),
}
