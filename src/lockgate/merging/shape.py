"""What a dataset looks like: its files, its schema, its partition columns and where their folders are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from lockgate.errors import DatasetMergeError, SchemaMismatchError
from lockgate.merging.footers import read_footers
from lockgate.merging.partitions import parse_hive_partition_path, typed_value
from lockgate.merging.protocol import DataFile, OpenTarget


@dataclass(frozen=True)
class Shape:
    """A dataset as its footers and folders describe it."""

    schema: pa.Schema  # of the whole dataset: columns of the files, then partition columns
    partition_columns: tuple[str, ...]
    files: list[DataFile] = field(default_factory=list)
    folders: Mapping[tuple[Any, ...], str] = field(default_factory=dict)
    file_schemas: Sequence[tuple[pq.ParquetSchema, pa.Schema]] = ()  # one for each kind of file

    def needed_schema(self, file: DataFile, schema: pa.Schema) -> pa.Schema | None:
        """The schema a file must get when it is written again; None where its own will do."""
        own = next(arrow for parquet, arrow in self.file_schemas if parquet.equals(file.footer.schema))
        absent = {c for c in self.partition_columns if c not in own.names}
        wanted = {f.name: f for f in schema if f.name not in absent}
        if all(n in own.names and own.field(n).type == f.type for n, f in wanted.items()):
            return None
        order = [n for n in own.names if n in wanted] + [n for n in wanted if n not in own.names]
        nullable = {n: own.field(n).nullable for n in own.names}
        fields = [wanted[n].with_nullable(nullable.get(n, True)) for n in order]
        return pa.schema(fields, metadata=own.metadata)

    def new_file_schema(self, schema: pa.Schema) -> pa.Schema:
        """The columns of a new file: partition columns are left to the folder's name, unless files here keep them."""
        inside = set(self.file_schemas[0][1].names) if self.file_schemas else set()
        return pa.schema(
            [f for f in schema if f.name not in self.partition_columns or f.name in inside], metadata=schema.metadata
        )


def shape_of(opened: OpenTarget, source: pa.Schema, partition_by: Sequence[str] | None) -> Shape:
    """Read every footer and every folder name. A dataset that is not there yet takes the shape of the source."""
    names = opened.files()
    if not names:
        return new_shape(source, partition_by or ())
    paths = [opened.path_of(name) for name in names]
    footers = read_footers(paths)
    columns, texts = _partition_columns(names)
    if partition_by is not None and tuple(partition_by) != columns:
        raise SchemaMismatchError(
            f"the dataset is partitioned by {', '.join(columns) or 'nothing'}, "
            f"not by {', '.join(partition_by) or 'nothing'}",
            in_place="nothing was written",
            hint="leave partition_by out, or name the same columns in the same order",
        )
    kinds = _kinds(paths, footers)
    schema = _unified(kinds)
    inside = set(schema.names)
    for column in columns:
        if column not in inside:
            _require([column], source)
            schema = schema.append(pa.field(column, _plain(source.field(column).type)))
    known: dict[tuple[str, str | None], Any] = {}
    files: list[DataFile] = []
    folders: dict[tuple[Any, ...], str] = {}
    for name, path, footer, text in zip(names, paths, footers, texts, strict=True):
        partition = {}
        for column, value in text.items():
            if (column, value) not in known:
                known[column, value] = typed_value(value, schema.field(column).type, column)
            partition[column] = known[column, value]
        files.append(DataFile(name, path, footer, partition))
        if columns:
            folders.setdefault(tuple(partition[c] for c in columns), name.rpartition("/")[0])
    return Shape(schema, columns, files, folders, [(parquet, arrow) for parquet, arrow, _ in kinds])


def new_shape(source: pa.Schema, partition_by: Sequence[str]) -> Shape:
    """The shape of a dataset that is made from this source: partition columns last, as readers show them."""
    columns = tuple(partition_by)
    if not source.names:
        raise SchemaMismatchError("the source has no columns", in_place="nothing was written")
    _require(columns, source)
    if columns and len(columns) == len(source.names):
        raise SchemaMismatchError(
            "every column is a partition column; the files would hold nothing", in_place="nothing was written"
        )
    ordered = [f for f in source if f.name not in columns] + [source.field(c) for c in columns]
    return Shape(pa.schema([_writable(f) for f in ordered], metadata=source.metadata), columns)


def _writable(field: pa.Field) -> pa.Field:
    """Parquet and Arrow's kernels have no views; a plain string holds the same."""
    if pa.types.is_string_view(field.type):
        return field.with_type(pa.large_string())
    if pa.types.is_binary_view(field.type):
        return field.with_type(pa.large_binary())
    return field


def _require(columns: Sequence[str], source: pa.Schema) -> None:
    missing = [c for c in columns if c not in source.names]
    if missing:
        raise SchemaMismatchError(
            f"the source has no column {', '.join(missing)}, by which the dataset is partitioned",
            in_place="nothing was written",
            hint=f"its columns are {', '.join(source.names)}",
        )


def _plain(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _partition_columns(names: Sequence[str]) -> tuple[tuple[str, ...], list[dict[str, Any]]]:
    by_folder: dict[str, dict[str, Any]] = {}
    texts = []
    for name in names:
        folder = name.rpartition("/")[0]
        if folder not in by_folder:
            by_folder[folder] = parse_hive_partition_path(name)
        texts.append(by_folder[folder])
    kinds = {tuple(values) for values in by_folder.values()}
    if len(kinds) > 1:
        said = " and ".join(sorted(", ".join(k) or "nothing" for k in kinds))
        raise DatasetMergeError(
            f"the folders of the dataset do not agree: files are partitioned by {said}",
            hint="move the files that are in the wrong place",
        )
    return next(iter(kinds)), texts


def _kinds(paths: Sequence[str], footers: Sequence[pq.FileMetaData]) -> list[tuple[pq.ParquetSchema, pa.Schema, str]]:
    """One Arrow schema for every distinct Parquet schema; most datasets have one."""
    kinds: list[tuple[pq.ParquetSchema, pa.Schema, str]] = []
    for path, footer in zip(paths, footers, strict=True):
        own = footer.schema
        if not any(own.equals(parquet) for parquet, _, _ in kinds):
            kinds.append((own, _arrow_schema(path, own), path))
    return kinds


def _arrow_schema(path: str, schema: pq.ParquetSchema) -> pa.Schema:
    """The Arrow schema of a file. INT96 reaches further than nanoseconds since 1970 do; microseconds reach as far."""
    far = any(schema.column(i).physical_type == "INT96" for i in range(len(schema)))
    with pq.ParquetFile(path, coerce_int96_timestamp_unit="us" if far else None) as file:
        return file.schema_arrow


def _unified(kinds: Sequence[tuple[pq.ParquetSchema, pa.Schema, str]]) -> pa.Schema:
    schema = kinds[0][1].remove_metadata()
    for _, other, path in kinds[1:]:
        try:
            schema = pa.unify_schemas([schema, other.remove_metadata()], promote_options="permissive")
        except pa.ArrowException as error:
            raise SchemaMismatchError(
                f"the files of the dataset do not fit each other: {path!r} against {kinds[0][2]!r}: {error}",
                in_place="nothing was written",
                hint="make the types of that column the same in all files",
            ) from error
    return schema.with_metadata(kinds[0][1].metadata)
