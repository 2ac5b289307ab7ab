"""Staged rows on their way to the server, a batch at a time: each value exactly what it was, or the column is named."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lockgate.destinations.postgres_columns import ORDINAL, Column
from lockgate.destinations.postgres_types import fraction_digits, longest
from lockgate.errors import SchemaMismatchError
from lockgate.merging.lossless import cast_exactly, shown
from lockgate.merging.nulls import null_rows
from lockgate.merging.schema import refuse_null_key
from lockgate.merging.source_keys import refuse_duplicate_keys
from lockgate.merging.type_families import is_list
from lockgate.storage.local import explained

_ROWS_AT_ONCE = 65_536
_UUID = r"^\{?[0-9a-fA-F]{4}(-?[0-9a-fA-F]{4}){7}\}?$"
_LONGEST_NAME = 63
_IN_PLACE = "nothing was written"

Test = Callable[[pa.Array], tuple[str, pa.Array] | None]  # what is wrong, and of which values


def staged_schema(parts: Sequence[Path]) -> pa.Schema:
    with explained("read", parts[0]):
        return pq.read_schema(parts[0]).remove_metadata()


def reader(parts: Sequence[Path], columns: Sequence[Column], *, numbered: bool) -> pa.RecordBatchReader:
    """The rows as the staging table takes them, in their order."""
    fields = [pa.field(c.staged_name, c.fit.arrow) for c in columns]
    if numbered:
        fields.append(pa.field(ORDINAL, pa.int64()))
    return pa.RecordBatchReader.from_batches(pa.schema(fields), _batches(parts, columns, pa.schema(fields), numbered))


def _batches(
    parts: Sequence[Path], columns: Sequence[Column], schema: pa.Schema, numbered: bool
) -> Iterator[pa.RecordBatch]:
    for first_row, batch in _read(parts, [c.name for c in columns]):
        arrays = [_one(converted(batch.column(c.name), c, first_row)) for c in columns]
        if numbered:
            arrays.append(pa.arange(first_row, first_row + batch.num_rows))
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def _read(parts: Sequence[Path], names: Sequence[str]) -> Iterator[tuple[int, pa.RecordBatch]]:
    row = 0
    for part in parts:
        with explained("read", part), part.open("rb") as raw:
            # Chosen by name here, and not by the reader, for which a dot in a name leads into a struct.
            file = pq.ParquetFile(raw)
            wanted = None if len(names) == len(file.schema_arrow) else _leaves(file, names)
            for batch in file.iter_batches(_ROWS_AT_ONCE, columns=wanted):
                yield row, batch
                row += batch.num_rows


def _leaves(file: pq.ParquetFile, names: Sequence[str]) -> list[str] | None:
    if any("." in name for name in file.schema_arrow.names):
        return None
    return list(names)


def _one(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks)


def converted(values: pa.Array, column: Column, first_row: int) -> pa.ChunkedArray:
    """The values in the type of the table's column."""
    to = column.fit.arrow
    if values.type == to:
        return pa.chunked_array([values], to)
    if pa.types.is_floating(values.type) and pa.types.is_string(to):
        return pa.chunked_array([values.cast(pa.string())])
    try:
        return cast_exactly(pa.chunked_array([values]), to, column.name, first_row=first_row)
    except SchemaMismatchError as error:
        if column.target is not None:
            error.message += f" (the table's column is {column.target.declared})"
            error.args = (error.message,)
        raise


