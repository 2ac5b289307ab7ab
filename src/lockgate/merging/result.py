"""What a merge or a write did, or would do."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Literal


@dataclass(frozen=True)
class MergeFileMetadata:
    """One file of a dataset after a merge or a write."""

    path: str
    row_count: int
    operation: Literal["rewritten", "inserted", "preserved"]
    size_bytes: int | None = None


@dataclass(frozen=True)
class MergeResult:
    """Counts are of rows, exact, and taken from what was written (or, in a dry run, would be)."""

    strategy: str
    source_count: int
    target_count_before: int
    target_count_after: int
    inserted: int
    updated: int
    deleted: int
    files: list[MergeFileMetadata] = field(default_factory=list)
    rewritten_files: list[str] = field(default_factory=list)
    inserted_files: list[str] = field(default_factory=list)
    preserved_files: list[str] = field(default_factory=list)
    removed_files: list[str] = field(default_factory=list)
    deduplicated: int = 0  # source rows that `deduplicate` dropped
    engine: str = ""
    dry_run: bool = False
    version: int | None = None  # of a table that has versions: the one that has these rows

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class WriteResult:
    """What `write_dataset` wrote."""

    mode: str
    files: list[MergeFileMetadata]
    total_rows: int
    removed_files: list[str] = field(default_factory=list)
    version: int | None = None  # of a table that has versions

    def to_json(self) -> dict[str, Any]:
        return asdict(self)
