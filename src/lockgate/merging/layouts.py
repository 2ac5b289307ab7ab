"""The same values in the layout that every Arrow kernel and every reader of Parquet knows.

Arrow can neither look up nor sort view types and small decimals, and polars hands out its text as views.
"""

from __future__ import annotations

import pyarrow as pa

from lockgate.merging.lossless import cast_exactly
from lockgate.merging.type_families import is_list


def plain_table(table: pa.Table) -> pa.Table:
    """The table without views, run-end encoding and small decimals; itself if it has none.

    >>> plain_table(pa.table({"name": pa.array(["x"], pa.string_view())})).schema.field("name").type
    DataType(string)
    """
    schema = plain_schema(table.schema)
    if schema == table.schema:
        return table
    columns = [
        cast_exactly(column, field.type, field.name) for column, field in zip(table.columns, schema, strict=True)
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def plain_reader(reader: pa.RecordBatchReader) -> pa.RecordBatchReader:
    """The same for a stream, batch by batch."""
    schema = plain_schema(reader.schema)
    if schema == reader.schema:
        return reader
    batches = (part for batch in reader for part in plain_table(pa.Table.from_batches([batch])).to_batches())
    return pa.RecordBatchReader.from_batches(schema, batches)


def plain_schema(schema: pa.Schema) -> pa.Schema:
    return pa.schema([field.with_type(_plain(field.type)) for field in schema], metadata=schema.metadata)


def _plain(type_: pa.DataType) -> pa.DataType:
    if pa.types.is_string_view(type_):
        return pa.string()
    if pa.types.is_binary_view(type_):
        return pa.binary()
    if pa.types.is_decimal32(type_) or pa.types.is_decimal64(type_):
        return pa.decimal128(type_.precision, type_.scale)
    if pa.types.is_run_end_encoded(type_):
        return _plain(type_.value_type)
    if pa.types.is_dictionary(type_):
        return pa.dictionary(type_.index_type, _plain(type_.value_type), type_.ordered)
    if pa.types.is_struct(type_):
        return pa.struct([_plain_field(field) for field in type_])
    if pa.types.is_map(type_):
        return pa.map_(_plain_field(type_.key_field), _plain_field(type_.item_field), keys_sorted=type_.keys_sorted)
    if pa.types.is_fixed_size_list(type_):
        return pa.list_(_plain_field(type_.value_field), type_.list_size)
    if pa.types.is_large_list(type_) or pa.types.is_large_list_view(type_):
        return pa.large_list(_plain_field(type_.value_field))
    return pa.list_(_plain_field(type_.value_field)) if is_list(type_) else type_


def _plain_field(field: pa.Field) -> pa.Field:
    return field.with_type(_plain(field.type))
