"""The DuckDB type of a key holds every value of the Arrow type, or there is none."""

from __future__ import annotations

from datetime import date, datetime, time
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from lockgate.engines.duckdb_types import key_type

EXTREMES: dict[pa.DataType, list[Any]] = {
    pa.int8(): [-128, 127],
    pa.int16(): [-(2**15), 2**15 - 1],
    pa.int32(): [-(2**31), 2**31 - 1],
    pa.int64(): [-(2**63), 2**63 - 1],
    pa.uint8(): [0, 255],
    pa.uint16(): [0, 2**16 - 1],
    pa.uint32(): [0, 2**32 - 1],
    pa.uint64(): [0, 2**64 - 1],
    pa.float32(): [-3.4028234663852886e38, 1.401298464324817e-45],
    pa.float64(): [-1.7976931348623157e308, 5e-324],
    pa.string(): ["", "a\0b", "\U0010ffff"],
    pa.large_string(): ["", "é"],
    pa.binary(): [b"", bytes(range(256))],
    pa.large_binary(): [b"\x00"],
    pa.binary(2): [b"\x00\xff"],
    pa.bool_(): [True, False],
    pa.date32(): [date(1, 1, 1), date(9999, 12, 31)],
    pa.timestamp("s"): [datetime(1, 1, 1), datetime(9999, 12, 31)],
    pa.timestamp("ms"): [datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999000)],
    pa.timestamp("us"): [datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999999)],
    pa.timestamp("ns"): [-(2**63) + 1, 2**63 - 1],
    pa.timestamp("us", "UTC"): [datetime(1, 1, 1), datetime(9999, 12, 31)],
    pa.time64("us"): [time(0), time(23, 59, 59, 999999)],
    pa.decimal128(38, 0): [Decimal("9" * 38), Decimal("-" + "9" * 38)],
    pa.decimal128(18, 18): [Decimal("0.999999999999999999")],
}


@pytest.mark.parametrize("kind", EXTREMES, ids=str)
def test_the_largest_and_smallest_values_go_in_and_come_out(kind: pa.DataType) -> None:
    name = key_type(kind)
    if name is None:
        return  # such keys are looked up by Arrow
    keys = pa.table({"k": pa.array(EXTREMES[kind], kind)})
    with duckdb.connect() as connection:
        connection.register("keys", keys)
        back = connection.sql(f"SELECT CAST(k AS {name}) AS k FROM keys").to_arrow_table()
    assert back["k"].cast(kind).equals(keys["k"])


@pytest.mark.parametrize(
    "kind", [pa.decimal256(50, 2), pa.timestamp("ns", "UTC"), pa.float16(), pa.list_(pa.int8()), pa.null()], ids=str
)
def test_what_duckdb_cannot_hold_has_no_type(kind: pa.DataType) -> None:
    assert key_type(kind) is None
