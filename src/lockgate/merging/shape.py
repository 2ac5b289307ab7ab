"""What a dataset looks like: its files, its schema, its partition columns and where their folders are."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from lockgate.errors import DatasetMergeError, SchemaMismatchError
from lockgate.merging.footers import read_footers
from lockgate.merging.partitions import parse_hive_partition_path, typed_value
from lockgate.merging.protocol import DataFile, KeyBounds, NewFiles, OpenTarget
from lockgate.merging.schema import require_columns
from lockgate.merging.unified import unified
from lockgate.targets.described import Described

# As they are on disk; in memory footers take several times that.
_KEPT_FOOTER_BYTES = 32 * 2**20
_FOOTER_BYTES_AT_ONCE = 8 * 2**20


class NewFileOptions(Protocol):
    """What a merge and a write both say of their new files."""

    @property
    def identity(self) -> str: ...
    @property
    def compression(self) -> str | None: ...
    @property
    def max_rows_per_file(self) -> int: ...
    @property
    def row_group_size(self) -> int: ...


@dataclass(frozen=True)
class Shape:
    """A dataset as its footers and folders describe it, or a table as its log does."""

    schema: pa.Schema  # of the whole dataset: columns of the files, then partition columns
    partition_columns: tuple[str, ...]
    files: list[DataFile] = field(default_factory=list)
    folders: Mapping[tuple[Any, ...], str] = field(default_factory=dict)
    footers: _Footers | None = None  # of the files that were looked into
    is_new: bool = False  # nothing is there yet
    schema_in_files: bool = True  # and nowhere else, so that a dataset without rows needs a file
    held: Callable[[pa.Schema], pa.Schema] = lambda schema: schema  # a schema in the types that it can have

    @property
    def needs_first_file(self) -> bool:
        """Whether a dataset without rows must have a file, for its schema to be known."""
        return self.is_new and self.schema_in_files and not self.partition_columns

    def candidates(self, bounds: KeyBounds) -> list[DataFile]:
        """The files that may hold a source key, each with the row groups that may. Where a log describes the files,
        the footers are read of those alone that it does not rule out."""
        possible = [f for f in self.files if f.described is None or bounds.may_hold(f.described)]
        found = []
        for file in self._looked_into(possible):
            groups = bounds.candidate_row_groups(file.footer, file.path, file.partition)
            if groups:
                found.append(replace(file, row_groups=groups))
        return found

    def knowing(self, candidates: Sequence[DataFile]) -> Shape:
        """The same, with what was found out about files that only a log had described."""
        if self.schema_in_files:
            return self
        known = {file.name: replace(file, row_groups=None) for file in candidates}
        return replace(self, files=[known.get(file.name, file) for file in self.files])

    def _looked_into(self, files: Sequence[DataFile]) -> list[DataFile]:
        files = [_without_deleted_rows(file) if file.schema is None else file for file in files]
        unread = [file.path for file in files if file.schema is None]
        if not unread:
            return list(files)
        assert self.footers is not None, "only a log describes files without them"
        told = iter(self.footers.of(unread))
        return [file if file.schema is not None else _with_footer(file, next(told)) for file in files]

    def needed_schema(self, file: DataFile, schema: pa.Schema) -> pa.Schema | None:
        """The schema a file must get when it is written again; None where its own will do."""
        kinds = self.footers.kinds if self.footers else []
        own = next(arrow for parquet, arrow, _ in kinds if parquet is file.schema)
        have = {f.name: f for f in own}
        wanted = {f.name: f for f in schema if f.name in have or f.name not in self.partition_columns}
        if all(n in have and _holds(have[n], f) for n, f in wanted.items()):
            return None
        order = [n for n in have if n in wanted] + [n for n in wanted if n not in have]
        return pa.schema([wanted[n] for n in order], metadata=own.metadata)

    def new_files(self, schema: pa.Schema, staging: Path, wanted: NewFileOptions) -> NewFiles:
        """How rows of this schema are laid out in new files of this dataset."""
        return NewFiles(
            staging=staging,
            identity=wanted.identity,
            schema=self.new_file_schema(schema),
            partition_columns=self.partition_columns,
            folders=self.folders,
            like=self.files[0] if self.files else None,
            compression=wanted.compression,
            max_rows_per_file=wanted.max_rows_per_file,
            row_group_size=wanted.row_group_size,
        )

    def partitions_of(self, names: Sequence[str], schema: pa.Schema) -> dict[str, dict[str, Any]]:
        """The partition values of new files, which are in the folders of their names."""
        return {
            name: {
                column: typed_value(text, schema.field(column).type, column)
                for column, text in parse_hive_partition_path(name, self.partition_columns).items()
            }
            for name in names
        }

    def new_file_schema(self, schema: pa.Schema) -> pa.Schema:
        """The columns of a new file: partition columns are left to the folder's name, unless files here keep them."""
        kinds = self.footers.kinds if self.footers and self.schema_in_files else []
        inside = set(kinds[0][1].names) if kinds else set()
        return pa.schema(
            [f for f in schema if f.name not in self.partition_columns or f.name in inside], metadata=schema.metadata
        )


