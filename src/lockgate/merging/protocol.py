"""What a merge needs from an engine and from a target. A merge is strategy × engine × target."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from lockgate.merging.footers import read_footers
from lockgate.merging.strategy import MergeStrategy

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq


@dataclass(frozen=True, slots=True)
class DataFile:
    """One file of the target, as its footer describes it."""

    name: str  # relative to the dataset, with / between its parts
    path: str  # where it can be opened
    rows: int
    schema: pq.ParquetSchema  # one object for all files of one schema
    partition: Mapping[str, Any] = field(default_factory=dict)  # column -> typed Python value, from the path
    row_groups: tuple[int, ...] | None = None  # those that may hold a source key; None: all
    kept_footer: pq.FileMetaData | None = None  # those of a huge dataset are read again where they are needed

    @property
    def footer(self) -> pq.FileMetaData:
        if self.kept_footer is not None:
            return self.kept_footer
        return read_footers([self.path])[0]


@dataclass(frozen=True, slots=True)
class SourceRows:
    """The source made ready: columns and types of the dataset, keys checked, one row a key."""

    table: pa.Table  # all columns of the dataset, partition columns included
    key_columns: tuple[str, ...]
    partition_columns: tuple[str, ...] = ()

    @property
    def keys(self) -> pa.Table:
        return self.table.select(list(self.key_columns))


@dataclass(frozen=True, slots=True)
class Matches:
    """Rows of one file whose key is in the source: row number in the file, in order, and row number in the source."""

    file: DataFile
    rows: pa.Array  # int64, ascending
    source_rows: pa.Array  # int64
    changed: pa.Array | None = None  # bool: whether the rows differ; None where it was not asked


@dataclass(frozen=True, slots=True)
class Found:
    """What an engine found for a strategy: the matched rows it replaces, and the source rows that are new to it."""

    matches: Sequence[Matches] = ()  # may be left out where the strategy keeps matched rows as they are
    new_rows: pa.Array | None = None  # int64, ascending; None where the strategy ignores new rows


@dataclass(frozen=True, slots=True)
class FileChange:
    """What happens to one file that is written again. Row numbers are ascending, int64."""

    file: DataFile
    rows: pa.Array  # row numbers to replace
    source_rows: pa.Array  # by these rows of the source
    dropped: pa.Array  # row numbers to leave out
    keep_others: bool = True  # False: only replaced rows stay (full_merge)
    kept: pa.Array | None = None  # rows that stay as they are though `keep_others` is False

    @property
    def rows_after(self) -> int:
        if self.keep_others:
            return self.file.rows - len(self.dropped)
        return len(self.rows) + (len(self.kept) if self.kept is not None else 0)


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


class Engine(Protocol):
    """Finds rows by key and writes files. It never makes anything visible."""

    name: str

    def find(self, files: Sequence[DataFile], source: SourceRows, strategy: MergeStrategy, *, compare: bool) -> Found:
        """Which rows of these files have a key of the source, and which source rows have none there."""

    def rewrite(self, jobs: Sequence[Rewrite], source: SourceRows) -> list[Written]:
        """Stage these files again, each with its layout kept, in the order of the jobs."""

    def add(self, rows: pa.Table | pa.RecordBatchReader, new: NewFiles) -> list[Added]:
        """Stage these rows as new files."""


class OpenTarget(Protocol):
    """A target that is held against other writers, and whole."""

    def files(self) -> list[str]:
        """The names of the data files, relative to the target."""

    def path_of(self, name: str) -> str: ...

    def staging(self) -> Path:
        """A folder for files that are to be committed; made when first asked for."""

    def commit(self, moves: Mapping[str, Path], removes: Iterable[str]) -> None:
        """Make the staged files visible under these names, and remove those, all at once."""


class Target(Protocol):
    """Which files make up a table, and how a set of changes becomes visible at once."""

    root: Path

    def exists(self) -> bool: ...

    def opened(self, identity: str, *, dry_run: bool = False) -> AbstractContextManager[OpenTarget]: ...
