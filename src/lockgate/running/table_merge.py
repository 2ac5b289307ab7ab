"""Keyed modes on the tables of a run: what `merging/strategy.py` says, done by Spark on DataFrames.

Target and source meet in one outer join, so each is read once. Columns go by number inside it (t0, t1, s0, s1), so that
no name of a user can clash with another.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import reduce
from typing import NoReturn

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql import types as T

from lockgate.errors import SchemaMismatchError
from lockgate.language.diagnostics import did_you_mean
from lockgate.merging.order import parse_order_by
from lockgate.merging.strategy import MergeStrategy
from lockgate.running.exact_casts import convertible, exact

_NOT_KEYS = (T.ArrayType, T.MapType, T.StructType, T.VariantType, T.YearMonthIntervalType, T.CalendarIntervalType)


def merged(
    target: DataFrame | None, source: DataFrame, mode: str, keys: Sequence[str], order_by: Sequence[str] = ()
) -> DataFrame:
    """The table after the merge. The rows of `source` must have passed `keyed_source.check_rows`.

    Its columns are those of the target, or of the source where there is no target yet.
    """
    actions = MergeStrategy(mode).actions
    require_keys(source.schema, "source", keys)
    if actions.deduplicates:
        source = _one_row_a_key(source, keys, order_by)
    if target is None:
        return source if actions.creates else source.where(F.lit(False))
    require_keys(target.schema, "table", keys)
    names = [field.name for field in target.schema.fields]
    fitted = numbered(_fitted(source, target.schema), "s")
    places = places_of(target.schema, keys)
    same_key = reduce(Column.__and__, [F.col(f"t{place}") == F.col(f"s{place}") for place in places])
    how = {("ignore", "keep"): "left", ("insert", "keep"): "full", ("insert", "remove"): "right"}
    joined = numbered(target, "t").join(fitted, same_key, how[actions.new, actions.others])
    # A key of the source is never NULL, so it tells whether there is a source row; a match has both keys.
    from_target = F.col(f"s{places[0]}").isNull()
    if actions.matched == "keep":
        from_target |= F.col(f"t{places[0]}").isNotNull()
    rows = [F.when(from_target, F.col(f"t{n}")).otherwise(F.col(f"s{n}")) for n in range(len(names))]
    return joined.select([row.alias(name) for row, name in zip(rows, names, strict=True)])


def column_pairs(source: T.StructType, target: T.StructType) -> list[tuple[int, T.StructField]]:
    """For each column of the target the number of its source column, and the target's field."""
    _refuse_repeated(source, "source")
    _refuse_repeated(target, "table")
    given = {field.name.lower(): number for number, field in enumerate(source.fields)}
    wanted = {field.name.lower() for field in target.fields}
    missing = [field.name for field in target.fields if field.name.lower() not in given]
    extra = [field.name for field in source.fields if field.name.lower() not in wanted]
    if missing or extra:
        _refuse_other_columns(missing, extra, source)
    pairs = [(given[field.name.lower()], field) for field in target.fields]
    for number, field in pairs:
        theirs = source.fields[number].dataType
        if not convertible(theirs, field.dataType):
            raise SchemaMismatchError(
                f'column "{field.name}": the source has {theirs.simpleString()}, the table has '
                f"{field.dataType.simpleString()}, and one is never turned into the other",
                hint=f"cast the column in the source, e.g. CAST({field.name} AS {field.dataType.simpleString()})",
            )
    return pairs


def require_keys(schema: T.StructType, whose: str, keys: Sequence[str]) -> None:
    """Refuse a table without these columns, or with types that cannot be keys."""
    _refuse_repeated(schema, whose)
    _refuse_missing(schema, whose, keys, "key column")
    for place in places_of(schema, keys):
        field = schema.fields[place]
        if isinstance(field.dataType, _NOT_KEYS):
            raise SchemaMismatchError(
                f'column "{field.name}" of the {whose} cannot be a key: its type is {field.dataType.simpleString()}',
                hint="a key is a number, text, bytes, a boolean, a date or a time",
            )


def _fitted(source: DataFrame, target: T.StructType) -> DataFrame:
    """The source with the columns and types of the target, in its order."""
    pairs = column_pairs(source.schema, target)
    rows = numbered(source, "c")
    types = [field.dataType for field in source.schema.fields]
    return rows.select([exact(F.col(f"c{n}"), types[n], field.dataType).alias(f"c{n}") for n, field in pairs])


def _one_row_a_key(source: DataFrame, keys: Sequence[str], order_by: Sequence[str]) -> DataFrame:
    """The first row by `order_by`; of rows that are equal in it, and without it, the last in the frame's own order:
    by partition, then as the rows stand in it. That is the order of a file, or of a query's own ORDER BY."""
    order = parse_order_by(order_by)
    _refuse_missing(source.schema, "source", [key.column for key in order], "ORDER BY column")
    names = source.columns
    rows = numbered(source, "c").withColumn("place", F.monotonically_increasing_id())
    ranks = []
    for key, place in zip(order, places_of(source.schema, [key.column for key in order]), strict=True):
        column = F.col(f"c{place}")
        if key.descending:
            ranks.append(column.desc_nulls_first() if key.nulls_first else column.desc_nulls_last())
        else:
            ranks.append(column.asc_nulls_first() if key.nulls_first else column.asc_nulls_last())
    same_key = Window.partitionBy(*[F.col(f"c{place}") for place in places_of(source.schema, keys)])
    rank = F.row_number().over(same_key.orderBy(*ranks, F.col("place").desc()))
    first = rows.withColumn("rank", rank).where(F.col("rank") == 1)
    return first.select([F.col(f"c{n}").alias(name) for n, name in enumerate(names)])


def numbered(frame: DataFrame, letter: str) -> DataFrame:
    """The frame with its columns named by number."""
    return frame.toDF(*[f"{letter}{number}" for number in range(len(frame.columns))])


def places_of(schema: T.StructType, names: Sequence[str]) -> list[int]:
    """The numbers of these columns, which must be there."""
    known = [field.name.lower() for field in schema.fields]
    return [known.index(name.lower()) for name in names]


def _refuse_missing(schema: T.StructType, whose: str, names: Sequence[str], called: str) -> None:
    known = {field.name.lower(): field.name for field in schema.fields}
    missing = [name for name in names if name.lower() not in known]
    if missing:
        raise SchemaMismatchError(
            f"the {whose} has no {called} {_listed(missing)}; its columns are {_listed(known.values())}",
            hint=did_you_mean(missing[0], known.values()),
        )


def _refuse_repeated(schema: T.StructType, whose: str) -> None:
    repeated = [name for name, times in Counter(field.name.lower() for field in schema.fields).items() if times > 1]
    if repeated:
        raise SchemaMismatchError(
            f"the {whose} has several columns named {_listed(repeated)}",
            hint="columns are matched by name, without regard to case: give each its own",
        )


def _refuse_other_columns(missing: list[str], extra: list[str], source: T.StructType) -> NoReturn:
    parts = [f"the source has no column {_listed(missing)}"] if missing else []
    parts += [f"the table has no column {_listed(extra)}"] if extra else []
    near = did_you_mean(missing[0], [field.name for field in source.fields]) if missing else None
    raise SchemaMismatchError(
        " and ".join(parts),
        hint=near or "whole rows are replaced, so both sides need the same columns: add them, or leave them out",
    )


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)
