"""The source of a merge as a Spark DataFrame. Only its counts, and the keys of one that is not large, come here."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from lockgate.engines import spark_worker as worker
from lockgate.engines.spark_errors import explained
from lockgate.engines.spark_keys import is_joined_as_it_is, spark_type
from lockgate.engines.spark_session import settings
from lockgate.errors import DatasetMergeError, SchemaMismatchError
from lockgate.identifiers import quoted
from lockgate.merging.footers import read_footers
from lockgate.merging.key_intervals import KeyIntervals
from lockgate.merging.order import parse_order_by
from lockgate.merging.protocol import FileMatches, KeyBounds
from lockgate.merging.pruning import KeyRanges
from lockgate.merging.schema import fit, refuse_null_key, require_columns, require_keys
from lockgate.merging.source_keys import duplicate_keys
from lockgate.merging.table_source import TableSource, shown_moves

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_KEYS_COLLECTED = 4_000_000  # of a source with more, only the least and the greatest key are compared with footers
_SHOWN = 5

# Rows are numbered by the file they are in and their place there: the same number however often they are read. Spark
# names files by the task, and by their number among those of the task.
_PART, _CHUNK = r"^part-(\d+)", r"-c(\d+)\.[^-]*$"
_PART_BITS, _CHUNK_BITS, _ROW_BITS = 18, 14, 31

_WRITTEN_AS = {
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInWrite": "CORRECTED",
}

_TAKEN_AS = {"spark.sql.timestampType": "TIMESTAMP_NTZ"}  # a time without a zone stays one


def arrow_schema(frame: DataFrame) -> pa.Schema:
    """The columns of a DataFrame as Arrow has them. No row is computed for it."""
    with explained("the source"):
        return frame.limit(0).toArrow().schema


def numbered(frame: DataFrame) -> DataFrame:
    """The columns as c0, c1, …, whatever they are called: Spark does not tell upper from lower case."""
    return frame.toDF(*[f"c{i}" for i in range(len(frame.columns))])


@contextmanager
def held(frame: DataFrame) -> Iterator[SparkSource]:
    """A source whose rows Spark keeps, so that they are computed once. For a dry run, which may write nothing."""
    from pyspark.sql import functions as F

    schema = arrow_schema(frame)
    rows = numbered(frame).withColumn("place", F.monotonically_increasing_id()).persist()
    try:
        yield SparkSource(rows, schema)
    finally:
        rows.unpersist()


@contextmanager
def staged(frame: DataFrame, folder: Path) -> Iterator[SparkSource]:
    """A source whose rows Spark writes to `folder` first: they are computed once, also if a worker dies."""
    session, schema, rows = frame.sparkSession, arrow_schema(frame), numbered(frame)
    with settings(session, _WRITTEN_AS), explained("the source"):
        rows.write.parquet(f"file://{folder}")
    yield of_files(session, folder, rows.columns, schema)


def of_files(session: SparkSession, folder: Path, columns: Sequence[str], schema: pa.Schema) -> SparkSource:
    """A source that Spark has written to `folder`, with these columns."""
    from pyspark.sql import functions as F

    name = F.col("_metadata.file_name")
    part = F.regexp_extract(name, _PART, 1).cast("bigint")
    chunk = F.regexp_extract(name, _CHUNK, 1).cast("bigint")
    file = part * F.lit(1 << _CHUNK_BITS) + chunk
    place = file * F.lit(1 << _ROW_BITS) + F.col("_metadata.row_index")
    literally = re.sub(r"([\[\]{}*?\\])", r"\\\1", str(folder))  # a path to be read is a pattern
    with explained("the source"):
        written = session.read.parquet(f"file://{literally}").select(
            *[quoted(c) for c in columns], place.alias("place")
        )
        frame = written.toDF(*[f"c{i}" for i in range(len(columns))], "place")
    staged = StagedRows(folder, tuple(columns), tuple(schema.types))
    staged.refuse_too_many()
    return SparkSource(frame, schema, staged)


def of_written(session: SparkSession, folder: Path) -> SparkSource:
    """The same, with the columns that its files have."""
    schema = pq.read_schema(StagedRows(folder, (), ()).parts()[0]).remove_metadata()
    return of_files(session, folder, schema.names, schema)


class AtHand(Protocol):
    """Rows of a source that can be read here without asking Spark."""

    @property
    def rows(self) -> int: ...

    def table(self, numbers: Sequence[int]) -> pa.Table:
        """Some of the columns of all rows, in their order."""

    def picked(self, numbers: Sequence[int]) -> AtHand:
        """The same rows with these columns, in this order."""


@dataclass(frozen=True)
class StagedRows:
    """Rows that Spark has written."""

    folder: Path
    columns: tuple[str, ...]
    types: tuple[pa.DataType, ...]

    @cached_property
    def rows(self) -> int:
        return sum(footer.num_rows for footer in read_footers(self.parts()))

    def table(self, numbers: Sequence[int]) -> pa.Table:
        names = [self.columns[n] for n in numbers]
        parts = [pq.ParquetFile(part).read(columns=names) for part in self.parts()]
        table = pa.concat_tables(parts).select(names)
        for place, number in enumerate(numbers):
            if pa.types.is_duration(self.types[number]):  # which Spark writes as plain numbers
                table = table.set_column(place, names[place], table.column(place).cast(self.types[number]))
        return table

    def picked(self, numbers: Sequence[int]) -> StagedRows:
        columns, types = (tuple(of[n] for n in numbers) for of in (self.columns, self.types))
        return StagedRows(self.folder, columns, types)

    def refuse_too_many(self) -> None:
        """Of more files, or larger ones, two rows would get one number."""
        for path in self.parts():
            part, chunk = re.search(_PART, Path(path).name), re.search(_CHUNK, Path(path).name)
            if not part or not chunk or int(part[1]) >> _PART_BITS or int(chunk[1]) >> _CHUNK_BITS:
                raise DatasetMergeError(
                    f"Spark staged the source in files whose rows cannot be numbered, such as {path}",
                    hint="merge a part of the source at a time, or set fewer tasks and larger files",
                )

    def parts(self) -> list[str]:
        return sorted(str(part) for part in self.folder.glob("part-*.parquet"))


@dataclass(frozen=True)
class TableRows:
    """Rows that were given as a table."""

    given: pa.Table

    @property
    def rows(self) -> int:
        return int(self.given.num_rows)

    def table(self, numbers: Sequence[int]) -> pa.Table:
        return self.given.select(list(numbers))

    def picked(self, numbers: Sequence[int]) -> TableRows:
        return TableRows(self.given.select(list(numbers)))


def of_table(session: SparkSession, table: pa.Table) -> SparkSource:
    """A source that was given as a table. Columns get their numbers here: Spark takes neither two names that differ in
    case, nor an empty one."""
    columns = []
    for column in table.columns:
        kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
        columns.append(column.cast(kind) if kind != column.type else column)
    names = [f"c{i}" for i in range(table.num_columns)]
    carried = pa.table([*columns, pa.arange(0, table.num_rows)], names=[*names, "place"])
    with explained("the source"), settings(session, _TAKEN_AS):
        return SparkSource(session.createDataFrame(carried), table.schema, TableRows(table))


@dataclass(frozen=True)
class SparkSource:
    """The rows as they were given: columns c0, c1, … and `place`, a number of each row that grows in their order."""

    frame: DataFrame
    schema: pa.Schema
    at_hand: AtHand | None = None  # None where the rows are only in Spark
    known_rows: int | None = None

    @cached_property
    def rows(self) -> int:
        if self.known_rows is not None:
            return self.known_rows
        if self.at_hand is not None:
            return self.at_hand.rows
        with explained("the source"):
            return int(self.frame.count())

    def checked(self, key_columns: tuple[str, ...]) -> SparkSource:
        """Rows, NULLs and repeated keys are counted in one pass: here if they are few, else by Spark."""
        require_columns(self.schema, "source", list(key_columns), "key column")
        if self.at_hand is not None and self.at_hand.rows <= _KEYS_COLLECTED:
            keys = self.at_hand.table([self.schema.names.index(k) for k in key_columns])
            TableSource(keys.rename_columns(list(key_columns))).checked(key_columns)
            return self
        return self._checked_by_spark(key_columns)

    def _checked_by_spark(self, key_columns: tuple[str, ...]) -> SparkSource:
        from pyspark.sql import functions as F

        keys = self._keys(key_columns)
        groups = self.frame.groupBy(*[k.alias(f"g{i}") for i, k in enumerate(keys)]).agg(
            F.count("*").alias("n"), F.min("place").alias("first")
        )
        nulls = [
            F.sum(F.when(F.col(f"g{i}").isNull(), F.col("n")).otherwise(0)).alias(f"nulls{i}") for i in range(len(keys))
        ]
        with explained("the source"):
            counted = groups.agg(F.sum("n").alias("rows"), F.count("*").alias("distinct"), *nulls).collect()[0]
        rows = counted["rows"] or 0
        for i, key in enumerate(key_columns):
            refuse_null_key(key, counted[f"nulls{i}"] or 0, rows)
        require_keys(self.schema, "source", key_columns)
        if counted["distinct"] < rows:
            several = groups.filter("n > 1").orderBy("first").limit(_SHOWN).select("first")
            examples = self.frame.join(several, self.frame["place"] == several["first"], "left_semi")
            table = examples.orderBy("place").select(*self._carried(key_columns)).toArrow()
            raise duplicate_keys(table.rename_columns(list(key_columns)), key_columns, rows - counted["distinct"], rows)
        return replace(self, known_rows=rows)

    def deduplicated(self, key_columns: tuple[str, ...], order_by: Sequence[str]) -> SparkSource:
        from pyspark.sql import functions as F
        from pyspark.sql.window import Window

        order = parse_order_by(order_by)
        require_columns(self.schema, "source", [key.column for key in order], "order_by column")
        require_columns(self.schema, "source", list(key_columns), "key column")
        with explained("the source"):
            counted = self.frame.agg(
                F.count("*").alias("rows"), *[F.sum(k.isNull().cast("int")).alias(f"nulls{i}") for i, k in
                                              enumerate(self._keys(key_columns))]
            ).collect()[0]  # fmt: skip
        for i, key in enumerate(key_columns):
            refuse_null_key(key, counted[f"nulls{i}"] or 0, counted["rows"])
        require_keys(self.schema, "source", key_columns)
        places = []
        for by in order:
            column = F.col(self._carried([by.column])[0])
            direction = "desc" if by.descending else "asc"
            places.append(getattr(column, f"{direction}_nulls_{'first' if by.nulls_first else 'last'}")())
        window = Window.partitionBy(*self._keys(key_columns)).orderBy(*places, F.col("place").desc())
        try:
            ranked = self.frame.withColumn("nth", F.row_number().over(window))
            frame = ranked.filter("nth = 1").drop("nth")
            frame.schema  # noqa: B018 - over Connect, the question that makes Spark look at the query
        except Exception as error:
            raise SchemaMismatchError(
                f"rows cannot be put in order by {', '.join(by.column for by in order)}: {error}".splitlines()[0],
                hint="order by numbers, text, bytes, booleans, dates or times",
                in_place="nothing was written",
            ) from error
        with explained("the source"):
            return replace(self, frame=frame, at_hand=None, known_rows=frame.count())

    def fitted(self, schema: pa.Schema, key_columns: tuple[str, ...], partition_columns: tuple[str, ...]) -> SparkRows:
        order = {name: i for i, name in enumerate(self.schema.names)}
        frame = self.frame.select("place", *[f"c{order[name]}" for name in schema.names])
        frame = frame.toDF("place", *[f"c{i}" for i in range(len(schema))])
        given = pa.schema([self.schema.field(order[name]) for name in schema.names])
        carried = worker.Columns(schema, key_columns, partition_columns)
        at_hand = self.at_hand.picked([order[name] for name in schema.names]) if self.at_hand else None
        return SparkRows(frame, carried, given, self.rows, at_hand)

    def _carried(self, names: Sequence[str]) -> list[str]:
        return [f"c{self.schema.names.index(name)}" for name in names]

    def _keys(self, key_columns: Sequence[str]) -> list[Column]:
        """Key columns to group by: text as its bytes, since Spark may compare it by a collation."""
        from pyspark.sql import functions as F

        types = {f.name: f.dataType.typeName() for f in self.frame.schema.fields}
        return [
            F.col(c).cast("binary") if types[c].startswith("string") else F.col(c) for c in self._carried(key_columns)
        ]


@dataclass(frozen=True)
class SparkRows:
    """The source made ready: c0, c1, … are the dataset's columns in their order, of the types that Spark gave them."""

    frame: DataFrame
    carried: worker.Columns
    given: pa.Schema
    rows: int
    at_hand: AtHand | None = None
    moves: dict[str, Any] = field(default_factory=dict)  # by file: the rows that leave it, set by the engine

    def keyed(self, *more: str) -> DataFrame:
        """Each row's place, its keys as the join takes them, and those of its columns that are named."""
        from pyspark.sql import functions as F

        names = self.carried.schema.names
        keys = []
        for i, key in enumerate(self.carried.key_columns):
            number = names.index(key)
            wanted, given = self.carried.schema.field(number).type, self.given.field(number).type
            column, kind = F.col(f"c{number}"), spark_type(wanted)
            if is_joined_as_it_is(given, wanted):
                made = column.cast(kind)
            else:
                made = F.arrow_udf(worker.join_key(wanted, key), kind)(column)
            keys.append(made.alias(f"k{i}"))
        return self.frame.select("place", *keys, *more)

    def key_bounds(self) -> KeyBounds:
        names = self.carried.schema.names
        numbers = [names.index(key) for key in self.carried.key_columns]
        schema = pa.schema([self.carried.schema.field(n) for n in numbers])
        if self.rows <= _KEYS_COLLECTED:
            if self.at_hand is not None:
                found = self.at_hand.table(numbers)
            else:
                with explained("the source"):
                    found = self.frame.select(*[f"c{n}" for n in numbers]).toArrow()
            return KeyRanges(fit(found.rename_columns(schema.names), schema))
        return KeyIntervals(fit(self._bounds(numbers).rename_columns(schema.names), schema))

    def _bounds(self, numbers: Sequence[int]) -> pa.Table:
        from pyspark.sql import functions as F

        texts = {f.name for f in self.frame.schema.fields if f.dataType.typeName().startswith("string")}
        columns = {n: F.col(f"c{n}").cast("binary") if f"c{n}" in texts else F.col(f"c{n}") for n in numbers}
        with explained("the source"):
            found = self.frame.agg(
                *[F.min(column).alias(f"least{n}") for n, column in columns.items()],
                *[F.max(column).alias(f"most{n}") for n, column in columns.items()],
            ).toArrow()
        bounds = []
        for n in numbers:
            both = pa.chunked_array([*found[f"least{n}"].chunks, *found[f"most{n}"].chunks])
            bounds.append(both.cast(pa.string()) if f"c{n}" in texts else both)  # in the order of bytes, as footers are
        return pa.table(bounds, names=[str(n) for n in numbers])

    def shown_moves(self, matches: Sequence[FileMatches], most: int) -> list[str]:
        said: list[str] = []
        for found in matches:
            if len(said) < most:
                rows = self.carried.fitted(self.moves[found.file.name](most - len(said)))
                said += shown_moves(rows, found.file, self.carried.key_columns, self.carried.partition_columns)
        return said
