from __future__ import annotations

import datetime as dt
import math
import mmap
from decimal import Decimal as D
from decimal import localcontext
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lockgate.errors import SchemaMismatchError
from lockgate.merging.conversions import convertible
from lockgate.merging.lossless import cast_exactly

NAN, INF = math.nan, math.inf
BIG = 2**53 + 1
SHORTLY = dt.datetime(2024, 1, 1, 0, 0, 0, 7)
FILLED = pa.struct([pa.field("a", pa.int8(), nullable=False)])
POINT = pa.struct([("x", pa.int32()), ("y", pa.string())])
TNOYP = pa.struct([("y", pa.large_string()), ("x", pa.int64())])


def cast(values: list[Any], source: pa.DataType, to: pa.DataType) -> list[Any]:
    column = cast_exactly(pa.chunked_array([pa.array(values, source)]), to, "c")
    column.validate(full=True)
    assert column.type == to
    result: list[Any] = column.to_pylist()
    return result


FITS = [
    # numbers
    ([1, None, -128], pa.int64(), pa.int8()),
    ([2**64 - 1], pa.uint64(), pa.decimal128(20, 0)),
    ([2.0, -0.0, None], pa.float64(), pa.int32()),
    ([2**60, -(2**63), 2**53 + 2], pa.int64(), pa.float64()),
    ([2**63], pa.uint64(), pa.float32()),
    ([2048], pa.int64(), pa.float16()),
    ([1.5, INF, -INF, None], pa.float64(), pa.float32()),
    ([1.5], pa.float16(), pa.float64()),
    ([2.0], pa.float16(), pa.int8()),
    ([D("1.50"), None], pa.decimal128(5, 2), pa.decimal128(5, 1)),
    ([D("1.5")], pa.decimal256(60, 1), pa.decimal32(2, 1)),
    ([D("9.00")], pa.decimal128(10, 2), pa.int8()),
    ([D("5.00")], pa.decimal32(6, 2), pa.int64()),
    ([7], pa.int64(), pa.decimal128(3, 2)),
    ([120], pa.int64(), pa.decimal128(5, -1)),
    ([0.125, 1e22, None], pa.float64(), pa.decimal128(38, 3)),
    ([2.0**60, 2.0**100, 0.5], pa.float64(), pa.decimal256(50, 5)),
    ([2.0**27], pa.float32(), pa.decimal128(38, 0)),
    ([D(2**27)], pa.decimal128(38, 0), pa.float32()),
    ([D(2**100), D(2**60)], pa.decimal256(50, 5), pa.float64()),
    ([5, 10**9 - 1], pa.int64(), pa.decimal32(9, 0)),
    ([D("0.5")], pa.decimal128(10, 1), pa.float16()),
    # text and bytes, dictionaries
    (["a", None, ""], pa.string(), pa.large_string()),
    (["a", None], pa.large_string(), pa.string()),
    (["a", None], pa.string_view(), pa.string()),
    (["a", None], pa.string(), pa.string_view()),
    (["a", "b", "a", None], pa.string(), pa.dictionary(pa.int8(), pa.large_string())),
    (["a", "b", "a", None], pa.dictionary(pa.int32(), pa.string()), pa.string()),
    (["a", "b"], pa.dictionary(pa.int32(), pa.string()), pa.dictionary(pa.uint8(), pa.string(), ordered=True)),
    ([1, 2, None], pa.dictionary(pa.int8(), pa.int64()), pa.int16()),
    ([b"ab", None], pa.binary(), pa.binary(2)),
    ([b"ab", None], pa.binary(2), pa.large_binary()),
    ([b"ab"], pa.binary_view(), pa.binary()),
    # time
    ([dt.datetime(2024, 1, 2, 3)], pa.timestamp("us"), pa.timestamp("s")),
    ([dt.datetime(2024, 1, 2, 3), None], pa.timestamp("us"), pa.timestamp("ms")),
    ([dt.date(2024, 1, 2), None], pa.date32(), pa.date64()),
    ([dt.date(2024, 1, 2), None], pa.date64(), pa.date32()),
    ([dt.time(1, 2, 3)], pa.time64("us"), pa.time32("s")),
    ([dt.time(1, 2, 3)], pa.time32("s"), pa.time64("us")),
    ([dt.timedelta(seconds=3)], pa.duration("us"), pa.duration("s")),
    # nothing, nested
    ([None, None], pa.null(), pa.int8()),
    ([None], pa.null(), TNOYP),
    ([None, None], pa.int8(), pa.null()),
    ([[1, 2], None, [], [None]], pa.list_(pa.int64()), pa.list_(pa.int8())),
    ([[1, 2], None, []], pa.list_(pa.int64()), pa.large_list(pa.float64())),
    ([[1, 2], None], pa.list_(pa.int64(), 2), pa.list_(pa.int32())),
    ([[1, 2], None, [3, 4]], pa.large_list(pa.int64()), pa.list_(pa.int32(), 2)),
    ([{"x": 1, "y": "a"}, None, {"x": None, "y": None}], POINT, TNOYP),
    ([[{"x": 1, "y": "a"}, None], None], pa.list_(POINT), pa.list_(TNOYP)),
    ([[("a", 1), ("b", None)], None, []], pa.map_(pa.string(), pa.int64()), pa.map_(pa.large_string(), pa.int8())),
    ([b"x" * 16, None], pa.binary(16), pa.binary()),
]  # fmt: skip


