"""The rows of a source, computed by Spark once: kept in files or by Spark, and brought here if they are few."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from lockgate.engines.spark_errors import explained
from lockgate.engines.spark_session import settings
from lockgate.engines.spark_source import SparkSource
from lockgate.errors import DatasetMergeError
from lockgate.identifiers import quoted
from lockgate.merging.footers import read_footers

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# Of no more rows, each task gets what it needs; more are joined by Spark.
ROWS_BROUGHT, BYTES_BROUGHT = 4_000_000, 256 * 2**20
_SAMPLE = 1_000

# Rows are numbered by the file they are in and their place there: the same number however often they are read. Spark
# names files by the task, and by their number among those of the task.
_PART, _CHUNK = r"^part-(\d+)", r"-c(\d+)\.[^-]*$"
_PART_BITS, _CHUNK_BITS, _ROW_BITS = 18, 14, 31

_WRITTEN_AS = {
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInWrite": "CORRECTED",
}


class ComputedRows(Protocol):
    """The rows of a source, which are the same however often they are asked for."""

    @property
    def rows(self) -> int: ...

    def brought(self) -> pa.Table | None:
        """All of them as a table, if they are few enough for this machine's memory and for being sent about."""

    def source(self) -> SparkSource:
        """As a DataFrame."""


@contextmanager
def held(frame: DataFrame) -> Iterator[ComputedRows]:
    """Rows that Spark keeps. For a dry run, which may write nothing."""
    from pyspark.sql import functions as F

    schema = _arrow_schema(frame)
    rows = _numbered(frame).withColumn("place", F.monotonically_increasing_id()).persist()
    try:
        yield HeldRows(rows, schema)
    finally:
        rows.unpersist()


@contextmanager
def staged(frame: DataFrame, folder: Path) -> Iterator[ComputedRows]:
    """Rows that Spark writes to `folder`: they are computed once, also if a worker dies."""
    session, schema, rows = frame.sparkSession, _arrow_schema(frame), _numbered(frame)
    with settings(session, _WRITTEN_AS), explained("the source"):
        rows.write.parquet(f"file://{folder}")
    yield StagedRows(session, folder, tuple(rows.columns), schema)


def written(session: SparkSession, folder: Path) -> ComputedRows:
    """Rows that Spark has written to `folder`, with the columns that the files have."""
    schema = pq.read_schema(_parts(folder)[0]).remove_metadata()
    return StagedRows(session, folder, tuple(schema.names), schema)


def _arrow_schema(frame: DataFrame) -> pa.Schema:
    """The columns of a DataFrame as Arrow has them. No row is computed for it."""
    with explained("the source"):
        return frame.limit(0).toArrow().schema


def _numbered(frame: DataFrame) -> DataFrame:
    """The columns as c0, c1, …, whatever they are called: Spark does not tell upper from lower case."""
    return frame.toDF(*[f"c{i}" for i in range(len(frame.columns))])


@dataclass(frozen=True)
class HeldRows:
    frame: DataFrame
    schema: pa.Schema

    @cached_property
    def rows(self) -> int:
        with explained("the source"):
            return int(self.frame.count())

    def brought(self) -> pa.Table | None:
        if self.rows > ROWS_BROUGHT:
            return None
        with explained("the source"):
            some = self.frame.limit(_SAMPLE).toArrow()
            if some.nbytes * self.rows > BYTES_BROUGHT * max(some.num_rows, 1):
                return None
            table = self.frame.orderBy("place").drop("place").toArrow()
        return table.rename_columns(self.schema.names)

    def source(self) -> SparkSource:
        return SparkSource(self.frame, self.schema, self.rows)


@dataclass(frozen=True)
class StagedRows:
    session: SparkSession
    folder: Path
    columns: tuple[str, ...]  # as they are called in the files
    schema: pa.Schema  # as they were given

    @cached_property
    def rows(self) -> int:
        return sum(footer.num_rows for footer in read_footers(_parts(self.folder)))

    def brought(self) -> pa.Table | None:
        if self.rows > ROWS_BROUGHT:
            return None
        batches: list[pa.RecordBatch] = []
        size = 0
        for part in _parts(self.folder):
            with pq.ParquetFile(part) as file:
                for batch in file.iter_batches():
                    batches.append(batch)
                    size += batch.nbytes
                    if size > BYTES_BROUGHT:
                        return None
        if not batches:
            return self.schema.empty_table()
        table = pa.Table.from_batches(batches).select(self.columns).rename_columns(self.schema.names)
        return table.cast(self.schema)  # such as durations, which Spark writes as plain numbers

    def source(self) -> SparkSource:
        from pyspark.sql import functions as F

        self._refuse_too_many()
        name = F.col("_metadata.file_name")
        part = F.regexp_extract(name, _PART, 1).cast("bigint")
        chunk = F.regexp_extract(name, _CHUNK, 1).cast("bigint")
        file = part * F.lit(1 << _CHUNK_BITS) + chunk
        place = file * F.lit(1 << _ROW_BITS) + F.col("_metadata.row_index")
        literally = re.sub(r"([\[\]{}*?\\])", r"\\\1", str(self.folder))  # a path to be read is a pattern
        with explained("the source"):
            found = self.session.read.parquet(f"file://{literally}")
            frame = found.select(*[quoted(c) for c in self.columns], place.alias("place"))
            frame = frame.toDF(*[f"c{i}" for i in range(len(self.columns))], "place")
        return SparkSource(frame, self.schema, self.rows)

    def _refuse_too_many(self) -> None:
        """Of more files, or larger ones, two rows would get one number."""
        for path in _parts(self.folder):
            part, chunk = re.search(_PART, Path(path).name), re.search(_CHUNK, Path(path).name)
            if not part or not chunk or int(part[1]) >> _PART_BITS or int(chunk[1]) >> _CHUNK_BITS:
                raise DatasetMergeError(
                    f"Spark staged the source in files whose rows cannot be numbered, such as {path}",
                    hint="merge a part of the source at a time, or set fewer tasks and larger files",
                )


def _parts(folder: Path) -> list[str]:
    return sorted(str(part) for part in folder.glob("part-*.parquet"))
