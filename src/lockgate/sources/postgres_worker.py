"""Reading one partition, in a task: a COPY in binary form, as Arrow batches, of the snapshot that all tasks share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lockgate.sources.postgres_problems import problem, told
from lockgate.sources.postgres_read import PostgresRead
from lockgate.sources.postgres_types import Kind, ReadColumn

# What Spark's calendar holds. What PostgreSQL calls infinity arrives as a date far outside.
_DAYS = (-719162, 2932896)  # 0001-01-01, 9999-12-31
_MICROSECONDS = (_DAYS[0] * 86_400_000_000, (_DAYS[1] + 1) * 86_400_000_000 - 1)
_AS_TEXT = 'read it as text ("as_text": [{name}]), or change it in a "query"'


def read_partition(read: PostgresRead, partition: int, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The rows of a partition with the columns of `schema`, which are those of `read`."""
    query, settings = read.query(partition)
    with _transaction(read) as cursor:
        secrets = read.access.secrets
        with told(read.source, "the server refused the settings of the query", secrets):
            columns = ", ".join(f"set_config(${2 * i + 1}, ${2 * i + 2}, true)" for i in range(len(settings)))
            cursor.execute(f"SELECT {columns}", [text for setting in settings for text in setting])
            cursor.fetchall()
        with told(read.source, "the rows cannot be read", secrets):
            cursor.adbc_statement.set_options(**{"adbc.postgresql.batch_size_hint_bytes": str(read.batch_bytes)})
            cursor.execute(query)
            batches = cursor.fetch_record_batch()
        while True:
            with told(read.source, "the rows cannot be read", secrets):
                batch = next(batches, None)
            if batch is None:
                return
            if batch.num_rows:
                yield _fitted(batch, read, schema)


@contextmanager
def _transaction(read: PostgresRead) -> Iterator[Any]:
    try:
        import adbc_driver_postgresql.dbapi as adbc
        import psycopg  # noqa: F401 - its errors are told apart
    except ImportError as error:
        raise problem(
            read.source,
            f"a worker of Spark has no driver for PostgreSQL: {error}",
            hint="install lockgate[postgres] where Spark's workers run",
        ) from error
    secrets = read.access.secrets
    with told(read.source, "a worker of Spark cannot connect to the database", secrets, address=read.access.conninfo):
        connection = adbc.connect(read.access.conninfo)
    try:
        with connection.cursor() as cursor:
            with told(read.source, "the snapshot cannot be read", secrets, snapshot=True):
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
                cursor.execute(f"SET TRANSACTION SNAPSHOT '{read.access.snapshot}'")
            yield cursor
    finally:
        connection.close()


def _fitted(batch: pa.RecordBatch, read: PostgresRead, schema: pa.Schema) -> pa.RecordBatch:
    width = len(read.columns)
    for column, dimensions in zip(read.arrays, batch.columns[width:], strict=True):
        if (pc.max(dimensions).as_py() or 0) > 1:
            raise problem(
                read.source,
                f"the column {column.name} holds an array of more than one dimension, which Spark does not have",
                hint=_AS_TEXT.format(name=f'"{column.name}"'),
            )
    arrays = [
        _column(values, column, field.type, read)
        for values, column, field in zip(batch.columns[:width], read.columns, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _column(values: pa.Array, column: ReadColumn, wanted: pa.DataType, read: PostgresRead) -> pa.Array:
    _require_calendar(values, column.kind, column, read)
    if column.kind == "array":
        _require_calendar(values.flatten(), column.element, column, read)
    try:
        _require_digits(values.flatten() if column.kind == "array" else values, wanted)
        return values.cast(wanted)
    except pa.ArrowInvalid as error:
        raise problem(
            read.source,
            f"the column {column.name} holds a value that the type {wanted} cannot hold: {error}",
            hint=_AS_TEXT.format(name=f'"{column.name}"'),
        ) from error


def _require_digits(texts: pa.Array, wanted: pa.DataType) -> None:
    """Arrow finds digits too many behind the point, and not always those before it: 1e30 became another number."""
    wanted = wanted.value_type if pa.types.is_list(wanted) else wanted
    if not pa.types.is_decimal(wanted) or not len(texts):
        return
    whole = pc.replace_substring_regex(texts, r"^-?0*([0-9]*)(\..*)?$", r"\1")
    if (pc.max(pc.utf8_length(whole)).as_py() or 0) > wanted.precision - wanted.scale:
        raise pa.ArrowInvalid("too many digits before the point")


def _require_calendar(values: pa.Array, kind: Kind, column: ReadColumn, read: PostgresRead) -> None:
    if kind not in ("date", "timestamp") or not len(values):
        return
    days = kind == "date"
    numbers = values.cast(pa.int32() if days else pa.int64())
    lowest, highest = _DAYS if days else _MICROSECONDS
    least, most = pc.min_max(numbers).values()
    if least.is_valid and (least.as_py() < lowest or most.as_py() > highest):
        raise problem(
            read.source,
            f"the column {column.name} holds infinity, or a {kind} outside of 0001-01-01 to 9999-12-31, which Spark "
            "does not have",
            hint=_AS_TEXT.format(name=f'"{column.name}"'),
        )
