"""What DuckDB can hold without changing it, and which files it can write again as they are."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq

from lockgate.engines.layout import FileLayout
from lockgate.merging.protocol import DataFile

VECTOR_SIZE = 2048  # DuckDB's row groups are multiples of it
CODECS = {"NONE": "uncompressed", "SNAPPY": "snappy", "GZIP": "gzip", "ZSTD": "zstd", "BROTLI": "brotli", "LZ4": "lz4"}


def key_type(kind: pa.DataType) -> str | None:
    """The DuckDB type that holds every value of a key of this type; None where there is none."""
    if pa.types.is_dictionary(kind):
        return key_type(kind.value_type)
    if pa.types.is_decimal128(kind):
        return f"DECIMAL({kind.precision}, {kind.scale})" if kind.scale >= 0 else None
    if pa.types.is_timestamp(kind):
        if kind.tz is None:
            return {"s": "TIMESTAMP_S", "ms": "TIMESTAMP_MS", "us": "TIMESTAMP", "ns": "TIMESTAMP_NS"}[kind.unit]
        return None if kind.unit == "ns" else "TIMESTAMPTZ"
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return "VARCHAR"
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind):
        return "BLOB"
    return _SIMPLE.get(kind)


_SIMPLE = {
    pa.int8(): "TINYINT",
    pa.int16(): "SMALLINT",
    pa.int32(): "INTEGER",
    pa.int64(): "BIGINT",
    pa.uint8(): "UTINYINT",
    pa.uint16(): "USMALLINT",
    pa.uint32(): "UINTEGER",
    pa.uint64(): "UBIGINT",
    pa.float32(): "FLOAT",
    pa.float64(): "DOUBLE",
    pa.bool_(): "BOOLEAN",
    pa.date32(): "DATE",
    pa.time64("us"): "TIME",
}


def why_not_held(schema: pa.Schema) -> str | None:
    """A column that DuckDB would change on the way through, by its type or by its name."""
    for field in schema:
        if not _is_held(field.type):
            return f"DuckDB has no type that keeps {field.type} of column {field.name!r} as it is"
    return ambiguous_names(schema)


def _is_held(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        return _is_held(kind.value_type)
    if pa.types.is_struct(kind):
        return all(_is_held(kind.field(i).type) for i in range(kind.num_fields))
    if pa.types.is_map(kind):
        return _is_held(kind.key_type) and _is_held(kind.item_type)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return _is_held(kind.value_type)
    # Text of fixed size, seconds and milliseconds come out as something else.
    return key_type(kind) is not None and not pa.types.is_fixed_size_binary(kind)


def ambiguous_names(schema: pa.Schema) -> str | None:
    """Two columns that DuckDB takes for one, since it does not tell upper from lower case."""
    seen: dict[str, str] = {}
    for name in schema.names:
        other = seen.setdefault(name.lower(), name)
        if other != name:
            return f"the columns {other!r} and {name!r} are one name to it"
        if not name:
            return "a column has an empty name"
        if name.lower() in ("filename", "file_row_number", "file_index"):
            return f"the column {name!r} has a name that it uses itself"
    return None


def why_not_copied(file: DataFile) -> str | None:
    """Why COPY cannot write this file again with the same layout; None where it can, as far as the footer tells."""
    footer = file.footer
    layout = FileLayout.of(footer, file.path)
    if not isinstance(layout.compression, str) or layout.compression.upper() not in CODECS:
        return "its columns have several codecs"
    if footer.num_row_groups and footer.row_group(0).sorting_columns:
        return "it declares a sort order"
    if layout.blooms:
        return "it has Bloom filters"
    if layout.page_index:
        return "it has a page index"
    if layout.int96:
        return "it has INT96 timestamps"
    if layout.checksums:
        return "its pages have checksums, which DuckDB does not look at"
    if layout.older_lists:
        return "it has lists in an older encoding"
    if layout.encodings:
        return "its columns have encodings of their own"
    if footer.num_row_groups > 1 and layout.row_group_size % VECTOR_SIZE:
        return f"its row groups are not multiples of {VECTOR_SIZE} rows"
    if any(b"PARQUET:field_id" in (f.metadata or {}) for f in footer.schema.to_arrow_schema()):
        return "its columns have field ids"
    try:
        for key, value in (footer.metadata or {}).items():
            key.decode()
            value.decode()
    except UnicodeDecodeError:
        return "its metadata is not text"
    return None


def same_schema(old: pq.FileMetaData, new: pq.FileMetaData) -> bool:
    """Whether two files have the same columns, types, nullability and key-value metadata."""
    schemas_equal = new.schema.to_arrow_schema().equals(old.schema.to_arrow_schema())
    return bool(schemas_equal) and dict(new.metadata or {}) == dict(old.metadata or {})


def kept(old: pq.FileMetaData, new: pq.FileMetaData) -> bool:
    """Whether a file that COPY wrote has the schema, metadata and row groups of the old one."""
    return same_schema(old, new) and _sizes(new) == _sizes(old)


def _sizes(footer: pq.FileMetaData) -> list[int]:
    return [footer.row_group(i).num_rows for i in range(footer.num_row_groups)]
