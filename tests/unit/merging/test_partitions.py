"""Test Hive partition parsing with various path formats, typed values, and folders written."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockgate.errors import SchemaMismatchError
from lockgate.merging.partitions import (
    column_texts,
    parse_hive_partition_path,
    partition_folder,
    typed_value,
    value_text,
)


@pytest.mark.parametrize(
    ("path", "values"),
    [
        ("/data/year=2024/month=12/file.parquet", {"year": "2024", "month": "12"}),
        ("s3://bucket/t/day=2025-01-01/f.parquet", {"day": "2025-01-01"}),
        ("day=1/f.parquet", {"day": "1"}),
        ("/data/file.parquet", {}),
        ("/data/day=1/a=b.parquet", {"day": "1"}),  # a file's name is no partition
        ("a=b.parquet", {}),
        ("day=1/", {"day": "1"}),
        ("city=New%2FYork/f", {"city": "New/York"}),
        ("a%3Db=c%25/f", {"a=b": "c%"}),
        ("eq=a=b/f", {"eq": "a=b"}),
        ("day=__HIVE_DEFAULT_PARTITION__/f", {"day": None}),
        ("day=/f", {"day": ""}),
        ("=x/f", {}),
        ("stadt=Köln/f", {"stadt": "Köln"}),
        ("stadt=K%C3%B6ln/f", {"stadt": "Köln"}),  # as pyarrow writes it
        ("stadt=K%F6ln/f", {"stadt": "Köln"}),  # no UTF-8: a character an escape
        ("bad=100%zz/f", {"bad": "100%zz"}),
        ("code=007/f", {"code": "007"}),
        ("_day=1/f", {"_day": "1"}),
    ],
)
def test_parsing_a_path(path: str, values: dict[str, Any]) -> None:
    assert parse_hive_partition_path(path) == values


def test_given_columns_restrict_and_order_the_result() -> None:
    path = "/env=prod/year=2024/month=12/f"
    assert list(parse_hive_partition_path(path, ["month", "year", "none"]).items()) == [
        ("month", "12"),
        ("year", "2024"),
    ]
    assert parse_hive_partition_path(path, []) == {}


BERLIN = pa.timestamp("us", "Europe/Berlin")


@pytest.mark.parametrize(
    ("text", "type", "value"),
    [
        ("007", pa.int32(), 7),
        ("-7", pa.int8(), -7),
        ("18446744073709551615", pa.uint64(), 2**64 - 1),
        ("true", pa.bool_(), True),
        ("False", pa.bool_(), False),
        ("1.5", pa.float64(), 1.5),
        ("1.0E10", pa.float64(), 1e10),
        ("-Infinity", pa.float64(), -math.inf),
        ("2026-01-01", pa.date32(), date(2026, 1, 1)),
        ("2026-01-01", pa.date64(), date(2026, 1, 1)),
        ("2026-01-01 10:00:00", pa.timestamp("us"), datetime(2026, 1, 1, 10)),
        ("2026-01-01T10:00:00.5", pa.timestamp("ms"), datetime(2026, 1, 1, 10, 0, 0, 500_000)),
        ("2026-01-01", pa.timestamp("s"), datetime(2026, 1, 1)),
        ("2026-01-01 10:00:00", pa.timestamp("us", "UTC"), datetime(2026, 1, 1, 10, tzinfo=UTC)),
        ("2026-01-01 10:00:00+02:00", pa.timestamp("us", "UTC"), datetime(2026, 1, 1, 8, tzinfo=UTC)),
        ("2026-07-01 10:00:00", BERLIN, datetime(2026, 7, 1, 8, tzinfo=UTC)),
        ("2026-07-01 10:00:00Z", BERLIN, datetime(2026, 7, 1, 10, tzinfo=UTC)),
        ("1970-01-01 00:00:00.000000001", pa.timestamp("ns"), 1),
        ("1969-12-31 23:59:59.5", pa.timestamp("ns"), datetime(1969, 12, 31, 23, 59, 59, 500_000)),
        ("10:20:30.5", pa.time64("us"), time(10, 20, 30, 500_000)),
        ("1.5", pa.decimal128(5, 2), Decimal("1.50")),
        ("007", pa.string(), "007"),
        (" x ", pa.large_string(), " x "),
        ("x", pa.dictionary(pa.int32(), pa.string()), "x"),
        ("ab", pa.binary(), b"ab"),
        (None, pa.int32(), None),
    ],
)
def test_a_text_as_a_typed_value(text: str | None, type: pa.DataType, value: Any) -> None:
    found = typed_value(text, type, "c")
    assert found == value
    value_type = type.value_type if pa.types.is_dictionary(type) else type
    assert pa.array([found], value_type).null_count == (text is None)  # Arrow takes it back


@pytest.mark.parametrize(
    ("text", "type"),
    [
        ("x", pa.int32()),
        ("1.0", pa.int32()),
        ("1_0", pa.int32()),
        ("٣", pa.int32()),
        ("300", pa.int8()),
        ("-1", pa.uint8()),
        ("", pa.int32()),
        ("yes", pa.bool_()),
        ("1_0.5", pa.float64()),
        ("20260101", pa.date32()),
        ("2026-02-30", pa.date32()),
        ("2026-01-01 10:00", pa.date32()),
        ("2026-01-01 25:00:00", pa.timestamp("us")),
        ("2026-01-01 ", pa.timestamp("us")),
        ("2026-01-01 10:00:00.5", pa.timestamp("s")),
        ("2026-01-01 10:00:00.0000001", pa.timestamp("us")),
        ("2026-01-01 10:00:00Z", pa.timestamp("us")),
        ("9999-01-01 00:00:00", pa.timestamp("ns")),
        ("1.555", pa.decimal128(5, 2)),
        ("12345", pa.decimal128(5, 2)),
        ("NaN", pa.decimal128(5, 2)),
        ("abc", pa.binary(2)),
        ("x", pa.null()),
        ("1", pa.list_(pa.int32())),
    ],
)
def test_a_text_that_is_no_value_of_the_type_is_refused(text: str, type: pa.DataType) -> None:
    with pytest.raises(SchemaMismatchError) as caught:
        typed_value(text, type, "the_column")
    assert "the_column" in str(caught.value)
    assert f"={text} " in str(caught.value)
    assert str(type) in str(caught.value)
    assert caught.value.hint


def test_values_as_texts() -> None:
    assert [
        value_text(v)
        for v in (None, True, 7, 1.5, -0.0, math.nan, -math.inf, Decimal("1E+3"), date(26, 1, 1), b"\xc3\xb6", "x")
    ] == [None, "true", "7", "1.5", "0.0", "NaN", "-Infinity", "1000", "0026-01-01", "ö", "x"]
    assert value_text(datetime(2026, 1, 1, 10, 0, 0, 120_000)) == "2026-01-01 10:00:00.12"
    assert value_text(time(1, 2, 3, 40)) == "01:02:03.00004"


def test_binary_that_is_no_text_cannot_be_a_folder() -> None:
    with pytest.raises(SchemaMismatchError, match="binary"):
        column_texts(pa.array([b"\xff"]))


def test_a_column_as_texts_keeps_nanoseconds_nulls_and_dictionaries() -> None:
    assert column_texts(pa.array([1, None], pa.timestamp("ns"))) == ["1970-01-01 00:00:00.000000001", None]
    assert column_texts(pa.array([1], pa.time64("ns"))) == ["00:00:00.000000001"]
    assert column_texts(pa.array(["b", None, "a"]).dictionary_encode()) == ["b", None, "a"]
    assert column_texts(pa.chunked_array([[1], [2]])) == ["1", "2"]


TYPED_VALUES = st.one_of(
    st.tuples(st.just(pa.int64()), st.integers(-(2**63), 2**63 - 1)),
    st.tuples(st.just(pa.uint64()), st.integers(0, 2**64 - 1)),
    st.tuples(st.just(pa.float64()), st.floats(allow_nan=False)),
    st.tuples(st.just(pa.float32()), st.floats(width=32, allow_nan=False)),
    st.tuples(st.just(pa.bool_()), st.booleans()),
    st.tuples(st.just(pa.date32()), st.dates()),
    st.tuples(st.just(pa.timestamp("us")), st.datetimes()),
    st.tuples(st.just(pa.timestamp("us", "UTC")), st.datetimes(timezones=st.just(UTC))),
    st.tuples(st.just(BERLIN), st.datetimes(datetime(1950, 1, 1), timezones=st.just(UTC))),
    st.tuples(st.just(pa.timestamp("ns")), st.integers(-(2**62), 2**62)),
    st.tuples(st.just(pa.time64("us")), st.times()),
    st.tuples(
        st.just(pa.decimal128(30, 6)), st.decimals(allow_nan=False, min_value=-(10**20), max_value=10**20, places=6)
    ),
    st.tuples(st.just(pa.string()), st.text(st.characters(exclude_categories=("Cs",)), min_size=1)),
    st.tuples(st.just(pa.binary()), st.text(min_size=1).map(lambda s: s.encode("utf-8", "ignore")).filter(bool)),
)


@given(TYPED_VALUES)
def test_what_is_written_is_read_back(typed: tuple[pa.DataType, Any]) -> None:
    type, value = typed
    array = pa.array([value], type)
    folder = partition_folder(["c"], column_texts(array))
    text = parse_hive_partition_path(folder + "/f.parquet")["c"]
    assert pa.array([typed_value(text, type, "c")], type).equals(array) or value == 0


def test_folders_are_escaped_as_hive_does() -> None:
    assert partition_folder(["day", "city"], ["2026-01-01", "New/York"]) == "day=2026-01-01/city=New%2FYork"
    assert partition_folder(["c"], ["a\x01\"#%'*/:=?\\{[]^\x7f}é x"]) == (
        "c=a%01%22%23%25%27%2A%2F%3A%3D%3F%5C%7B%5B%5D%5E%7F}é x"
    )
    assert partition_folder(["a=b"], [None]) == "a%3Db=__HIVE_DEFAULT_PARTITION__"
    assert partition_folder([], []) == ""


@pytest.mark.parametrize("text", ["", "__HIVE_DEFAULT_PARTITION__"])
def test_a_text_that_readers_take_for_null_is_refused(text: str) -> None:
    with pytest.raises(SchemaMismatchError, match=r"city.*NULL"):
        partition_folder(["city"], [text])


def test_a_folder_that_readers_would_not_see_is_refused() -> None:
    with pytest.raises(SchemaMismatchError, match="hidden"):
        partition_folder([".city"], ["x"])
