"""A Spark column as another type, exactly: every value keeps its meaning or becomes NULL, which tells that it was lost.

The same pairs of types as in `merging/conversions.py`, for columns that Spark computes. Nothing here raises on a value:
whoever converts counts what was lost before the result is used.
"""

from __future__ import annotations

from functools import reduce

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

_BITS = {"tinyint": 7, "smallint": 15, "int": 31, "bigint": 63}  # without the sign
_FLOATS = ("float", "double")
_FAMILIES = {
    "date": "local time",
    "timestamp_ntz": "local time",
    "timestamp": "instant",
    **dict.fromkeys([*_BITS, *_FLOATS], "number"),
}


def convertible(source: T.DataType, target: T.DataType) -> bool:
    """Whether values of one type may become values of the other at all, if they fit.

    >>> convertible(T.LongType(), T.FloatType()), convertible(T.StringType(), T.LongType())
    (True, False)
    """
    if same_type(source, target) or isinstance(source, T.NullType) or isinstance(target, T.NullType):
        return True
    if isinstance(source, T.ArrayType) and isinstance(target, T.ArrayType):
        return convertible(source.elementType, target.elementType)
    if isinstance(source, T.MapType) and isinstance(target, T.MapType):
        return convertible(source.keyType, target.keyType) and convertible(source.valueType, target.valueType)
    if isinstance(source, T.StructType) and isinstance(target, T.StructType):
        given, wanted = ({field.name: field.dataType for field in struct.fields} for struct in (source, target))
        if given.keys() != wanted.keys() or not len(given) == len(source.fields) == len(target.fields):
            return False
        return all(convertible(given[name], wanted[name]) for name in wanted)
    return _family(source) == _family(target)


def same_type(source: T.DataType, target: T.DataType) -> bool:
    """Equal but for what may be NULL inside."""
    return bool(source.simpleString() == target.simpleString())


def exact(column: Column, source: T.DataType, target: T.DataType) -> Column:
    """The column as type `target`, NULL where a value would be lost; the types must be convertible."""
    if same_type(source, target):
        return column
    if isinstance(source, T.NullType):
        return column.cast(target)
    if isinstance(target, T.NullType):
        return F.lit(None)
    if isinstance(source, T.ArrayType):
        return _array(column, source.elementType, target.elementType)
    if isinstance(source, T.MapType):
        keys = _array(F.map_keys(column), source.keyType, target.keyType)
        values = _array(F.map_values(column), source.valueType, target.valueType)
        return F.when(keys.isNotNull() & values.isNotNull(), F.map_from_arrays(keys, values))
    if isinstance(source, T.StructType):
        return _struct(column, source, target)
    if _family(source) == "text":
        return column.cast(target)  # another collation
    if _family(source) == "number":
        return _number(column, source, target)
    return _there_and_back(column, column.try_cast(target), source)


def lost(column: Column, source: T.DataType, target: T.DataType) -> Column:
    """Whether the value of a row has no equal in the other type."""
    return column.isNotNull() & exact(column, source, target).isNull()


def _family(type_: T.DataType) -> str:
    """Types of one family hold the same kind of thing; a type alone in its family is converted to itself alone."""
    name: str = type_.simpleString()
    if isinstance(type_, T.DecimalType):
        return "number"
    if isinstance(type_, T.StringType | T.CharType | T.VarcharType):
        return "text"
    if isinstance(type_, T.DayTimeIntervalType):
        return "duration"
    if name.startswith("time("):
        return "time of day"
    return _FAMILIES.get(name, name)


def _there_and_back(column: Column, converted: Column, source: T.DataType) -> Column:
    return F.when(converted.try_cast(source) == column, converted)


def _array(column: Column, source: T.DataType, target: T.DataType) -> Column:
    whole = F.forall(column, lambda element: ~lost(element, source, target))
    return F.when(whole, F.transform(column, lambda element: exact(element, source, target)))


def _struct(column: Column, source: T.StructType, target: T.StructType) -> Column:
    given = {field.name: field.dataType for field in source.fields}
    fields = [(field, column.getField(field.name)) for field in target.fields]
    whole = [~lost(value, given[field.name], field.dataType) for field, value in fields]
    converted = [exact(value, given[field.name], field.dataType).alias(field.name) for field, value in fields]
    return F.when(reduce(Column.__and__, whole, column.isNotNull()), F.struct(*converted))


def _number(column: Column, source: T.DataType, target: T.DataType) -> Column:
    given, wanted = source.simpleString(), target.simpleString()
    if given in _FLOATS and wanted in _BITS:
        # Beyond the range a cast saturates, and back as a float the largest integer looks equal.
        return F.when(_within(column, _BITS[wanted]), _there_and_back(column, column.try_cast(target), source))
    if given in _BITS and wanted in _FLOATS:
        converted = column.try_cast(target)
        return F.when(_within(converted, _BITS[given]), _there_and_back(column, converted, source))
    if given in _FLOATS and isinstance(target, T.DecimalType):
        return _there_and_back(column, _decimal_of(column, target), source)
    if isinstance(source, T.DecimalType) and wanted in _FLOATS:
        converted = column.try_cast(target)
        return F.when(_decimal_of(converted, source) == column, converted)
    return _there_and_back(column, column.try_cast(target), source)


def _within(floats: Column, bits: int) -> Column:
    return (floats >= F.lit(-(2.0**bits))) & (floats < F.lit(2.0**bits))  # NaN is larger than everything


def _decimal_of(floats: Column, target: T.DataType) -> Column:
    """Whole numbers digit by digit; fractions by the shortest text that means this float: 0.1 is 0.1."""
    whole = F.when(_within(floats, 63), floats.try_cast("bigint"))
    fraction = F.when(F.abs(floats) < F.lit(2.0**53), floats.cast("string").try_cast(target))
    return F.when(whole.cast("double") == floats.cast("double"), whole.try_cast(target)).otherwise(fraction)
