"""Tables as DataFrames, where Spark's rows hold every value of them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from lockgate.engines.spark_session import settings


def as_frame(session: Any, source: Any) -> Any:
    """The source as a DataFrame, or the source itself if it is no table that Spark can hold."""
    if not isinstance(source, pa.Table) or not _is_named(source.column_names):
        return source
    if not all(_is_carried(kind) for kind in source.schema.types):
        return source
    columns = [c.cast(c.type.value_type) if pa.types.is_dictionary(c.type) else c for c in source.columns]
    plain = pa.table(columns, names=source.column_names)
    with settings(session, {"spark.sql.timestampType": "TIMESTAMP_NTZ"}):  # a time without a zone stays one
        return session.createDataFrame(plain)


def _is_named(names: list[str]) -> bool:
    """Spark takes neither two names that differ in case, nor an empty one."""
    return all(names) and len({name.casefold() for name in names}) == len(names)


def _is_carried(kind: pa.DataType) -> bool:
    """Whether Spark's rows hold every value of this type, and give it back as it was."""
    if isinstance(kind, pa.BaseExtensionType):
        return False
    if pa.types.is_dictionary(kind):
        return _is_carried(kind.value_type)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return _is_carried(kind.value_type)
    if pa.types.is_map(kind):
        return _is_carried(kind.key_type) and _is_carried(kind.item_type)
    if pa.types.is_struct(kind):
        fields = [kind.field(i) for i in range(kind.num_fields)]
        return bool(fields) and _is_named([f.name for f in fields]) and all(_is_carried(f.type) for f in fields)
    if pa.types.is_timestamp(kind):
        return bool(kind.unit == "us")
    if pa.types.is_decimal(kind):
        return bool(pa.types.is_decimal128(kind)) and 0 <= kind.scale <= kind.precision
    return bool(
        pa.types.is_signed_integer(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_float32(kind)
        or pa.types.is_float64(kind)
        or pa.types.is_date32(kind)
        or pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
    )
