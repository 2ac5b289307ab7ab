"""Casts without loss mean the same on Spark's columns as on Arrow's arrays."""

from __future__ import annotations

import math
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

from lockgate.errors import SchemaMismatchError
from lockgate.merging.conversions import convertible as arrow_convertible
from lockgate.merging.lossless import cast_exactly

LOST = "lost"
EDGES = [0, 1, -1, *(sign * 2**bits + more for bits in (7, 15, 24, 31, 53) for sign in (1, -1) for more in (-1, 0, 1))]
WIDE = [*EDGES, 2**60, 2**63 - 1, -(2**63)]
FRACTIONS = [0.1, 0.5, -2.25, 0.30000000000000004, 1 / 3, 1e-7, 123456.789]
SHORT = pa.scalar(0.1, pa.float32()).as_py()  # 0.1 as 32 bits hold it
DECIMALS = [Decimal(text) for text in ("0.30", "-1.50", "2.00", "16777217.00", "123456.78", "99999999.99", "0.01")]

# Spark's name of a type, Arrow's, and values of it.
TYPES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "tinyint": (pa.int8(), [0, 127, -128]),
    "int": (pa.int32(), [n for n in EDGES if -(2**31) <= n < 2**31]),
    "bigint": (pa.int64(), WIDE),
    "float": (pa.float32(), [0.5, -0.0, 2.0**24, 2.0**31, 127.0, 300.0, math.nan, math.inf, SHORT]),
    "double": (pa.float64(), [*map(float, EDGES), 2.0**60, *FRACTIONS, -0.0, math.nan, -math.inf, 1e300]),
    "decimal(10,2)": (pa.decimal128(10, 2), DECIMALS),
    "decimal(38,16)": (pa.decimal128(38, 16), [*DECIMALS, Decimal(2**60), Decimal("0.1234567890123456")]),
    "decimal(3,0)": (pa.decimal128(3, 0), [Decimal(7), Decimal(-999)]),
    "string": (pa.string(), ["", "1"]),
    "boolean": (pa.bool_(), [True]),
    "date": (pa.date32(), [date(1, 1, 1), date(2026, 3, 4)]),
    "timestamp_ntz": (pa.timestamp("us"), [datetime(2026, 3, 4), datetime(2026, 3, 4, 0, 0, 0, 1)]),
    "array<bigint>": (pa.list_(pa.int64()), [[], [1, None], [1, 2**40]]),
    "array<tinyint>": (pa.list_(pa.int8()), [[5]]),
    "struct<a:bigint,b:string>": (
        pa.struct([("a", pa.int64()), ("b", pa.string())]), [{"a": 1, "b": "x"}, {"a": 2**40, "b": None}]
    ),
    "struct<b:string,a:int>": (
        pa.struct([("b", pa.string()), ("a", pa.int32())]), [{"b": "x", "a": None}]
    ),
}  # fmt: skip


def by_arrow(value: Any, source: pa.DataType, target: pa.DataType) -> Any:
    try:
        return cast_exactly(pa.chunked_array([pa.array([value], source)]), target, "x")[0].as_py()
    except SchemaMismatchError:
        return LOST


def test_spark_casts_what_arrow_casts_to_the_same_values(spark: Any) -> None:
    from pyspark.sql import functions as F

    from lockgate.running.exact_casts import convertible, exact

    schema = spark.createDataFrame([], ", ".join(f"`{name}` {name}" for name in TYPES)).schema
    kind = {field.name: field.dataType for field in schema.fields}
    pairs = [(a, b) for a in TYPES for b in TYPES]
    related = [(a, b) for a, b in pairs if arrow_convertible(TYPES[a][0], TYPES[b][0])]
    assert len(related) > 60
    assert [(a, b) for a, b in pairs if convertible(kind[a], kind[b])] == related
    length = max(len(values) for _, values in TYPES.values()) + 1
    padded = [[*values, *[None] * (length - len(values))] for _, values in TYPES.values()]
    frame = spark.createDataFrame(list(zip(*padded, strict=True)), schema)
    results = frame.select([exact(F.col(f"`{a}`"), kind[a], kind[b]).alias(f"{a} {b}") for a, b in related]).collect()
    wrong = []
    for n, (a, b) in enumerate(related):
        for value, row in zip([*TYPES[a][1], None], results, strict=False):
            found = LOST if row[n] is None and value is not None else row[n]
            found = found.asDict() if hasattr(found, "asDict") else found
            expected = by_arrow(value, TYPES[a][0], TYPES[b][0])
            if repr(found) != repr(expected) and found != expected:
                wrong.append(f"{value!r}: {a} to {b} is {found!r} on Spark, {expected!r} on Arrow")
    assert wrong == []