def check_rows(
    parts: Sequence[Path],
    columns: Sequence[Column],
    labels: dict[str, list[str]],
    *,
    unique_keys: bool,
    lenient_nulls: bool,
) -> None:
    """Read all that could be refused and refuse it, before anything is published. `labels`: of the columns whose type
    is an enum. `lenient_nulls`: a trigger may fill in what is NULL."""
    tests = {c.number: test for c in columns if (test := _test_of(c, labels))}
    required = [c for c in columns if c.target and c.target.required and not c.target.filled and not lenient_nulls]
    needed = [c for c in columns if c.number in tests or c.key or c in required or _changes(c, parts)]
    if not needed:
        return
    keys: list[pa.RecordBatch] = []
    key_columns = [c for c in columns if c.key]
    nulls = dict.fromkeys((c.name for c in key_columns), 0)
    rows = 0
    for first_row, batch in _read(parts, [c.name for c in needed]):
        fitted: dict[str, Any] = {}
        for column in needed:
            values = _one(converted(batch.column(column.name), column, first_row))
            if column.key:
                nulls[column.name] += null_rows(values)
                fitted[column.name] = values
            elif column in required and null_rows(values):
                raise _null(column, first_row + pc.index(pc.is_null(values), True).as_py())
            if column.number in tests:
                _refuse(tests[column.number], values, column, first_row)
        if key_columns and unique_keys:
            keys.append(pa.RecordBatch.from_pydict({c.name: fitted[c.name] for c in key_columns}))
        rows += batch.num_rows
    for name, count in nulls.items():
        refuse_null_key(name, count, rows)
    if keys:
        refuse_duplicate_keys(pa.Table.from_batches(keys), [c.name for c in key_columns])


def _changes(column: Column, parts: Sequence[Path]) -> bool:
    return bool(staged_schema(parts).field(column.name).type != column.fit.arrow)


def _test_of(column: Column, labels: dict[str, list[str]]) -> Test | None:
    """What is to be seen in the values beyond their type; None: nothing."""
    inside = column.fit.arrow.value_type if is_list(column.fit.arrow) else column.fit.arrow
    if pa.types.is_string(inside) and not (column.fit.staged.startswith("text") and column.fit.cast == "numeric"):
        return _text_test(column, labels.get(column.name))
    if column.target is not None and (digits := fraction_digits(column.target)) < 6:
        unit = 10 ** (6 - digits)

        def finer(values: pa.Array) -> tuple[str, pa.Array]:
            ticks = values.cast(pa.int64())
            return "has more digits than", pc.not_equal(pc.multiply(pc.divide(ticks, unit), unit), ticks)

        return finer
    return None


def _text_test(column: Column, labels: list[str] | None) -> Test:
    target = column.target
    length = longest(target) if target else None
    kind = (target.element or target.type) if target else "text"

    def unfit(values: pa.Array) -> tuple[str, pa.Array] | None:
        nul = pc.match_substring(values, "\0")
        if pc.any(nul).as_py():
            return "holds the character NUL, which no text of PostgreSQL can hold:", nul
        if length is not None:
            return "is too long for", pc.greater(pc.utf8_length(values), length)
        if labels is not None:
            return "is no value of", pc.invert(pc.is_in(values, value_set=pa.array(labels, pa.string())))
        if kind == "uuid":
            return "is no", pc.invert(pc.match_substring_regex(values, _UUID))
        if kind == "name":
            return "is too long for", pc.greater(pc.binary_length(values), _LONGEST_NAME)
        return None

    return unfit


def _refuse(test: Test, values: pa.Array, column: Column, first_row: int) -> None:
    inside = values.flatten() if is_list(values.type) else values
    found = test(inside)
    if found is None:
        return
    words, wrong = found
    place = pc.index(pc.fill_null(pc.and_(wrong, pc.is_valid(inside)), False), True).as_py()
    if place < 0:
        return
    row = pc.list_parent_indices(values)[place].as_py() if is_list(values.type) else place
    kind = column.target.declared if column.target else "text"
    raise SchemaMismatchError(
        f'column "{column.name}": {shown(inside[place])} in row {first_row + row} {words} {kind}',
        hint="rows are counted from 0; correct the value in the query, or change the column of the table",
        in_place=_IN_PLACE,
    )


def _null(column: Column, row: int) -> SchemaMismatchError:
    return SchemaMismatchError(
        f'column "{column.name}" is NULL in row {row}, and the table\'s column is NOT NULL',
        hint="rows are counted from 0; give the row a value in the query, or leave it out",
        in_place=_IN_PLACE,
    )
