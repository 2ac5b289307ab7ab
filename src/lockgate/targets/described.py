"""What a target with a log knows of its table, where a plain folder has only footers and folder names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class DescribedFile:
    """A data file as the log has it."""

    name: str  # relative to the table
    partition: Mapping[str, Any]  # column -> typed value
    rows: int | None = None  # None: the log does not tell
    statistics: str | None = None
    live_copy: Callable[[], Path] | None = None  # rows of the file are deleted; this gives one that lacks them

    def bounds(self, kinds: Mapping[str, pa.DataType]) -> Mapping[str, tuple[Any, Any]]:
        """The least and the greatest value of these columns, of those for which the log has both."""
        from lockgate.txlog.statistics import bounds

        return bounds(self.statistics, kinds)


@dataclass(frozen=True)
class Described:
    """A table of which the schema, the partition columns and the files are on record."""

    schema: pa.Schema | None  # None: there is no table yet
    partition_columns: tuple[str, ...]
    files: Sequence[DescribedFile]
    held: Callable[[pa.Schema], pa.Schema]  # a schema in the types that such a table has, or a refusal


@dataclass(frozen=True)
class ChangeDetails:
    """What a commit says beside the files that come and go. A folder has no place for it, and needs none."""

    partitions: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # of the files that come, by name
    schema: pa.Schema | None = None  # what the table has come to need; None: as it was
    partition_columns: tuple[str, ...] = ()
    replaces_schema: bool = False  # whatever the table had: no file of it stays
    read: tuple[str, ...] | None = None  # the files whose rows were looked at; None: none, only rows were added
    read_all: bool = False  # every file was
    operation: str = "WRITE"
    parameters: Mapping[str, Any] = field(default_factory=dict)
    metrics: Mapping[str, Any] = field(default_factory=dict)


NOTHING_TO_SAY = ChangeDetails()


def renamed(name: str, identity: str, number: int) -> str:
    """A fresh name for a file that is written again, in the same folder."""
    folder = Path(name).parent.as_posix()
    fresh = f"part-{identity}-r{number:05d}.parquet"
    return fresh if folder == "." else f"{folder}/{fresh}"