@pytest.mark.parametrize(("values", "source", "to"), FITS, ids=lambda p: str(p)[:60])
def test_a_value_that_fits_is_cast(values: list[Any], source: pa.DataType, to: pa.DataType) -> None:
    assert cast(values, source, to) == values


LOST = [
    ([1, BIG], pa.int64(), pa.float64(), BIG),
    ([2**63 - 1], pa.int64(), pa.float64(), 2**63 - 1),
    ([2**64 - 1], pa.uint64(), pa.float64(), 2**64 - 1),
    ([2**31 - 1], pa.int32(), pa.float32(), 2**31 - 1),
    ([1, 70_000], pa.int64(), pa.float16(), 70_000),
    ([1.0, 1.5], pa.float64(), pa.int64(), 1.5),
    ([2.0**63], pa.float64(), pa.int64(), 2.0**63),
    ([2.0**31], pa.float32(), pa.int32(), 2.0**31),
    ([-1.0], pa.float64(), pa.uint8(), -1.0),
    ([NAN], pa.float64(), pa.int64(), NAN),
    ([INF], pa.float64(), pa.int64(), INF),
    ([NAN], pa.float64(), pa.decimal128(5, 1), NAN),
    ([1, 300], pa.int64(), pa.int8(), 300),
    ([-1], pa.int64(), pa.uint64(), -1),
    ([2**63], pa.uint64(), pa.int64(), 2**63),
    ([0.5, 0.1], pa.float64(), pa.float32(), 0.1),
    ([1e300], pa.float64(), pa.float32(), 1e300),
    ([D("1.55")], pa.decimal128(5, 2), pa.decimal128(5, 1), D("1.55")),
    ([D("99.0")], pa.decimal128(5, 1), pa.decimal128(2, 1), D("99.0")),
    ([D("1.5")], pa.decimal128(5, 1), pa.int64(), D("1.5")),
    ([1000], pa.int64(), pa.decimal128(5, 2), 1000),
    ([121], pa.int64(), pa.decimal128(5, -1), 121),
    ([2**31 - 1], pa.int32(), pa.decimal32(6, 3), 2**31 - 1),  # Arrow: -1.000
    ([0.12], pa.float64(), pa.decimal128(10, 1), 0.12),
    ([D(BIG)], pa.decimal128(20, 0), pa.float64(), D(BIG)),
    ([dt.datetime(2024, 1, 1, 5)], pa.timestamp("us"), pa.date32(), dt.datetime(2024, 1, 1, 5)),
    ([dt.datetime(2024, 1, 1, 0, 0, 7)], pa.timestamp("us"), pa.date64(), dt.datetime(2024, 1, 1, 0, 0, 7)),
    ([SHORTLY], pa.timestamp("us"), pa.timestamp("ms"), SHORTLY),
    ([dt.datetime(1, 1, 1)], pa.timestamp("us"), pa.timestamp("ns"), dt.datetime(1, 1, 1)),
    ([dt.date(9999, 1, 1)], pa.date32(), pa.timestamp("ns"), dt.date(9999, 1, 1)),
    ([dt.time(1, 2, 3, 4)], pa.time64("us"), pa.time32("ms"), dt.time(1, 2, 3, 4)),
    ([b"ab", b"abc"], pa.binary(), pa.binary(2), b"abc"),
    ([b"ab"], pa.binary(2), pa.binary(3), b"ab"),
    ([None, 1], pa.int8(), pa.null(), 1),
    ([[1], [1, 300]], pa.list_(pa.int64()), pa.list_(pa.int8()), [1, 300]),
    ([[1, 2], [1]], pa.list_(pa.int64()), pa.list_(pa.int64(), 2), [1]),
    ([{"a": 1}, {"a": 300}], pa.struct([("a", pa.int64())]), pa.struct([("a", pa.int8())]), {"a": 300}),
    ([[("a", 300)]], pa.map_(pa.string(), pa.int64()), pa.map_(pa.string(), pa.int8()), [("a", 300)]),
    ([[1], [None]], pa.list_(pa.int8()), pa.list_(pa.field("item", pa.int8(), nullable=False)), [None]),
    ([{"a": 1}, {"a": None}], pa.struct([("a", pa.int8())]), FILLED, {"a": None}),
]  # fmt: skip


