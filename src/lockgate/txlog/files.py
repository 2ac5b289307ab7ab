"""Files as Arrow tables, and how one is told from another."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING

from xxhash import xxh3_64_intdigest

if TYPE_CHECKING:
    import pyarrow as pa


def path_hash(path: str, deletion_vector_id: str | None = None) -> int:
    """What stands for a live file in the index: of its path, which may be longer than a key, and its vector.

    >>> path_hash("a.parquet") == path_hash("a.parquet", None) != path_hash("a.parquet", "uabc@1")
    True
    """
    text = path if deletion_vector_id is None else f"{path}\0{deletion_vector_id}"
    return int(xxh3_64_intdigest(text.encode())) - 2**63


def _text() -> pa.DataType:
    import pyarrow as pa

    return pa.string()


def _number() -> pa.DataType:
    import pyarrow as pa

    return pa.int64()


def _flag() -> pa.DataType:
    import pyarrow as pa

    return pa.bool_()


_KINDS: dict[str, Callable[[], pa.DataType]] = {
    "path": _text,
    "partition_values": _text,
    "size": _number,
    "modification_time": _number,
    "data_change": _flag,
    "stats": _text,
    "tags": _text,
    "deletion_vector": _text,
}
FILES_COLUMNS = tuple(_KINDS)
_REQUIRED = FILES_COLUMNS[:5]


def files_schema(*, extra: bool = False) -> pa.Schema:
    """The columns of a snapshot's files. partition_values, stats, tags and deletion_vector are JSON text."""
    import pyarrow as pa

    fields = [pa.field(name, kind(), nullable=name not in _REQUIRED) for name, kind in _KINDS.items()]
    return pa.schema([*fields, pa.field("extra", pa.string())] if extra else fields)


def within_partitions(files: pa.Table, wanted: Mapping[str, Collection[str | None]]) -> pa.Table:
    """The files that have one of the wanted values in each of these partition columns."""
    import pyarrow as pa
    import pyarrow.compute as pc

    column = files.column("partition_values")
    kept = [
        text
        for text in pc.unique(column).to_pylist()
        if all(json.loads(text).get(name) in allowed for name, allowed in wanted.items())
    ]
    return files.filter(pc.is_in(column, pa.array(kept, pa.string())))
