"""Which Arrow type a column of a PostgreSQL table takes, and which column a new table gets for an Arrow type."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from lockgate.destinations.postgres_table import TableColumn
from lockgate.identifiers import double_quoted
from lockgate.merging.type_families import is_bytes, is_list, is_text

_UTC = "UTC"
_DIGITS = 76  # of Arrow's widest decimal
_HEADER = 4  # bytes that a typmod counts besides the length

_SIMPLE: dict[str, tuple[pa.DataType, str]] = {
    "bool": (pa.bool_(), "boolean"),
    "int2": (pa.int16(), "smallint"),
    "int4": (pa.int32(), "integer"),
    "int8": (pa.int64(), "bigint"),
    "float4": (pa.float32(), "real"),
    "float8": (pa.float64(), "double precision"),
    "date": (pa.date32(), "date"),
    "timestamp": (pa.timestamp("us"), "timestamp"),
    "timestamptz": (pa.timestamp("us", _UTC), "timestamptz"),
    "time": (pa.time64("us"), "time"),
    "text": (pa.string(), "text"),
    "varchar": (pa.string(), "text"),
    "bpchar": (pa.string(), "text"),
    "name": (pa.string(), "text"),
    "citext": (pa.string(), "text"),
    "bytea": (pa.binary(), "bytea"),
}


@dataclass(frozen=True)
class Fit:
    """How a source column goes into a column of the table."""

    arrow: pa.DataType  # what the rows are turned into, each value equal to what it was
    staged: str  # the type of the staging table's column
    cast: str | None = None  # what SQL turns it into; None: it needs nothing


def fit(source: pa.DataType, column: TableColumn) -> Fit | None:
    """None: nothing of this type goes into that column, whatever its values."""
    if column.element:
        return _array(source, column)
    known = _SIMPLE.get(column.type) if column.type_schema == "pg_catalog" or column.type == "citext" else None
    if known is not None:
        arrow, staged = known
        # Compared as what it is: "a" and "a  " are one character(5), "a" and "A" one citext.
        return Fit(arrow, staged, column.declared if column.type in ("bpchar", "citext", "name") else None)
    if column.type == "numeric" and column.type_schema == "pg_catalog":
        return _numeric(source, column)
    if pa.types.is_null(source) or is_text(_storage(source)):
        # What the server reads from text: uuid, json, jsonb, enums, inet, ranges, what extensions bring.
        return Fit(pa.string(), "text", column.declared)
    if column.type == "interval" and pa.types.is_duration(source):
        return Fit(pa.duration("us"), "interval")
    return None


def _numeric(source: pa.DataType, column: TableColumn) -> Fit | None:
    digits = precision_and_scale(column.typmod)
    if digits is not None:
        precision, scale = digits
        if precision <= _DIGITS and 0 <= scale <= precision:
            make = pa.decimal128 if precision <= 38 else pa.decimal256
            return Fit(make(precision, scale), "numeric")
        return None
    source = _storage(source)
    if pa.types.is_decimal(source):
        return Fit(source, "numeric")
    if pa.types.is_uint64(source):
        return Fit(pa.decimal128(20, 0), "numeric")
    if pa.types.is_integer(source):
        return Fit(pa.int64(), "bigint")
    if pa.types.is_floating(source):
        return Fit(pa.string(), "text", "numeric")  # by its shortest text: 0.1 is 0.1
    return Fit(pa.decimal128(38, 0), "numeric") if pa.types.is_null(source) else None


def _array(source: pa.DataType, column: TableColumn) -> Fit | None:
    source = _storage(source)
    if not is_list(source) and not pa.types.is_null(source):
        return None
    inside = source.value_type if is_list(source) else pa.null()
    if is_list(inside):
        return None
    element = TableColumn(**{
        **column.__dict__,
        "type": column.element,
        "type_schema": column.element_schema,
        "type_kind": column.element_kind,
        "element": "",
        "element_schema": "",
        "element_kind": "",
        "declared": column.declared.removesuffix("[]"),
    })  # fmt: skip
    found = fit(inside, element)
    if found is None:
        return None
    return Fit(pa.list_(found.arrow), f"{found.staged}[]", column.declared if found.cast else None)


def _storage(type_: pa.DataType) -> pa.DataType:
    return type_.value_type if pa.types.is_dictionary(type_) else type_


def precision_and_scale(typmod: int) -> tuple[int, int] | None:
    """Of a numeric column; None if it takes any number."""
    if typmod < _HEADER:
        return None
    packed = typmod - _HEADER
    scale = packed & 0x7FF
    return packed >> 16, scale - 2048 if scale >= 1024 else scale


def longest(column: TableColumn) -> int | None:
    """How many characters a text may have; None: any number."""
    bounded = (column.element or column.type) in ("varchar", "bpchar")
    return column.typmod - _HEADER if bounded and column.typmod >= _HEADER else None


def fraction_digits(column: TableColumn) -> int:
    """How many digits of a second the column keeps."""
    timed = (column.element or column.type) in ("timestamp", "timestamptz", "time")
    return column.typmod if timed and 0 <= column.typmod < 6 else 6


def declared(type_: pa.DataType) -> str | None:
    """The column of a new table that holds this type; None if there is none.

    >>> declared(pa.list_(pa.decimal128(10, 2)))
    'numeric(10,2)[]'
    """
    type_ = _storage(type_)
    if is_list(type_):
        inside = None if is_list(type_.value_type) else declared(type_.value_type)
        return f"{inside}[]" if inside else None
    if pa.types.is_decimal(type_):
        return f"numeric({type_.precision},{type_.scale})" if 0 <= type_.scale <= type_.precision else "numeric"
    if pa.types.is_timestamp(type_):
        return "timestamptz" if type_.tz else "timestamp"
    if pa.types.is_uint32(type_):
        return "bigint"
    if pa.types.is_uint64(type_):
        return "numeric(20,0)"
    if is_text(type_) or pa.types.is_null(type_):
        return "text"
    if is_bytes(type_):
        return "bytea"
    if pa.types.is_date(type_):
        return "date"
    if pa.types.is_time(type_):
        return "time"
    if pa.types.is_duration(type_):
        return "interval"
    widths = {pa.int8(): "smallint", pa.uint8(): "smallint", pa.uint16(): "integer", pa.float16(): "real"}
    return widths.get(type_) or next((sql for arrow, sql in _SIMPLE.values() if arrow == type_), None)


def new_column(name: str, type_: pa.DataType, *, required: bool = False) -> str:
    return f"{double_quoted(name)} {declared(type_)}{' NOT NULL' if required else ''}"
