"""The source of a merge as a Spark DataFrame. Only its counts, and the keys of one that is not large, come here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lockgate.engines import spark_worker as worker
from lockgate.engines.spark_errors import explained
from lockgate.engines.spark_keys import is_joined_as_it_is, spark_type
from lockgate.errors import SchemaMismatchError
from lockgate.merging.key_intervals import KeyIntervals
from lockgate.merging.order import parse_order_by
from lockgate.merging.protocol import FileMatches, KeyBounds
from lockgate.merging.pruning import KeyRanges
from lockgate.merging.schema import fit, refuse_null_key, require_columns, require_keys
from lockgate.merging.source_keys import duplicate_keys
from lockgate.merging.table_source import shown_moves

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_KEYS_COLLECTED = 4_000_000  # of a source with more, only the least and the greatest key are compared with footers
_SHOWN = 5


@dataclass(frozen=True)
class SparkSource:
    """The rows as they were given: columns c0, c1, … and `place`, a number of each row that grows in their order."""

    frame: DataFrame
    schema: pa.Schema
    rows: int

    def checked(self, key_columns: tuple[str, ...]) -> SparkSource:
        """Rows, NULLs and repeated keys are counted in one pass."""
        from pyspark.sql import functions as F

        require_columns(self.schema, "source", list(key_columns), "key column")
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
        return self

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
            return replace(self, frame=frame, rows=frame.count())

    def fitted(self, schema: pa.Schema, key_columns: tuple[str, ...], partition_columns: tuple[str, ...]) -> SparkRows:
        order = {name: i for i, name in enumerate(self.schema.names)}
        frame = self.frame.select("place", *[f"c{order[name]}" for name in schema.names])
        frame = frame.toDF("place", *[f"c{i}" for i in range(len(schema))])
        given = pa.schema([self.schema.field(order[name]) for name in schema.names])
        carried = worker.Columns(schema, key_columns, partition_columns)
        return SparkRows(frame, carried, given, self.rows)

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
