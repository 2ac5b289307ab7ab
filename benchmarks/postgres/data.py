"""The rows of the benchmark: the same ones every time, in the types that tables of business data have."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

PARTS = 8  # as many files as Spark's tasks would write
AT_ONCE = 250_000

COLUMNS = {
    "id": ("bigint", pa.int64()),
    "customer": ("integer", pa.int32()),
    "amount": ("numeric(12,2)", pa.decimal128(12, 2)),
    "quantity": ("smallint", pa.int16()),
    "day": ("date", pa.date32()),
    "at": ("timestamptz", pa.timestamp("us", "UTC")),
    "status": ("text", pa.string()),
    "note": ("text", pa.string()),
}
SCHEMA = pa.schema({name: arrow for name, (_, arrow) in COLUMNS.items()})
DEFINITION = ", ".join(f"{name} {sql}{' PRIMARY KEY' if name == 'id' else ''}" for name, (sql, _) in COLUMNS.items())
STATUSES = ("new", "paid", "sent", "back")


def write_parts(folder: Path, first: int, rows: int) -> list[Path]:
    """Rows whose ids begin with `first`, in Parquet files like those that Spark stages."""
    folder.mkdir(parents=True)
    parts = []
    for number in range(PARTS):
        begin, end = first + rows * number // PARTS, first + rows * (number + 1) // PARTS
        parts.append(folder / f"part-{number:05d}.snappy.parquet")
        with pq.ParquetWriter(parts[-1], SCHEMA) as writer:
            for batch in _batches(begin, end):
                writer.write_batch(batch)
    return parts


def _batches(begin: int, end: int) -> Iterator[pa.RecordBatch]:
    for start in range(begin, end, AT_ONCE):
        ids = range(start, min(start + AT_ONCE, end))
        columns = {
            "id": pa.array(ids, pa.int64()),
            "customer": pa.array([n * 7919 % 100_000 for n in ids], pa.int32()),
            "amount": pa.array([n * 31 % 1_000_000 for n in ids], pa.int64()),
            "quantity": pa.array([n % 12 for n in ids], pa.int16()),
            "day": pa.array([19_000 + n % 1000 for n in ids], pa.int32()).cast(pa.date32()),
            "at": pa.array([1_700_000_000_000_000 + n * 1_000_003 for n in ids], pa.timestamp("us", "UTC")),
            "status": pa.array([STATUSES[n % 4] for n in ids]),
            "note": pa.array([f"order {n * 104_729 % 10_000_019} of customer {n * 7919 % 100_000}" for n in ids]),
        }
        columns["amount"] = columns["amount"].cast(pa.decimal128(19, 0)).cast(pa.decimal128(12, 2))
        yield pa.RecordBatch.from_pydict(columns, schema=SCHEMA)