def _holds(own: pa.Field, wanted: pa.Field) -> bool:
    """Whether a column of a file can take every value that the dataset's column can."""
    return bool(own.type == wanted.type) and (own.nullable or not wanted.nullable)


def shape_of(
    opened: OpenTarget,
    source: pa.Schema,
    partition_by: Sequence[str] | None,
    read: Callable[[Sequence[str]], list[pq.FileMetaData]] = read_footers,
) -> Shape:
    """Read every footer and every folder name. A dataset that is not there yet takes the shape of the source."""
    described = opened.described()
    if described is not None:
        if described.schema is None:
            return replace(new_shape(described.held(source), partition_by or ()), schema_in_files=False)
        _refuse_other_partitions(described.partition_columns, partition_by)
        return _described_shape(described, described.schema, opened, read)
    names = opened.files()
    if not names:
        return new_shape(source, partition_by or ())
    paths = [opened.path_of(name) for name in names]
    columns, texts = partition_columns(names)
    _refuse_other_partitions(columns, partition_by)
    footers = _Footers(read)
    told = footers.of(paths)
    kinds = footers.kinds
    schema = _unified(kinds)
    inside = set(schema.names)
    for column in columns:
        if column not in inside:
            require_columns(source, "source", [column], "partition column")
            schema = schema.append(pa.field(column, _plain(source.field(column).type)))
    known: dict[tuple[str, str | None], Any] = {}
    files: list[DataFile] = []
    folders: dict[tuple[Any, ...], str] = {}
    for name, path, found, text in zip(names, paths, told, texts, strict=True):
        partition = {}
        for column, value in text.items():
            if (column, value) not in known:
                known[column, value] = typed_value(value, schema.field(column).type, column)
            partition[column] = known[column, value]
        rows, parquet, footer = found
        files.append(DataFile(name, path, rows, parquet, partition, kept_footer=footer))
        if columns:
            folders.setdefault(tuple(partition[c] for c in columns), name.rpartition("/")[0])
    return Shape(schema, columns, files, folders, footers)


def _refuse_other_partitions(columns: Sequence[str], partition_by: Sequence[str] | None) -> None:
    if partition_by is not None and tuple(partition_by) != tuple(columns):
        raise SchemaMismatchError(
            f"the dataset is partitioned by {', '.join(columns) or 'nothing'}, "
            f"not by {', '.join(partition_by) or 'nothing'}",
            in_place="nothing was written",
            hint="leave partition_by out, or name the same columns in the same order",
        )


def _described_shape(
    described: Described,
    schema: pa.Schema,
    opened: OpenTarget,
    read: Callable[[Sequence[str]], list[pq.FileMetaData]],
) -> Shape:
    """As the table's log has it. A footer is read now only where the log does not tell how many rows a file has."""
    shape = Shape(
        schema,
        described.partition_columns,
        [
            DataFile(f.name, opened.path_of(f.name), f.rows or 0, None, f.partition, described=f)
            for f in described.files
        ],
        footers=_Footers(read),
        schema_in_files=False,
        held=described.held,
    )
    uncounted = [file for file in shape.files if file.described and file.described.rows is None]
    if not uncounted:
        return shape
    counted = {file.name: file for file in shape._looked_into(uncounted)}
    return replace(shape, files=[counted.get(file.name, file) for file in shape.files])


def _without_deleted_rows(file: DataFile) -> DataFile:
    """Engines look at all rows of a file, so one with deleted rows is looked at in a copy that lacks them."""
    if file.described is None or file.described.live_copy is None:
        return file
    return replace(file, path=str(file.described.live_copy()))


def _with_footer(file: DataFile, told: _Told) -> DataFile:
    rows, parquet, footer = told
    return replace(file, rows=rows, schema=parquet, kept_footer=footer)