@pytest.mark.parametrize(("values", "source", "to", "lost"), LOST, ids=lambda p: str(p)[:60])
def test_a_value_that_does_not_fit_is_refused(
    values: list[Any], source: pa.DataType, to: pa.DataType, lost: Any
) -> None:
    with pytest.raises(SchemaMismatchError) as caught:
        cast(values, source, to)
    message = caught.value.message
    assert '"c"' in message
    assert f"{source} does not fit into {to}" in message
    assert f"{lost!r} in row {len(values) - 1}" in message
    assert caught.value.in_place == "nothing was written"


UNRELATED = [
    (["1"], pa.string(), pa.int64()), ([1], pa.int64(), pa.string()), ([True], pa.bool_(), pa.int8()),
    ([1], pa.int8(), pa.bool_()), (["a"], pa.string(), pa.binary()), ([b"a"], pa.binary(), pa.string()),
    ([1], pa.int32(), pa.date32()), ([1], pa.int64(), pa.timestamp("us")), (["2024-01-01"], pa.string(), pa.date32()),
    ([1], pa.timestamp("us"), pa.timestamp("us", "UTC")), ([1], pa.timestamp("us", "UTC"), pa.timestamp("us")),
    ([1], pa.timestamp("us", "UTC"), pa.date32()), ([1], pa.date32(), pa.time32("s")),
    ([1], pa.int64(), pa.duration("s")),
    ([{"a": 1}], pa.struct([("a", pa.int8())]), pa.struct([("b", pa.int8())])),
    ([{"a": 1}], pa.struct([("a", pa.int8())]), pa.struct([("a", pa.int8()), ("b", pa.int8())])),
    ([["a"]], pa.list_(pa.string()), pa.list_(pa.int8())), ([[1]], pa.list_(pa.int8()), pa.int8()),
    ([{"a": 1}], pa.struct([("a", pa.int8())]), pa.map_(pa.string(), pa.int8())),
    (["1"], pa.dictionary(pa.int8(), pa.string()), pa.int8()),
]  # fmt: skip


@pytest.mark.parametrize(("values", "source", "to"), UNRELATED, ids=lambda p: str(p)[:60])
def test_another_kind_of_type_is_refused_even_if_the_value_would_parse(
    values: list[Any], source: pa.DataType, to: pa.DataType
) -> None:
    for some in (values, []):
        with pytest.raises(SchemaMismatchError) as caught:
            cast(some, source, to)
        assert str(source) in caught.value.message
        assert str(to) in caught.value.message


def test_equal_types_are_returned_as_they_are() -> None:
    column = pa.chunked_array([[1, 2]])
    assert cast_exactly(column, pa.int64(), "c") is column


def test_nan_stays_nan_among_floats() -> None:
    assert math.isnan(cast([NAN], pa.float64(), pa.float32())[0])
    assert math.isnan(cast([NAN], pa.float32(), pa.float64())[0])


def test_dates_and_local_timestamps_by_round_trip() -> None:
    midnight = dt.datetime(2024, 1, 2)
    assert cast([midnight, None], pa.timestamp("ns"), pa.date32()) == [midnight.date(), None]
    assert cast([midnight.date(), None], pa.date32(), pa.timestamp("us")) == [midnight, None]


def test_timestamps_of_another_zone_are_the_same_instant() -> None:
    noon = dt.datetime(2024, 7, 1, 12, tzinfo=dt.UTC)
    got = cast([noon], pa.timestamp("us", "UTC"), pa.timestamp("ms", "Europe/Zurich"))
    assert got == [noon]
    assert got[0].utcoffset() == dt.timedelta(hours=2)


def test_a_decimal_becomes_the_nearest_double() -> None:
    """Arrow's own cast makes 0.3 into 0.30000000000000004."""
    assert cast([D("0.3"), D("0.7"), D("1.1")], pa.decimal128(10, 1), pa.float64()) == [0.3, 0.7, 1.1]


def test_a_double_becomes_the_decimal_that_it_is_written_as() -> None:
    """Arrow's own cast makes 0.1 into 0.100000000000000006."""
    assert cast([0.1, 0.3, 1e-3], pa.float64(), pa.decimal128(38, 18)) == [D("0.1"), D("0.3"), D("0.001")]


