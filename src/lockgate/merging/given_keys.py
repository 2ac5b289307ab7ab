"""The keys that a caller gives, in any of the shapes they come in, as an Arrow table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from lockgate.errors import SchemaMismatchError


def keys_table(source_keys: Any, key_columns: Sequence[str]) -> pa.Table:
    """Scalars, tuples, dicts, an Arrow array or table, as a table that has at least the key columns.

    >>> keys_table([(1, "A"), (2, "B")], ["id", "category"]).to_pydict()
    {'id': [1, 2], 'category': ['A', 'B']}
    """
    try:
        table = _as_table(source_keys, list(key_columns))
    except (pa.ArrowException, ValueError, TypeError, KeyError, IndexError) as error:
        raise SchemaMismatchError(
            f"source_keys cannot be taken for values of {', '.join(key_columns)}: {error}",
            in_place="nothing was written",
            hint="give one value a key, a tuple a key where there are several key columns, or an Arrow table",
        ) from error
    missing = [column for column in key_columns if column not in table.column_names]
    if missing:
        raise SchemaMismatchError(
            f"source_keys have no column {', '.join(missing)}; they have {', '.join(table.column_names)}",
            in_place="nothing was written",
            hint="name the columns of source_keys as the dataset does",
        )
    return table


def _as_table(keys: Any, names: list[str]) -> pa.Table:
    if isinstance(keys, pa.Table):
        return keys
    if isinstance(keys, pa.RecordBatch):
        return pa.Table.from_batches([keys])
    if isinstance(keys, (pa.Array, pa.ChunkedArray)):
        if pa.types.is_struct(keys.type):
            return pa.Table.from_batches([pa.RecordBatch.from_struct_array(pa.concat_arrays(_chunks(keys)))])
        return pa.table({_only(names): keys})
    if isinstance(keys, Mapping):
        return pa.table(dict(keys))
    if hasattr(keys, "__arrow_c_stream__"):
        return pa.table(keys)
    rows = list(keys)
    if rows and isinstance(rows[0], Mapping):
        present = [name for name in rows[0] if isinstance(name, str)]
        return pa.table({name: [row[name] for row in rows] for name in present})
    if (rows and isinstance(rows[0], (tuple, list))) or len(names) > 1:
        return pa.table({name: [row[i] for row in rows] for i, name in enumerate(names)})
    return pa.table({_only(names): rows})


def _only(names: list[str]) -> str:
    if len(names) != 1:
        raise ValueError(f"single values for {len(names)} key columns")
    return names[0]


def _chunks(keys: pa.Array | pa.ChunkedArray) -> list[pa.Array]:
    return keys.chunks if isinstance(keys, pa.ChunkedArray) else [keys]


def in_types_of(keys: pa.Table, schema: pa.Schema) -> pa.Table:
    """The keys in the file's types, dictionaries decoded; a column that would lose a value stays in its own type."""
    for i, name in enumerate(keys.column_names):
        at = schema.get_field_index(name)
        type = _value_type(schema.field(at).type if at >= 0 else keys.column(i).type)
        if type == keys.column(i).type:
            continue
        try:
            keys = keys.set_column(i, name, keys.column(i).cast(type))
        except (pa.ArrowException, ValueError):
            keys = keys.set_column(i, name, keys.column(i).cast(_value_type(keys.column(i).type)))
    return keys


def _value_type(type: pa.DataType) -> pa.DataType:
    return type.value_type if pa.types.is_dictionary(type) else type
