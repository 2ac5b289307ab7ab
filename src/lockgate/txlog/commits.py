"""What is asked of the log: the commits of one transaction, as their author gives them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lockgate.txlog.actions import Action

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Operation:
    """What a commit did, for the table's history.

    >>> Operation("MERGE", {"predicate": "id"}, {"numOutputRows": 3}).name
    'MERGE'
    """

    name: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    metrics: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Note:
    """A text that a transaction keeps in the log beside its commits, under a name. It takes the place of the note with
    that name, if that still is of the version `base` or older (0: there was none); the new one is of `base + 1`."""

    name: str
    base: int
    text: str


@dataclass(frozen=True)
class TableCommit:
    """A commit to one table.

    `expected_version` is the version that it must become; None lets the log choose the next one, after a look at
    what was committed since `read_version`. What it read decides what clashes:

    - `read_files=None` and `read_table=False`: nothing was read; a blind append, or changes that stand for themselves.
    - `read_files`: paths (as the log spells them) of the files whose rows were looked at. Files that others removed
      meanwhile clash, and so do files that others (but for blind appends) added: they may hold a key that was looked
      for. `read_partitions` narrows the latter down to files with one of these partition values.
    - `read_table=True`: every file of `read_version` was read.

    `adds` are more files, as one Arrow table with the columns of `files.files_schema()`.
    """

    table: str
    expected_version: int | None = None
    actions: Sequence[Action | Mapping[str, Any]] = ()
    adds: pa.Table | None = None
    operation: Operation | str | None = None
    read_version: int | None = None
    read_files: Collection[str] | None = None
    read_partitions: Sequence[Mapping[str, str | None]] | None = None
    read_table: bool = False