def test_the_row_is_counted_over_all_chunks() -> None:
    column = pa.chunked_array([pa.array([1, 2]), pa.array([], pa.int64()), pa.array([3, 400, 500])])
    with pytest.raises(SchemaMismatchError, match="400 in row 3"):
        cast_exactly(column, pa.int8(), "c")


def test_a_long_value_is_cut() -> None:
    with pytest.raises(SchemaMismatchError) as caught:
        cast([b"x" * 1000], pa.binary(), pa.binary(2))
    assert len(caught.value.message) < 250


def test_a_moment_that_python_cannot_hold_is_still_named() -> None:
    with pytest.raises(SchemaMismatchError, match=r"00:00:00\.000000001 in row 0|in row 0"):
        cast([1], pa.timestamp("ns"), pa.timestamp("us"))
    with pytest.raises(SchemaMismatchError, match="in row 0"):
        cast([2**62], pa.timestamp("us"), pa.timestamp("ns"))


def test_slices_of_nested_columns() -> None:
    values = [[{"x": i, "y": str(i)}] if i % 3 else None for i in range(10)]
    array = pa.array(values, pa.list_(POINT)).slice(4, 5)
    got = cast_exactly(pa.chunked_array([array]), pa.large_list(TNOYP), "c")
    got.validate(full=True)
    assert got.to_pylist() == values[4:9]
    maps = pa.array([[("a", i)] if i % 3 else None for i in range(10)], pa.map_(pa.string(), pa.int64())).slice(4, 5)
    to = pa.map_(pa.string(), pa.int8())
    assert cast_exactly(pa.chunked_array([maps]), to, "c").to_pylist() == maps.to_pylist()


def test_what_lies_under_a_null_row_is_no_value() -> None:
    hidden = pa.StructArray.from_arrays([pa.array([300, 1])], names=["a"], mask=pa.array([True, False]))
    for nullable in (True, False):
        to = pa.struct([pa.field("a", pa.int8(), nullable=nullable)])
        assert cast_exactly(pa.chunked_array([hidden]), to, "c").to_pylist() == [None, {"a": 1}]


def test_null_inside_a_dictionary_is_null() -> None:
    column = pa.chunked_array([pa.DictionaryArray.from_arrays(pa.array([0, 1, 0]), pa.array(["a", None]))])
    assert cast_exactly(column, pa.string(), "c").to_pylist() == ["a", None, "a"]


def test_extension_types_by_their_storage() -> None:
    raw = pa.array([b"x" * 16, None], pa.binary(16))
    wrapped = cast_exactly(pa.chunked_array([raw]), pa.uuid(), "c")
    assert wrapped.type == pa.uuid()
    assert cast_exactly(wrapped, pa.binary(16), "c").to_pylist() == raw.to_pylist()
    assert not convertible(pa.uuid(), pa.bool8())
    assert not convertible(pa.uuid(), pa.int64())


def test_more_text_than_one_array_of_strings_can_address() -> None:
    """Each value fits, but the offsets of `string` end at 2 GiB: the column gets more chunks."""
    sparse = mmap.mmap(-1, 2**31 + 16)
    sparse[2**31 : 2**31 + 4] = b"abcd"
    offsets = pa.array([2**31, 2**31 + 2, 2**31 + 4], pa.int64())
    array = pa.LargeStringArray.from_buffers(2, offsets.buffers()[1], pa.py_buffer(sparse))
    assert cast_exactly(pa.chunked_array([array]), pa.string(), "c").to_pylist() == ["ab", "cd"]


def test_a_dictionary_too_small_for_all_values_is_split() -> None:
    values = [str(i) for i in range(300)]
    column = cast_exactly(pa.chunked_array([values]), pa.dictionary(pa.int8(), pa.string()), "c")
    assert column.to_pylist() == values


NUMBERS = [
    pa.int8(), pa.int32(), pa.int64(), pa.uint8(), pa.uint32(), pa.uint64(), pa.float32(), pa.float64(),
    pa.decimal128(10, 2), pa.decimal128(38, 0), pa.decimal256(50, 5), pa.decimal32(6, 3), pa.decimal64(12, 1),
]  # fmt: skip


