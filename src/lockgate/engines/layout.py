"""How a Parquet file is laid out, so that it can be written again the same way: codecs, encodings, sort order,
Bloom filters, page index, key-value metadata."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from lockgate.engines.checksums import has_page_checksums
from lockgate.errors import SchemaMismatchError

DEFAULT_COMPRESSION = "snappy"
ARROW_SCHEMA = b"ARROW:schema"
SPARK_SCHEMA = b"org.apache.spark.sql.parquet.row.metadata"

_CODECS = {"UNCOMPRESSED": "NONE", "LZ4_RAW": "LZ4", "LZ4_HADOOP": "LZ4", "LZO": "SNAPPY"}
_KEPT_ENCODINGS = ("DELTA_BINARY_PACKED", "DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY", "BYTE_STREAM_SPLIT")
_WORTH_A_DICTIONARY = 0.8  # of the plain size; above it the dictionary only costs time
_SHRUNK_AT_MOST = 4  # by the codec, the pages of a dictionary
_WIDTHS = {"BOOLEAN": 1, "INT32": 4, "INT64": 8, "INT96": 12, "FLOAT": 4, "DOUBLE": 8}


class SortColumn(NamedTuple):
    """A column by which the row groups of a file are declared to be sorted."""

    name: str
    descending: bool
    nulls_first: bool


@dataclass(frozen=True)
class FileLayout:
    """What `writer` needs to write a file like another one."""

    compression: str | dict[str, str] = DEFAULT_COMPRESSION
    dictionary: frozenset[str] | bool = True  # leaf paths
    encodings: Mapping[str, str] = field(default_factory=dict)
    row_group_size: int = 0  # the largest of the file; 0: not known
    sorting: tuple[SortColumn, ...] = ()
    blooms: tuple[str, ...] = ()
    page_index: bool = False
    int96: bool = False
    checksums: bool = False
    older_lists: bool = False  # elements are called "item", as before the name was settled
    stores_arrow_schema: bool = True
    metadata: Mapping[bytes, bytes] = field(default_factory=dict)

    @classmethod
    def of(cls, footer: pq.FileMetaData, path: str) -> FileLayout:
        known = dict(footer.metadata or {})
        arrow = known.pop(ARROW_SCHEMA, None) is not None
        if footer.num_row_groups == 0:
            return cls(stores_arrow_schema=arrow, metadata=known)
        group = footer.row_group(0)
        chunks = [group.column(i) for i in range(group.num_columns)]
        codecs = {c.path_in_schema: _CODECS.get(c.compression, c.compression) for c in chunks}
        same = set(codecs.values())
        dictionary = frozenset(c.path_in_schema for c in chunks if c.has_dictionary_page)
        return cls(
            compression=same.pop() if len(same) == 1 else codecs,
            dictionary=dictionary,
            encodings={
                c.path_in_schema: next(e for e in _KEPT_ENCODINGS if e in c.encodings)
                for c in chunks
                if not c.has_dictionary_page and set(_KEPT_ENCODINGS) & set(c.encodings)
            },
            row_group_size=max(footer.row_group(i).num_rows for i in range(footer.num_row_groups)),
            sorting=_sorting(footer),
            blooms=tuple(c.path_in_schema for c in chunks if c.bloom_filter_offset is not None),
            page_index=chunks[0].has_column_index if chunks else False,
            checksums=has_page_checksums(path, footer),
            int96=any(c.physical_type == "INT96" for c in chunks),
            older_lists=any(".list.item" in c.path_in_schema for c in chunks),
            stores_arrow_schema=arrow,
            metadata=known,
        )

    def worth_a_dictionary(self, footer: pq.FileMetaData, sample: pa.Table) -> tuple[str, ...]:
        """The dictionary columns whose dictionary made them smaller. One that overflowed is slow and gains nothing.

        How large a column would be without one is told by `sample`, rows of the same table."""
        if not isinstance(self.dictionary, frozenset) or footer.num_row_groups == 0:
            return tuple(sample.column_names)
        widths = {name: _width(column) for name, column in zip(sample.column_names, sample.columns, strict=True)}
        return tuple(
            path
            for path, chunk in _chunks(footer)
            if path in self.dictionary and _size_by_plain(chunk, widths.get(path)) < _WORTH_A_DICTIONARY
        )

    def dictionary_entries(self, footer: pq.FileMetaData, sample: pa.Table) -> int:
        """At most so many entries have the dictionaries that are worth it."""
        useful = self.worth_a_dictionary(footer, sample)
        return max(
            (
                _SHRUNK_AT_MOST
                * (chunk.data_page_offset - chunk.dictionary_page_offset)
                // _WIDTHS.get(chunk.physical_type, 5)
                for path, chunk in _chunks(footer)
                if path in useful
            ),
            default=0,
        )


def _sorting(footer: pq.FileMetaData) -> tuple[SortColumn, ...]:
    """The declared sort order, by name. One by a field inside a column cannot be kept up, and is not declared again."""
    columns = []
    for declared in footer.row_group(0).sorting_columns:
        leaf = footer.schema.column(declared.column_index)
        if leaf.name != leaf.path or leaf.max_repetition_level:
            return ()
        columns.append(SortColumn(leaf.name, declared.descending, declared.nulls_first))
    return tuple(columns)


def leaf_numbers(schema: pa.Schema) -> dict[str, int]:
    """The number of each column's first leaf: Parquet counts the fields inside a column one by one.

    >>> leaf_numbers(pa.schema({"s": pa.struct({"a": pa.int8(), "b": pa.int8()}), "id": pa.int64()}))
    {'s': 0, 'id': 2}
    """
    numbers, at = {}, 0
    for column in schema:
        numbers[column.name] = at
        at += _leaves(column.type)
    return numbers


def _leaves(kind: pa.DataType) -> int:
    if isinstance(kind, pa.BaseExtensionType):
        return _leaves(kind.storage_type)
    if not pa.types.is_nested(kind):
        return 1
    if pa.types.is_map(kind):
        return _leaves(kind.key_type) + _leaves(kind.item_type)
    return sum(_leaves(kind.field(i).type) for i in range(kind.num_fields))


def _chunks(footer: pq.FileMetaData) -> list[tuple[str, Any]]:
    group = footer.row_group(0)
    return [(group.column(i).path_in_schema, group.column(i)) for i in range(group.num_columns)]


def _width(column: pa.ChunkedArray) -> float | None:
    """How many bytes a value takes; None where nothing tells."""
    if not len(column) or pa.types.is_dictionary(column.type):
        return None
    return float(column.nbytes / len(column))


def _size_by_plain(chunk: Any, width: float | None) -> float:
    """How much of its plain size a column takes in the file; 0 where nothing tells."""
    if width is None or not chunk.num_values:
        return 0.0
    return float(chunk.total_uncompressed_size / (chunk.num_values * _WIDTHS.get(chunk.physical_type, width)))


def schema_with(schema: pa.Schema, metadata: Mapping[bytes, bytes]) -> pa.Schema:
    return schema.with_metadata(dict(metadata) or None)


def writer(path: Path, schema: pa.Schema, layout: FileLayout, *, dictionary: Any = True, rows: int = 0) -> Any:
    """A ParquetWriter for a file of that layout. The caller makes what it wrote durable."""
    names = set(schema.names)
    options: dict[str, Any] = {}
    if layout.sorting:
        leaves = leaf_numbers(schema)
        options["sorting_columns"] = [
            pq.SortingColumn(leaves[c.name], c.descending, c.nulls_first) for c in layout.sorting
        ]
    if layout.blooms and rows:
        options["bloom_filter_options"] = {path: {"ndv": rows, "fpp": 0.01} for path in layout.blooms}
    encodings = {p: e for p, e in layout.encodings.items() if p in names}
    if encodings:
        options["column_encoding"] = encodings
        # A column with an encoding of its own may not be in the dictionary list, and True would put it there.
        dictionary = [p for p in (dictionary if isinstance(dictionary, list | tuple) else names) if p not in encodings]
    if isinstance(dictionary, tuple):
        dictionary = list(dictionary)
    try:
        return pq.ParquetWriter(
            path,
            schema_with(schema, layout.metadata) if layout.stores_arrow_schema else schema.remove_metadata(),
            compression=layout.compression,
            use_dictionary=dictionary or False,
            store_schema=layout.stores_arrow_schema,
            write_page_index=layout.page_index,
            write_page_checksum=layout.checksums,
            use_deprecated_int96_timestamps=layout.int96,
            use_compliant_nested_type=not layout.older_lists,
            **options,
        )
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid) as error:
        raise SchemaMismatchError(
            f"Parquet cannot hold these columns: {error}",
            in_place="nothing was written",
            hint="cast or drop that column",
        ) from error


def close(written: Any, layout: FileLayout) -> None:
    """End the file; where the Arrow schema is not stored, the metadata must be added by hand to be kept."""
    if not layout.stores_arrow_schema and layout.metadata:
        written.add_key_value_metadata(dict(layout.metadata))
    written.close()