def new_shape(source: pa.Schema, partition_by: Sequence[str]) -> Shape:
    """The shape of a dataset that is made from this source: partition columns last, as readers show them."""
    columns = tuple(partition_by)
    if not source.names:
        raise SchemaMismatchError("the source has no columns", in_place="nothing was written")
    require_columns(source, "source", columns, "partition column")
    if columns and len(columns) == len(source.names):
        raise SchemaMismatchError(
            "every column is a partition column; the files would hold nothing", in_place="nothing was written"
        )
    ordered = [f for f in source if f.name not in columns] + [source.field(c) for c in columns]
    return Shape(pa.schema(ordered, metadata=source.metadata), columns, is_new=True)


def _plain(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def partition_columns(names: Sequence[str]) -> tuple[tuple[str, ...], list[dict[str, Any]]]:
    """The columns that the folders stand for, in their order, and each file's values as texts."""
    by_folder: dict[str, dict[str, Any]] = {}
    texts = []
    for name in names:
        folder = name.rpartition("/")[0]
        if folder not in by_folder:
            by_folder[folder] = parse_hive_partition_path(name)
        texts.append(by_folder[folder])
    if not by_folder:
        return (), []
    kinds = {tuple(values) for values in by_folder.values()}
    if len(kinds) > 1:
        said = " and ".join(sorted(", ".join(k) or "nothing" for k in kinds))
        raise DatasetMergeError(
            f"the folders of the dataset do not agree: files are partitioned by {said}",
            hint="move the files that are in the wrong place",
        )
    return next(iter(kinds)), texts


_Told: TypeAlias = tuple[int, pq.ParquetSchema, pq.FileMetaData | None]


class _Footers:
    """What is kept of the footers: all of them would take more memory than the rows of some datasets."""

    def __init__(self, read: Callable[[Sequence[str]], list[pq.FileMetaData]]) -> None:
        self._read = read
        self.kinds: list[tuple[pq.ParquetSchema, pa.Schema, str]] = []  # most datasets have one
        self._at_once = 32  # until it is known how large they are
        self._room = _KEPT_FOOTER_BYTES

    def of(self, paths: Sequence[str]) -> list[_Told]:
        """The number of rows of each file, its schema, and its footer if there is room to keep it."""
        told: list[_Told] = []
        while len(told) < len(paths):
            told += self._some(paths[len(told) :][: self._at_once])
        return told

    def _some(self, paths: Sequence[str]) -> Iterator[_Told]:
        footers = self._read(paths)
        largest = max(footer.serialized_size for footer in footers)
        self._at_once = max(_FOOTER_BYTES_AT_ONCE // largest, 8)
        for path, footer in zip(paths, footers, strict=True):
            self._room -= footer.serialized_size
            yield footer.num_rows, self._kind(path, footer.schema), footer if self._room > 0 else None

    def _kind(self, path: str, own: pq.ParquetSchema) -> pq.ParquetSchema:
        for known, _, _ in self.kinds:
            if own.equals(known):
                return known
        self.kinds.append((own, _arrow_schema(path, own), path))
        return own


def _arrow_schema(path: str, schema: pq.ParquetSchema) -> pa.Schema:
    """The Arrow schema of a file. INT96 reaches further than nanoseconds since 1970 do; microseconds reach as far."""
    far = any(schema.column(i).physical_type == "INT96" for i in range(len(schema)))
    with pq.ParquetFile(path, coerce_int96_timestamp_unit="us" if far else None) as file:
        return file.schema_arrow


def _unified(kinds: Sequence[tuple[pq.ParquetSchema, pa.Schema, str]]) -> pa.Schema:
    fields = {f.name: f.remove_metadata() for f in kinds[0][1]}
    for _, other, path in kinds[1:]:
        for theirs in other:
            mine = fields.get(theirs.name)
            if mine is None:
                fields[theirs.name] = theirs.remove_metadata().with_nullable(True)
                continue
            kind = unified(mine.type, theirs.type)
            if kind is None:
                raise SchemaMismatchError(
                    f"the files of the dataset do not fit each other: column {mine.name!r} is {mine.type} in "
                    f"{kinds[0][2]!r} and {theirs.type} in {path!r}",
                    in_place="nothing was written",
                    hint="write that column again with one type in all files",
                )
            fields[mine.name] = mine.with_type(kind).with_nullable(mine.nullable or theirs.nullable)
        for absent in set(fields) - set(other.names):
            fields[absent] = fields[absent].with_nullable(True)
    return pa.schema(list(fields.values()), metadata=kinds[0][1].metadata)
