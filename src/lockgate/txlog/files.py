"""Files as Arrow tables, and how one is told from another."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any

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


def rows_of(adds: pa.Table, columns: set[str], table: str) -> pa.Table:
    """Files that are to be added, given as Arrow, as rows of the log: `store.ADD_COLUMNS` behind `ordinal`.

    Path, size and modification_time have to be there; the other columns of `files_schema()` may be left out.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    from lockgate.txlog import validation

    count = adds.num_rows
    unknown = set(adds.column_names) - set(FILES_COLUMNS)
    missing = {"path", "size", "modification_time"} - set(adds.column_names)
    if unknown or missing:
        said = f"lacks {', '.join(sorted(missing))}" if missing else f"has unknown columns {', '.join(sorted(unknown))}"
        raise validation.refused(f"the table of files to add to {table} {said}", f"columns: {', '.join(FILES_COLUMNS)}")
    defaults: dict[str, Any] = {"partition_values": "{}", "data_change": True}
    rows = {}
    for name in FILES_COLUMNS:
        kind = _KINDS[name]()
        if name in adds.column_names:
            column = adds.column(name)
            if pa.types.is_dictionary(column.type):
                column = column.cast(column.type.value_type)
            try:
                column = column.cast(kind).combine_chunks()
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
                raise validation.refused(f"the column {name} of files to add to {table}: {error}") from error
            if name in _REQUIRED and column.null_count:
                raise validation.refused(f"the column {name} of files to add to {table} has NULLs")
        else:
            column = pa.repeat(pa.scalar(defaults.get(name), kind), count)
        rows[name] = column
    paths = rows["path"].to_pylist()
    for path in paths:
        validation.check_path(path, "add", table)
    for text in pc.unique(rows["partition_values"]).to_pylist():
        validation.check_partition_text(text, columns, table)
    for path, stats in zip(paths, rows["stats"].to_pylist(), strict=True):
        validation.check_stats(stats, path, table)
    if rows["deletion_vector"].null_count < count:
        raise validation.refused(
            f"files with deletion vectors cannot be added to {table} as Arrow", "give them as Add records"
        )
    if rows["tags"].null_count < count:
        for text in pc.unique(rows["tags"]).to_pylist():
            validation.check_tags_text(text, table)
    hashes = [path_hash(path) for path in paths]
    if len(set(hashes)) < count:
        raise validation.refused(f"a commit to {table} names a file twice")
    named = {"path_hash": pa.array(hashes, pa.int64()), **rows, "extra": pa.nulls(count, pa.string())}
    from lockgate.txlog.store import ADD_COLUMNS

    return pa.table({name: named[name] for name in ADD_COLUMNS[4:]})
