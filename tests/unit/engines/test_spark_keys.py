"""Keys as Spark joins them: equal there where they are equal for every other engine."""

from __future__ import annotations

import math
from datetime import date, time
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from lockgate.engines.spark_keys import encoded, is_joined_as_it_is, spark_type
from lockgate.errors import SchemaMismatchError
from lockgate.merging.conversions import convertible
from lockgate.merging.key_index import KeyIndex
from lockgate.merging.lossless import cast_exactly

D = Decimal
INSTANTS = [-(2**62), -1, 0, 1, 1_700_000_000_000_000_001, 2**62]
WORDS = ["", "a", "A", "a ", "a\0", "é", "e\u0301", "日本", "x" * 5000 + "a", "x" * 5000 + "b"]
FLOATS = [0.0, -0.0, math.nan, -math.nan, 1.5, -2.25, math.inf, -math.inf]
NUMBERS: dict[pa.DataType, list[Any]] = {
    **{
        kind: [-(2 ** (kind.bit_width - 1)), -1, 0, 1, 2 ** (kind.bit_width - 1) - 1]
        for kind in (pa.int8(), pa.int16(), pa.int32(), pa.int64())
    },
    **{
        kind: [0, 1, 2 ** (kind.bit_width - 1), 2**kind.bit_width - 2, 2**kind.bit_width - 1]
        for kind in (pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64())
    },
    pa.float32(): [*FLOATS, 3.4e38, 1e-45],
    pa.float64(): [*FLOATS, 5e-324, 1.7e308, 2.0**53, 2.0**53 + 2],
    pa.decimal32(9, 2): [D("-1.00"), D("0"), D("9999999.99"), D("9999999.98")],
    pa.decimal64(18, 4): [D("-1"), D("0"), D("0.0001"), D("99999999999999.9999")],
    pa.decimal128(38, 0): [D(-1), D(0), D("9" * 38), D("9" * 37 + "8")],
    pa.decimal128(38, 38): [D("0." + "9" * 38), D("0." + "9" * 37 + "8"), D(0)],
    pa.decimal128(5, -2): [D("1E+2"), D("2E+2"), D("-1E+2")],
    pa.decimal256(76, 10): [D("9" * 66 + ".0000000001"), D("9" * 66 + ".0000000002"), D(0), D("-0.5")],
}
OTHERS: dict[pa.DataType, list[Any]] = {
    pa.bool_(): [True, False],
    pa.string(): WORDS,
    pa.large_string(): WORDS,
    pa.string_view(): WORDS,
    **{kind: [w.encode() for w in WORDS] + [b"\xff", b"\xff\x00"] for kind in (pa.binary(), pa.large_binary())},
    pa.binary_view(): [b"", b"\x00", b"\x00\x00", b"\xff" * 40],
    pa.binary(2): [b"\x00\x00", b"\x00\x01", b"\xff\xff"],
    pa.date32(): [date(1, 1, 1), date(1969, 12, 31), date(1970, 1, 1), date(9999, 12, 31)],
    pa.date64(): [date(1, 1, 1), date(1969, 12, 31), date(1970, 1, 1), date(9999, 12, 31)],
    pa.time32("s"): [time(0), time(0, 0, 1), time(23, 59, 59)],
    pa.time32("ms"): [time(0), time(0, 0, 0, 1000), time(23, 59, 59, 999000)],
    pa.time64("us"): [time(0), time(0, 0, 0, 1), time(23, 59, 59, 999999)],
    pa.time64("ns"): [0, 1, 2, 86_399_999_999_999],
    **{
        pa.timestamp(unit, zone): INSTANTS for unit in ("s", "ms", "us", "ns") for zone in (None, "UTC", "Asia/Kolkata")
    },
    **{pa.duration(unit): INSTANTS for unit in ("s", "ms", "us", "ns")},
    pa.dictionary(pa.int8(), pa.string()): WORDS,
    pa.dictionary(pa.int32(), pa.int64()): [1, 2, 2**53, 2**53 + 1],
    pa.uuid(): [b"0" * 16, b"\xff" * 16, b"0123456789abcdef"],
}
KEYS = NUMBERS | OTHERS
FLOAT16 = [0.0, -0.0, math.nan, 1.5, -65504.0, 65504.0]


