"""What a merge needs from an engine and from a target. A merge is strategy × engine × target."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from lockgate.merging.footers import read_footers
from lockgate.merging.strategy import MergeStrategy
from lockgate.targets.described import NOTHING_TO_SAY, ChangeDetails, Described, DescribedFile

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq


@dataclass(frozen=True, slots=True)
class DataFile:
    """One file of the target, as its footer describes it, or the target's own log."""

    name: str  # relative to the dataset, with / between its parts
    path: str  # where it can be opened
    rows: int
    schema: pq.ParquetSchema | None  # one object for all files of one schema; None: the footer was not read
    partition: Mapping[str, Any] = field(default_factory=dict)  # column -> typed Python value
    row_groups: tuple[int, ...] | None = None  # those that may hold a source key; None: all
    kept_footer: pq.FileMetaData | None = None  # those of a huge dataset are read again where they are needed
    described: DescribedFile | None = None  # what a log says of it

    @property
    def footer(self) -> pq.FileMetaData:
        if self.kept_footer is not None:
            return self.kept_footer
        return read_footers([self.path])[0]


class FileMatches(Protocol):
    """The rows of one file whose key is in the source. The engine that found them knows which they are."""

    @property
    def file(self) -> DataFile: ...

    @property
    def count(self) -> int: ...

    @property
    def moving(self) -> int:
        """How many of them have a source row that belongs to another partition."""

    @property
    def replaced(self) -> int:
        """How many of the others are to be replaced: all of them, or those that differ where that was asked."""


@dataclass(frozen=True, slots=True)
class Found:
    """What an engine found for a strategy: the matched rows it replaces, and the source rows that are new to it."""

    matches: Sequence[FileMatches] = ()  # may be left out where the strategy keeps matched rows as they are
    new: int = 0  # zero where the strategy ignores new rows
    new_rows: Any = None  # which they are, in the engine's own terms


@dataclass(frozen=True, slots=True)
class FileChange:
    """What happens to one file that is written again."""

    file: DataFile
    matches: FileMatches | None  # None: no row of it is in the source
    keep_others: bool = True  # False: only matched rows stay (full_merge)

    @property
    def rows_after(self) -> int:
        moving = self.matches.moving if self.matches else 0
        if self.keep_others:
            return self.file.rows - moving
        return self.matches.count - moving if self.matches else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewrite(FileChange):
    """A change, and where the file is to be written."""

    staged: Path
    schema: pa.Schema | None = None  # None: the file's own; else what the dataset has come to need


@dataclass(frozen=True, slots=True)
class Written:
    """A file that was staged and is durable."""

    path: Path
    rows: int
    size: int


@dataclass(frozen=True, slots=True)
class NewFiles:
    """How new rows are to be laid out in new files."""

    staging: Path
    identity: str  # part of the new files' names
    schema: pa.Schema  # of the files: partition columns are in it only where the dataset keeps them in its files
    partition_columns: tuple[str, ...] = ()
    folders: Mapping[tuple[Any, ...], str] = field(default_factory=dict)  # partition values -> the folder they have
    like: DataFile | None = None  # a file whose layout new ones follow
    compression: str | None = None
    max_rows_per_file: int = 5_000_000
    row_group_size: int = 500_000


@dataclass(frozen=True, slots=True)
class Added:
    """A new file that was staged, and the name it will have in the dataset."""

    name: str
    written: Written


class KeyBounds(Protocol):
    """What is known of the source's keys without looking each of them up."""

    def candidate_row_groups(
        self, footer: pq.FileMetaData, path: str, partition: Mapping[str, Any]
    ) -> tuple[int, ...]: ...

    def may_hold(self, file: DescribedFile) -> bool:
        """Whether a file may hold a source key, as far as a log tells."""


class FittedRows(Protocol):
    """The source made ready: columns and types of the dataset, keys checked, one row a key."""

    def key_bounds(self) -> KeyBounds: ...

    def shown_moves(self, matches: Sequence[FileMatches], most: int) -> list[str]:
        """A few of the rows that would change their partition, as a message names them."""


Rows = TypeVar("Rows", bound=FittedRows)
RowsTaken = TypeVar("RowsTaken", bound=FittedRows, contravariant=True)
RowsGiven = TypeVar("RowsGiven", bound=FittedRows, covariant=True)


class Source(Protocol[RowsGiven]):
    """The rows of a merge as they were given."""

    @property
    def schema(self) -> pa.Schema: ...

    @property
    def rows(self) -> int: ...

    def checked(self, key_columns: tuple[str, ...]) -> Source[RowsGiven]:
        """The same; refused where a key is NULL or is there twice."""

    def deduplicated(self, key_columns: tuple[str, ...], order_by: Sequence[str]) -> Source[RowsGiven]:
        """One row a key; refused where a key is NULL."""

    def fitted(
        self, schema: pa.Schema, key_columns: tuple[str, ...], partition_columns: tuple[str, ...]
    ) -> RowsGiven: ...


class Engine(Protocol[RowsTaken]):
    """Finds rows by key and writes files. It never makes anything visible."""

    name: str

    def read_footers(self, paths: Sequence[str]) -> list[pq.FileMetaData]: ...

    def find(self, files: Sequence[DataFile], source: RowsTaken, strategy: MergeStrategy, *, compare: bool) -> Found:
        """Which rows of these files have a key of the source, and which source rows have none there."""

    def rewrite(self, jobs: Sequence[Rewrite], source: RowsTaken) -> list[Written]:
        """Stage these files again, each with its layout kept, in the order of the jobs."""

    def add(self, found: Found, source: RowsTaken, new: NewFiles) -> list[Added]:
        """Stage as new files the source rows that are new, and those that leave their partition."""


class OpenTarget(Protocol):
    """A target that is held against other writers, and whole."""

    def files(self) -> list[str]:
        """The names of the data files, relative to the target."""

    def described(self) -> Described | None:
        """What a log knows of the table; None where footers and folder names have to tell."""

    def name_when_rewritten(self, name: str, number: int) -> str:
        """The name of a file once it is written again: its own, or a fresh one."""

    def path_of(self, name: str) -> str: ...

    def staging(self) -> Path:
        """A folder for files that are to be committed; made when first asked for."""

    def commit(
        self, moves: Mapping[str, Path], removes: Iterable[str], details: ChangeDetails = NOTHING_TO_SAY
    ) -> int | None:
        """Make the staged files visible under these names, and remove those, all at once. Returns the table's version,
        where it has versions."""


class Target(Protocol):
    """Which files make up a table, and how a set of changes becomes visible at once."""

    root: Path

    def exists(self) -> bool: ...

    def opened(self, identity: str, *, dry_run: bool = False) -> AbstractContextManager[OpenTarget]: ...
