"""What COPY reads beside a file: for each of its rows the one that replaces it, or nothing.

The two are put together by position, which needs no hash table, and whose order of rows is the meaning of it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from lockgate.engines.duckdb_types import VECTOR_SIZE
from lockgate.merging.table_source import RowChange

_ROWS_AT_ONCE = 60 * VECTOR_SIZE


def row_by_row(change: RowChange, rows: int, source: pa.Table) -> pa.RecordBatchReader:
    """As many rows as the file has, made while they are read: `file_row` is the number of a row that is replaced, and
    `c0`, `c1`, … are the columns of its replacement. All are NULL where a row stays.

    >>> change = RowChange(pa.array([1]), pa.array([0]), pa.array([], pa.int64()), None)
    >>> row_by_row(change, 3, pa.table({"x": [5]})).read_all().to_pydict()
    {'file_row': [None, 1, None], 'c0': [None, 5, None]}
    """
    columns = {f"c{i}": _spread(column.type) for i, column in enumerate(source.columns)}
    schema = pa.schema({"file_row": pa.int64(), **columns})
    return pa.RecordBatchReader.from_batches(schema, _batches(change, rows, source, schema))


def _batches(change: RowChange, rows: int, source: pa.Table, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    first = 0
    for base in range(0, rows, _ROWS_AT_ONCE):
        size = min(_ROWS_AT_ONCE, rows - base)
        end = bisect_left(change.rows, base + size, lo=first, key=lambda row: row.as_py())
        replaced = change.rows.slice(first, end - first)
        new = source.take(change.source_rows.slice(first, end - first))
        first = end
        at = pc.inverse_permutation(pc.subtract(replaced, base), max_index=size - 1, output_type=pa.int32())
        columns = [_at(at, column, field.type) for column, field in zip(new.columns, list(schema)[1:], strict=True)]
        yield pa.record_batch([replaced.take(at), *columns], schema=schema)


def _spread(kind: pa.DataType) -> pa.DataType:
    """The type of a column once its rows are where they belong: text is not copied there, but pointed to."""
    plain = kind.value_type if pa.types.is_dictionary(kind) else kind
    return pa.dictionary(pa.int32(), plain) if _is_pointed_to(plain) else plain


def _is_pointed_to(kind: pa.DataType) -> bool:
    return any(is_so(kind) for is_so in (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary))


def _at(at: pa.Array, column: pa.ChunkedArray, kind: pa.DataType) -> pa.Array:
    values = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    if pa.types.is_dictionary(kind):
        return pa.DictionaryArray.from_arrays(at, values)
    return values.take(at)