def column_of(kind: pa.DataType, values: list[Any]) -> pa.Array:
    if pa.types.is_dictionary(kind):
        return pa.array(values, kind.value_type).dictionary_encode().cast(kind)
    if isinstance(kind, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(kind, pa.array(values, kind.storage_type))
    return pa.array(values, pa.float32()).cast(kind) if pa.types.is_float16(kind) else pa.array(values, kind)


def as_spark_sees_it(value: Any) -> Any:
    """Spark's own equality in a join: NaN equals NaN, -0.0 equals 0.0."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value + 0.0
    return value


ARROW_TYPES = {"boolean": pa.bool_(), "bigint": pa.int64(), "double": pa.float64(), "string": pa.string()}
ARROW_TYPES["binary"] = pa.binary()


@pytest.mark.parametrize("kind", [*KEYS, pa.float16()], ids=str)
def test_keys_are_equal_for_spark_where_they_are_for_the_index(kind: pa.DataType) -> None:
    values = FLOAT16 if pa.types.is_float16(kind) else KEYS[kind]
    column = column_of(kind, values)
    keys = [as_spark_sees_it(v) for v in encoded(column).to_pylist()]
    for i in range(len(values)):
        index = KeyIndex(pa.table({"k": column.slice(i, 1)}))
        found = [row is not None for row in index.find([column]).to_pylist()]
        assert found == [key == keys[i] for key in keys], values[i]


@pytest.mark.parametrize("kind", [*KEYS, pa.float16()], ids=str)
def test_keys_have_the_type_that_is_said(kind: pa.DataType) -> None:
    values = FLOAT16 if pa.types.is_float16(kind) else KEYS[kind]
    column = column_of(kind, values)
    said = spark_type(kind)
    wanted = ARROW_TYPES.get(said) or pa.decimal128(*map(int, said.removeprefix("decimal(").rstrip(")").split(",")))
    for given_column in (column, pa.chunked_array([column, column.slice(1)]), column.slice(0, 0)):
        assert encoded(given_column).type == wanted
    with_null = pa.concat_arrays([column, pa.nulls(1, column.type)]) if not isinstance(
        kind, pa.BaseExtensionType
    ) else column  # fmt: skip
    assert encoded(with_null).null_count == with_null.null_count


def lossy(given_type: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether some of our values of one type is lost in the other."""
    for value in KEYS[given_type]:
        column = pa.chunked_array([column_of(given_type, [value])])
        try:
            cast_exactly(column, wanted, "k")
        except SchemaMismatchError:
            return True
    return False


@pytest.mark.parametrize("given_type", KEYS, ids=str)
def test_nothing_is_joined_as_it_is_where_a_value_could_be_lost(given_type: pa.DataType) -> None:
    for wanted in KEYS:
        if is_joined_as_it_is(given_type, wanted) and convertible(given_type, wanted):
            assert not lossy(given_type, wanted), f"{given_type} to {wanted}"


@pytest.mark.parametrize("given_type", KEYS, ids=str)
def test_what_is_joined_as_it_is_is_the_key_that_the_dataset_has(given_type: pa.DataType) -> None:
    """Spark casts the source's column to the join's type; a file's column comes there by way of `encoded`."""
    for wanted in KEYS:
        if not (is_joined_as_it_is(given_type, wanted) and convertible(given_type, wanted)):
            continue
        for value in KEYS[given_type]:
            column = column_of(given_type, [value])
            there = encoded(cast_exactly(pa.chunked_array([column]), wanted, "k"))
            here = encoded(column).cast(there.type)
            assert as_spark_sees_it(here[0].as_py()) == as_spark_sees_it(there[0].as_py()), f"{given_type} to {wanted}"
