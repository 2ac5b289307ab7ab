"""The schema of a Spark DataFrame as Arrow's, in the form in which its rows are kept in Parquet files."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import types as T

from lockgate.errors import SchemaMismatchError

_SIMPLE = {
    T.BooleanType: pa.bool_(),
    T.ByteType: pa.int8(),
    T.ShortType: pa.int16(),
    T.IntegerType: pa.int32(),
    T.LongType: pa.int64(),
    T.FloatType: pa.float32(),
    T.DoubleType: pa.float64(),
    T.StringType: pa.string(),
    T.CharType: pa.string(),
    T.VarcharType: pa.string(),
    T.BinaryType: pa.binary(),
    T.DateType: pa.date32(),
    T.TimestampType: pa.timestamp("us", "UTC"),  # a moment: the session's zone is a way to show it, not a part of it
    T.TimestampNTZType: pa.timestamp("us"),
    T.NullType: pa.null(),
}


def arrow_schema(schema: T.StructType) -> pa.Schema:
    """Every column may be NULL, as in the files that Spark writes: that one batch has no NULL is no promise.

    >>> arrow_schema(T.StructType().add("id", T.LongType(), False).add("at", "timestamp")).types
    [DataType(int64), TimestampType(timestamp[us, tz=UTC])]
    """
    if not schema.fields:
        raise SchemaMismatchError("the DataFrame has no columns", in_place="nothing was written")
    return pa.schema([(field.name, _type(field.dataType, field.name)) for field in schema.fields])


def _type(spark: T.DataType, column: str) -> pa.DataType:
    match spark:
        case T.DecimalType():
            return pa.decimal128(spark.precision, spark.scale)
        case T.TimeType():
            return pa.time64("us" if spark.precision <= 6 else "ns")
        case T.ArrayType():
            return pa.list_(pa.field("element", _type(spark.elementType, column)))
        case T.MapType():
            return pa.map_(_type(spark.keyType, column), _type(spark.valueType, column))
        case T.StructType():
            return pa.struct([(field.name, _type(field.dataType, column)) for field in spark.fields])
    if type(spark) not in _SIMPLE:
        raise SchemaMismatchError(
            f'column "{column}" has the type {spark.simpleString()}, which plain Parquet files cannot keep',
            in_place="nothing was written",
            hint="cast it to a number or a text, or leave it out",
        )
    return _SIMPLE[type(spark)]
