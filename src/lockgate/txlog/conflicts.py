"""When a commit that was prepared on an older version clashes with what was committed since: Delta's matrix.

It is Delta's isolation level WriteSerializable: a blind append clashes with no change of rows, and no change of rows
with it, because it could as well have come later. A commit that itself changes the schema looks at blind appends, too.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True)
class Mine:
    """The commit that looks for clashes."""

    removes: Collection[str] = ()
    read_files: Collection[str] | None = None
    read_partitions: Sequence[Mapping[str, str | None]] | None = None
    read_table: bool = False
    app_ids: Collection[str] = ()
    changes_metadata: bool = False
    changes_protocol: bool = False

    @property
    def reads(self) -> bool:
        return self.read_table or self.read_files is not None

    @property
    def looks_at_blind_appends(self) -> bool:
        return self.changes_metadata or self.changes_protocol


class AddedFile(NamedTuple):
    version: int
    path: str
    partition_values: Mapping[str, str | None]


@dataclass(frozen=True)
class Theirs:
    """What was committed since: by version, oldest first."""

    protocol_version: int | None = None  # the last that changed it
    metadata_version: int | None = None
    removed: Mapping[str, int] | None = None  # path -> version
    added: Sequence[AddedFile] = ()  # only what `Mine` has to look at
    app_versions: Mapping[str, int] | None = None  # app id -> version


class Clash(NamedTuple):
    rule: str
    version: int
    what: str


def _protocol(mine: Mine, theirs: Theirs) -> tuple[int, str] | None:
    del mine
    return None if theirs.protocol_version is None else (theirs.protocol_version, "it changed the protocol")


def _metadata(mine: Mine, theirs: Theirs) -> tuple[int, str] | None:
    del mine
    return None if theirs.metadata_version is None else (theirs.metadata_version, "it changed the schema or properties")


def _application(mine: Mine, theirs: Theirs) -> tuple[int, str] | None:
    for app in mine.app_ids:
        if app in (theirs.app_versions or {}):
            return (theirs.app_versions or {})[app], f"it is of the same application {app!r}"
    return None


def _removed_twice(mine: Mine, theirs: Theirs) -> tuple[int, str] | None:
    return _removed(mine.removes, theirs, "which this commit removes as well")


def _removed_what_was_read(mine: Mine, theirs: Theirs) -> tuple[int, str] | None:
    if mine.read_table and theirs.removed:
        path, version = next(iter(theirs.removed.items()))
        return version, f"it removed {path!r}, which this commit has read"
    return _removed(mine.read_files or (), theirs, "which this commit has read")


def _added_what_was_not_read(mine: Mine, theirs: Theirs) -> tuple[int, str] | None:
    if not mine.reads:
        return None
    for file in theirs.added:
        partitions = mine.read_partitions
        if partitions is None or any(_fits(file.partition_values, each) for each in partitions):
            return file.version, f"it added {file.path!r}, which this commit would have had to read"
    return None


# Checked in this order; the first that applies is told.
MATRIX: tuple[tuple[str, Callable[[Mine, Theirs], tuple[int, str] | None]], ...] = (
    ("protocol changed", _protocol),
    ("metadata changed", _metadata),
    ("same application", _application),
    ("removed twice", _removed_twice),
    ("removed what was read", _removed_what_was_read),
    ("added what was not read", _added_what_was_not_read),
)


def clash(mine: Mine, theirs: Theirs) -> Clash | None:
    """The first rule by which the two cannot both stand.

    >>> clash(Mine(removes={"a.parquet"}), Theirs(removed={"a.parquet": 7}))
    Clash(rule='removed twice', version=7, what="it removed 'a.parquet', which this commit removes as well")
    >>> clash(Mine(), Theirs(removed={"a.parquet": 7}))
    """
    for rule, applies in MATRIX:
        found = applies(mine, theirs)
        if found:
            return Clash(rule, *found)
    return None


def _removed(paths: Collection[str], theirs: Theirs, also: str) -> tuple[int, str] | None:
    removed = theirs.removed or {}
    for path in paths if len(paths) < len(removed) else [p for p in removed if p in set(paths)]:
        if path in removed:
            return removed[path], f"it removed {path!r}, {also}"
    return None


def _fits(values: Mapping[str, str | None], wanted: Mapping[str, str | None]) -> bool:
    return all(values.get(column) == value for column, value in wanted.items())
