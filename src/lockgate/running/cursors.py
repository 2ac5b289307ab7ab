"""Values of a cursor in Spark, and the hash by which a row is remembered."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F
from pyspark.sql import types as T

from lockgate.identifiers import quoted
from lockgate.sources.watermark import CursorValue, ceiling, text_of

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_MICROSECOND = timedelta(microseconds=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_JSON = {
    "ignoreNullFields": "false",
    "timeZone": "UTC",
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}


def kind_of(spark: T.DataType) -> str | None:
    """The kind of cursor that a column of this type can be. None: its values have no order that can be relied on."""
    if isinstance(spark, T.IntegralType | T.DecimalType):
        return "number"
    named = {T.DateType: "date", T.TimestampType: "timestamp", T.TimestampNTZType: "timestamp_ntz"}
    return "string" if isinstance(spark, T.StringType) else named.get(type(spark))


def highest(name: str, kind: str) -> Column:
    """The highest value of a column, in a form that does not depend on the session's time zone."""
    most = F.max(F.col(quoted(name)))
    return F.unix_micros(most) if kind == "timestamp" else most.cast("string")


def value_of(collected: Any, kind: str) -> CursorValue:
    """What `highest` gave, as a value."""
    match kind:
        case "timestamp":
            return _EPOCH + int(collected) * _MICROSECOND
        case "timestamp_ntz":
            return datetime.fromisoformat(collected)
        case "date":
            return date.fromisoformat(collected)
        case "number":
            return Decimal(collected)
    return str(collected)


def literal(value: CursorValue, spark: T.DataType) -> Column:
    """A value of a cursor, to be compared with its column."""
    if isinstance(spark, T.TimestampType):
        assert isinstance(value, datetime)
        return F.timestamp_micros(F.lit((value - _EPOCH) // _MICROSECOND))
    if isinstance(value, Decimal) and isinstance(spark, T.DecimalType):
        scale = spark.scale
        return F.lit(text_of(ceiling(value, scale))).cast(f"decimal(38,{scale})")
    if isinstance(value, Decimal):  # a whole number is at or above it where it is at or above the next whole one
        return F.lit(max(-(2**63), min(int(ceiling(value, 0)), 2**63 - 1)))
    return F.lit(text_of(value)).cast(spark)


def row_hash(columns: Sequence[str]) -> Column:
    """Half of a SHA-256 of the row as JSON: rows with equal values have equal hashes, in every run."""
    row = F.struct(*[F.col(quoted(name)) for name in columns])
    return F.substring(F.sha2(F.to_json(row, _JSON), 256), 1, 32)


def described(frame: DataFrame) -> tuple[tuple[str, str], ...]:
    """The columns of a frame as a watermark keeps them."""
    return tuple((field.name, field.dataType.json()) for field in frame.schema.fields)


def schema_of(columns: Sequence[tuple[str, str]]) -> T.StructType:
    """The schema that was described."""
    fields = [{"name": name, "type": json.loads(kind), "nullable": True, "metadata": {}} for name, kind in columns]
    return T.StructType.fromJson({"type": "struct", "fields": fields})
