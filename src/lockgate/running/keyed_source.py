"""The rows that a keyed mode brings, looked at before anything is made of them: each has a key, no two have the same,
and every value fits the table. One aggregation tells; only a source with mistakes is looked at again for examples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from lockgate.errors import DuplicateKeyError, NullKeyError, SchemaMismatchError
from lockgate.merging.strategy import MergeStrategy
from lockgate.running.exact_casts import exact, lost, same_type
from lockgate.running.table_merge import column_pairs, numbered, places_of

_NAMED = 5  # keys that a message names
_SHOWN = 80  # characters of a value


def check_rows(source: DataFrame, target: T.StructType | None, mode: str, keys: Sequence[str]) -> None:
    """Compute the source and refuse it if one of its rows cannot be merged. The schemas must go together."""
    given = source.schema
    wanted = given if target is None else target
    goes_to = dict(column_pairs(given, wanted))
    casts = {n: field for n, field in goes_to.items() if not same_type(given.fields[n].dataType, field.dataType)}
    by_key = _by_key(source, places_of(given, keys), goes_to, casts)
    no_key = reduce(Column.__or__, [F.col(f"k{i}").isNull() for i in range(len(keys))])
    found = by_key.agg(
        F.sum("rows").alias("rows"),
        F.sum(F.when(no_key, F.col("rows"))).alias("no_key"),
        F.sum(F.when(~no_key, F.col("rows") - 1)).alias("surplus"),
        *[F.sum(f"lost{n}").alias(f"lost{n}") for n in casts],
        *[F.min(f"value{n}").alias(f"value{n}") for n in casts],
    ).first()
    assert found is not None, "an aggregation without groups has one row"
    for n, field in casts.items():  # first of all: a key that was lost would look like one that is NULL
        if found[f"lost{n}"]:
            raise SchemaMismatchError(
                f'column "{field.name}": {given.fields[n].dataType.simpleString()} does not fit into '
                f"{field.dataType.simpleString()} without loss: {_cut(found[f'value{n}'])}, in "
                f"{found[f'lost{n}']:,} of {found['rows']:,} source rows",
                hint="correct or round the value in the source, or widen the column of the table",
            )
    key_fields = [wanted.fields[n] for n in places_of(wanted, keys)]
    if found["no_key"]:
        raise NullKeyError(
            f"{_of(found['no_key'], found['rows'], 'has', 'have')} NULL in a key column: "
            f"{_examples(by_key.where(no_key), key_fields)}",
            hint="a row without a key cannot be merged: give the rows a key or leave them out",
        )
    if found["surplus"] and not MergeStrategy(mode).actions.deduplicates:
        raise DuplicateKeyError(
            f"{_of(found['surplus'], found['rows'], 'repeats', 'repeat')} a key: "
            f"{_examples(by_key.where(F.col('rows') > 1), key_fields)}",
            hint="leave one row a key, or use MODE DEDUPLICATE, whose ORDER BY says which row stays",
        )


def _by_key(
    source: DataFrame,
    places: Sequence[int],
    goes_to: Mapping[int, T.StructField],
    casts: Mapping[int, T.StructField],
) -> DataFrame:
    """A row a key, in the table's types (k0, k1): how many rows have it, and which values of them would be lost."""
    fields = source.schema.fields
    rows = numbered(source, "c")

    def is_lost(n: int) -> Column:
        return lost(F.col(f"c{n}"), fields[n].dataType, casts[n].dataType)

    keys = [exact(F.col(f"c{n}"), fields[n].dataType, goes_to[n].dataType) for n in places]
    return rows.groupBy(*[key.alias(f"k{i}") for i, key in enumerate(keys)]).agg(
        F.count(F.lit(1)).alias("rows"),
        *[F.count_if(is_lost(n)).alias(f"lost{n}") for n in casts],
        *[F.min(F.when(is_lost(n), _text(F.col(f"c{n}"), fields[n]))).alias(f"value{n}") for n in casts],
    )


def _of(some: int, rows: int, one: str, many: str) -> str:
    return f"{some:,} of {rows:,} source rows {one if some == 1 else many}"


def _examples(groups: DataFrame, fields: Sequence[T.StructField]) -> str:
    """The first keys of the groups. Spark makes the text, which holds more moments than Python knows."""
    keys = [F.col(f"k{i}") for i in range(len(fields))]
    first = groups.orderBy(*keys).limit(_NAMED)
    texts = first.select([_text(key, field) for key, field in zip(keys, fields, strict=True)]).collect()
    shown = [", ".join(f"{field.name}={_cut(text)}" for field, text in zip(fields, row, strict=True)) for row in texts]
    return "; ".join(shown)


def _text(column: Column, field: T.StructField) -> Column:
    if isinstance(field.dataType, T.BinaryType):
        return F.concat(F.lit("X'"), F.hex(column), F.lit("'"))
    text = column.cast("string")
    return F.concat(F.lit("'"), text, F.lit("'")) if isinstance(field.dataType, T.StringType) else text


def _cut(text: str | None) -> str:
    if text is None:
        return "NULL"
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
