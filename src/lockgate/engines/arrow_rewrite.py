"""Writing one Parquet file again with Arrow, row group by row group: rows replaced, dropped or kept in their place."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lockgate.engines.layout import SPARK_SCHEMA, FileLayout, close, writer
from lockgate.engines.reading import adapted, open_file, reading
from lockgate.merging.protocol import Rewrite, Written
from lockgate.merging.table_source import RowChange
from lockgate.merging.taking import in_slices
from lockgate.storage.local import LocalStorage, explained

_FULL_GROUP = 1 << 20


def rewrite_file(job: Rewrite, source: pa.Table, storage: LocalStorage, *, threads: bool) -> Written:
    """Stage the file that `job` asks for, and make it durable."""
    layout = FileLayout.of(job.file.footer, job.file.path)
    with reading(job.file):
        file = open_file(job.file.path, layout)
    with file:
        own = file.schema_arrow
        schema = job.schema or own
        if job.schema is not None and not own.equals(schema):
            layout = _without_stale_schema(layout)
        replacements = source.select(schema.names)
        with explained("write", job.staged):
            rows = _write(file, job, replacements, schema, layout, threads)
    storage.keep_attributes(Path(job.file.path), job.staged)
    storage.fsync_file(job.staged)
    return Written(job.staged, rows, job.staged.stat().st_size)


def _without_stale_schema(layout: FileLayout) -> FileLayout:
    """Spark reads its own copy of the schema from the metadata; one that is not true any more must go."""
    return replace(layout, metadata={k: v for k, v in layout.metadata.items() if k != SPARK_SCHEMA})


def _write(
    file: pq.ParquetFile, job: Rewrite, replacements: pa.Table, schema: pa.Schema, layout: FileLayout, threads: bool
) -> int:
    out: Any = None
    count = 0
    try:
        for rows in _row_groups(file, job, replacements, schema, layout, threads):
            if out is None:
                dictionary = layout.worth_a_dictionary(job.file.footer, rows)
                out = writer(job.staged, schema, layout, dictionary=dictionary, rows=layout.row_group_size)
            if rows.num_rows:
                out.write_table(rows, row_group_size=max(rows.num_rows, 1))
                count += rows.num_rows
        if out is None:
            out = writer(job.staged, schema, layout)
    finally:
        if out is not None:
            close(out, layout)
    return count


def _row_groups(
    file: pq.ParquetFile, job: Rewrite, replacements: pa.Table, schema: pa.Schema, layout: FileLayout, threads: bool
) -> Any:
    change = RowChange.of(job.matches)
    if not job.keep_others and change.kept is None:  # nothing of the old file stays: it need not be read
        size = layout.row_group_size or _FULL_GROUP
        for start in range(0, len(change.source_rows), size):
            rows = adapted(replacements.take(change.source_rows.slice(start, size)), schema)
            yield _sorted(rows, layout)
        return
    base = 0
    for number in range(file.num_row_groups):
        size = file.metadata.row_group(number).num_rows
        replaced = _within(change.rows, base, size)
        dropped = _within(change.dropped, base, size)
        kept = _within(change.kept, base, size) if change.kept is not None else None
        if not job.keep_others and not replaced and not kept:
            base += size
            continue
        with reading(job.file):
            rows = adapted(file.read_row_group(number, use_threads=threads), schema)
        if replaced:
            taken = adapted(replacements.take(change.source_rows.slice(replaced.start, len(replaced))), schema)
            rows = with_rows_replaced(rows, pc.subtract(_slice(change.rows, replaced), base), taken)
        if not job.keep_others:
            stay = pa.concat_arrays([_slice(change.rows, replaced), _slice(change.kept, kept or range(0))])
            rows = rows.take(pc.subtract(stay, base).take(pc.sort_indices(stay)))
        elif dropped:
            gone = pc.subtract(_slice(change.dropped, dropped), base)
            rows = rows.filter(pc.invert(pc.is_in(pa.arange(0, size), value_set=gone)))
        yield _sorted(rows, layout) if replaced else rows
        base += size


def _within(numbers: pa.Array, base: int, size: int) -> range:
    """Which of the ascending row numbers lie in one row group."""
    start = bisect_left(numbers, base, key=lambda n: n.as_py())
    return range(start, bisect_left(numbers, base + size, lo=start, key=lambda n: n.as_py()))


def _slice(numbers: pa.Array, part: range) -> pa.Array:
    return numbers.slice(part.start, len(part))


def with_rows_replaced(table: pa.Table, positions: pa.Array, replacements: pa.Table) -> pa.Table:
    """`table` with the rows at `positions`, ascending, replaced by the rows of `replacements`, in that order.

    >>> with_rows_replaced(pa.table({"a": [1, 2, 3]}), pa.array([1]), pa.table({"a": [9]}))["a"].to_pylist()
    [1, 9, 3]
    """
    parts = []
    base = 0
    for part in in_slices(table):
        own = _within(positions, base, part.num_rows)
        here = pc.subtract(_slice(positions, own), base)
        parts.append(_replaced_rows(part, here, replacements.slice(own.start, len(own))) if own else part)
        base += part.num_rows
    return pa.concat_tables(parts) if parts else table


def _replaced_rows(table: pa.Table, positions: pa.Array, replacements: pa.Table) -> pa.Table:
    place = pc.inverse_permutation(positions.cast(pa.int64()), max_index=table.num_rows - 1)
    mask = place.is_valid()
    columns = [
        _replaced(_one_array(table.column(i)), mask, place, _one_array(replacements.column(name)))
        for i, name in enumerate(table.column_names)
    ]
    return pa.table(columns, schema=table.schema)


def _replaced(old: pa.Array, mask: pa.Array, place: pa.Array, new: pa.Array) -> pa.Array:
    kind = old.type
    if pa.types.is_string_view(kind) or pa.types.is_binary_view(kind):  # no kernel takes or replaces views yet
        large = pa.large_string() if pa.types.is_string_view(kind) else pa.large_binary()
        return _replaced(old.cast(large), mask, place, new.cast(large)).cast(kind)
    if isinstance(kind, pa.BaseExtensionType):
        return kind.wrap_array(_replaced(old.storage, mask, place, new.storage))
    if not _has_kernel(kind):
        both = pa.concat_arrays([old, new])
        return both.take(pc.coalesce(pc.add(place.cast(pa.int64()), len(old)), pa.arange(0, len(old))))
    return pc.replace_with_mask(old, mask, new)


def _has_kernel(kind: pa.DataType) -> bool:
    """Whether Arrow can replace values by a mask. What it cannot is gathered from both sides instead."""
    return bool(
        pa.types.is_integer(kind)
        or pa.types.is_float32(kind)
        or pa.types.is_float64(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_decimal128(kind)
        or pa.types.is_date(kind)
        or pa.types.is_timestamp(kind)
        or pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
    )


def _one_array(column: pa.ChunkedArray) -> pa.Array:
    if column.num_chunks == 1:
        return column.chunk(0)
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)


def _sorted(rows: pa.Table, layout: FileLayout) -> pa.Table:
    """A row group that is declared to be sorted stays so when values in it have changed."""
    if not layout.sorting:
        return rows
    return rows.take(sort_order(rows, layout))


def sort_order(rows: pa.Table, layout: FileLayout) -> pa.Array:
    """The row numbers in the declared order."""
    keys: list[tuple[str, str]] = []
    columns: dict[str, Any] = {}
    for number, (name, descending, nulls_first) in enumerate(layout.sorting):
        column = rows.column(name)
        flags = pc.is_null(column)
        columns[f"null{number}"] = pc.invert(flags) if nulls_first else flags
        columns[f"value{number}"] = column
        keys += [(f"null{number}", "ascending"), (f"value{number}", "descending" if descending else "ascending")]
    return pc.sort_indices(pa.table(columns), sort_keys=keys)