def values_of(type_: pa.DataType) -> st.SearchStrategy[Any]:
    if pa.types.is_floating(type_):
        return st.one_of(
            st.floats(width=type_.bit_width, allow_nan=False),
            st.integers(-1000, 1000).map(float),
            st.sampled_from([2.0**31, 2.0**53, 2.0**63, 2.0**64, -(2.0**63), 0.5, 0.0, INF]),
        )
    if pa.types.is_decimal(type_):
        digits = 10**type_.precision - 1
        whole = st.one_of(st.integers(-digits, digits), st.integers(-9, 9).map(lambda i: i * 10**type_.scale))
        return whole.map(lambda i: D((int(i < 0), tuple(map(int, str(abs(i)))), -type_.scale)))
    low = -(2 ** (type_.bit_width - 1)) if pa.types.is_signed_integer(type_) else 0
    high = 2**type_.bit_width - 1 + low
    return st.one_of(st.integers(low, high), st.integers(max(low, -5), 100), st.just(high))


@st.composite
def numeric_columns(draw: st.DrawFn) -> tuple[list[Any], pa.DataType, pa.DataType]:
    source, to = draw(st.sampled_from(NUMBERS)), draw(st.sampled_from(NUMBERS))
    return draw(st.lists(st.one_of(st.none(), values_of(source)), max_size=5)), source, to


@settings(max_examples=400, deadline=None)
@given(numeric_columns())
def test_cast_exactly_never_changes_a_number(case: tuple[list[Any], pa.DataType, pa.DataType]) -> None:
    """And what it refuses could not be kept: the value at fault has no equal in the other type."""
    values, source, to = case
    kept = pa.array(values, source).to_pylist()
    try:
        got = cast(values, source, to)
    except SchemaMismatchError as refusal:
        lost = kept[int(refusal.message.rsplit(" ", 1)[1])]
        assert not holds(to, lost)
        return
    assert [v is None for v in got] == [v is None for v in kept]
    for before, after in zip(kept, got, strict=True):
        assert before == after or nearest(before, after, source, to)


def nearest(before: Any, after: Any, source: pa.DataType, to: pa.DataType) -> bool:
    """A decimal and a binary fraction are one value if each is the nearest to the other: 0.1. Not so whole numbers."""
    decimal, binary = (before, after) if pa.types.is_decimal(source) else (after, before)
    width = (to if pa.types.is_floating(to) else source).bit_width
    fraction = isinstance(binary, float) and isinstance(decimal, D) and not binary.is_integer()
    return fraction and rounded(float(decimal), width) == binary


def rounded(value: float, width: int) -> float:
    return float(pa.array([value], pa.float64()).cast(pa.float32())[0].as_py()) if width == 32 else value


def holds(type_: pa.DataType, value: Any) -> bool:
    """By Python's arithmetic, apart from Arrow's."""
    if isinstance(value, float) and not math.isfinite(value):
        return bool(pa.types.is_floating(type_))
    if pa.types.is_integer(type_):
        low = -(2 ** (type_.bit_width - 1)) if pa.types.is_signed_integer(type_) else 0
        return value == int(value) and low <= value <= 2**type_.bit_width - 1 + low
    if pa.types.is_decimal(type_):
        with localcontext(prec=400):
            as_text = isinstance(value, float) and not value.is_integer()
            scaled = D(repr(value) if as_text else value).scaleb(type_.scale)
            return bool(scaled == int(scaled) and abs(scaled) < 10**type_.precision)
    as_float = rounded(float(value), type_.bit_width)
    return math.isfinite(as_float) and D(as_float) == D(value)


MOMENTS = [pa.timestamp(unit) for unit in ("s", "ms", "us", "ns")] + [pa.date32(), pa.date64()]
STEPS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
DAY = 86_400 * 10**9


@settings(max_examples=200, deadline=None)
@given(
    st.sampled_from(MOMENTS),
    st.sampled_from(MOMENTS),
    st.integers(-(2**62), 2**62),
    st.sampled_from([1, 1000, 10**9, DAY]),
)
def test_cast_exactly_never_changes_a_moment(source: pa.DataType, to: pa.DataType, at: int, grain: int) -> None:
    nanoseconds = at // grain * grain
    step = DAY if pa.types.is_date(source) else STEPS[source.unit]
    nanoseconds = nanoseconds // step * step
    raw = nanoseconds // (10**6 if source == pa.date64() else step)
    storage = pa.array([raw], pa.int32() if source == pa.date32() else pa.int64())
    column = pa.chunked_array([storage.cast(source)])
    new_step = DAY if pa.types.is_date(to) else STEPS[to.unit]
    if nanoseconds % new_step:
        with pytest.raises(SchemaMismatchError):
            cast_exactly(column, to, "c")
        return
    got = cast_exactly(column, to, "c").chunk(0)
    number = got.cast(pa.int32() if to == pa.date32() else pa.int64())[0].as_py()
    assert number * (10**6 if to == pa.date64() else new_step) == nanoseconds
