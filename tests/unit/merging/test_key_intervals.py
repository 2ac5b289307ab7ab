"""An interval of keys never excludes a row group that holds a key of the interval."""

from __future__ import annotations

import io
import math
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lockgate.merging.key_index import KeyIndex
from lockgate.merging.key_intervals import KeyIntervals

DOMAINS: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "int8": (pa.int8(), st.integers(-128, 127)),
    "int64": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "uint64": (pa.uint64(), st.integers(0, 2**64 - 1)),
    "bool": (pa.bool_(), st.booleans()),
    "text": (pa.string(), st.text(alphabet="ab\u00e9\uffff\U0001f600\0", max_size=4)),
    "long text": (
        pa.string(),
        st.builds(lambda a, b, n: a * n + b, st.sampled_from("ab"), st.text("ab", max_size=2), st.integers(0, 70)),
    ),
    "binary": (pa.binary(), st.binary(max_size=4)),
    "fixed binary": (pa.binary(3), st.binary(min_size=3, max_size=3)),
    "date": (pa.date32(), st.dates()),
    "date64": (pa.date64(), st.dates()),
    "timestamp": (pa.timestamp("us"), st.datetimes()),
    "instant": (pa.timestamp("us", "UTC"), st.datetimes()),
    "timestamp ms": (pa.timestamp("ms"), st.integers(-(2**40), 2**40)),
    "timestamp ns": (pa.timestamp("ns"), st.integers(-(2**62), 2**62)),
    "time": (pa.time64("us"), st.times()),
    "decimal": (pa.decimal128(9, 2), st.decimals(-9_999_999, 9_999_999, places=2)),
    "wide decimal": (pa.decimal128(38, 4), st.decimals(-(10**30), 10**30, places=4)),
    "decimal256": (pa.decimal256(60, 2), st.decimals(-(10**50), 10**50, places=2)),
    "float": (pa.float64(), st.one_of(st.floats(), st.sampled_from([0.0, -0.0, math.nan]))),
    "float32": (pa.float32(), st.one_of(st.floats(width=32), st.sampled_from([0.0, -0.0, math.nan]))),
}


def footer_of(column: pa.Array, size: int, **options: Any) -> pq.FileMetaData:
    file = io.BytesIO()
    pq.write_table(pa.table({"k": column}), file, row_group_size=size, **options)
    return pq.read_metadata(file)


def order_of(value: Any) -> Any:
    return value.encode() if isinstance(value, str) else value


def interval(keys: list[Any], kind: pa.DataType) -> KeyIntervals:
    """As the bounds come from a source: NaN is the greatest where there is one."""
    ordered = sorted((k for k in keys if k == k), key=order_of) + [k for k in keys if k != k]
    return KeyIntervals(pa.table({"k": pa.array([ordered[0], ordered[-1]], kind)}))


@pytest.mark.parametrize("domain", DOMAINS)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_no_row_group_with_a_key_is_left_out(domain: str, data: st.DataObject) -> None:
    kind, values = DOMAINS[domain]
    column = pa.array(data.draw(st.lists(st.one_of(values, st.none()), min_size=1, max_size=12)), kind)
    keys = data.draw(st.lists(values, min_size=1, max_size=6))
    present = [value for value in column.to_pylist() if value is not None]
    if present and not pa.types.is_timestamp(kind):  # so that they meet
        keys += data.draw(st.lists(st.sampled_from(present), max_size=2))
    if pa.types.is_timestamp(kind) or pa.types.is_date64(kind):
        keys = pa.array(keys, kind).cast(pa.int64()).to_pylist()
        picked = column.drop_null().cast(pa.int64()).to_pylist()
        keys += picked[:1]
        footer_column, key_column = column, pa.array(keys, pa.int64()).cast(kind)
        bounds = KeyIntervals(pa.table({"k": pa.array([min(keys), max(keys)], pa.int64()).cast(kind)}))
    else:
        footer_column, key_column = column, pa.array(keys, kind)
        bounds = interval(keys, kind)
    size = data.draw(st.integers(1, 4))
    footer = footer_of(
        footer_column,
        size,
        write_statistics=data.draw(st.booleans()),
        store_decimal_as_integer=data.draw(st.booleans()),
    )
    found = bounds.candidate_row_groups(footer, "x", {})
    distinct = key_column.take(pa.array(KeyIndex(pa.table({"k": key_column})).duplicated_rows(0), pa.int64()))
    assert len(distinct) == 0
    index = KeyIndex(pa.table({"k": key_column}))
    by_code = KeyIndex(pa.table({"k": key_column.filter(first_of_each(index))}))
    rows = by_code.find([column]).to_pylist()
    for number in range(footer.num_row_groups):
        if any(row is not None for row in rows[number * size : (number + 1) * size]):
            assert number in found


def first_of_each(index: KeyIndex) -> pa.Array:
    seen: set[int] = set()
    mask = []
    for code in index.codes.to_pylist():
        mask.append(code not in seen)
        seen.add(code)
    return pa.array(mask, pa.bool_())


@settings(max_examples=200, deadline=None)
@given(
    values=st.lists(st.binary(max_size=6), min_size=1, max_size=4),
    keys=st.lists(st.binary(max_size=6), min_size=1, max_size=4),
    cut=st.integers(0, 6),
)
@example(values=[b"bcd"], keys=[b"bcz"], cut=2)
def test_bounds_that_were_cut_short(values: list[bytes], keys: list[bytes], cut: int) -> None:
    """Some writers cut bounds. Nobody says so; such a file is simulated by one that holds the cut bounds themselves."""
    low, high = min(values)[:cut], max(values)[:cut]
    footer = footer_of(pa.array([low, high], pa.binary()), 2)
    found = interval(keys, pa.binary()).candidate_row_groups(footer, "x", {})
    if any(min(keys) <= value <= max(keys) for value in values):
        assert found == (0,)


@pytest.mark.parametrize(
    ("kind", "values", "keys", "expected"),
    [
        (pa.int64(), [1, 2, 5, 6, 8, 9], [4, 7], (1,)),
        (pa.string(), ["a", "b", "m", "n", "y", "z"], ["c", "o"], (1,)),
        (pa.binary(), [b"\x01", b"\x02", b"\x80", b"\xff"], [b"\x90", b"\x91"], (1,)),
        (pa.date32(), [date(2026, 1, d) for d in (1, 2, 5, 6)], [date(2026, 1, 4), date(2026, 1, 5)], (1,)),
        (pa.timestamp("us"), [datetime(2026, 1, d) for d in (1, 2, 5, 6)], [datetime(2026, 1, 6)] * 2, (1,)),
        (pa.decimal128(5, 2), [Decimal(n) for n in (-9, -1, 1, 9)], [Decimal("0.99"), Decimal("1")], (1,)),
        (pa.float64(), [1.0, 2.0, 5.0, 6.0], [5.5, 5.5], (1,)),
        (pa.float64(), [1.0, 2.0, 5.0, 6.0], [5.5, math.nan], (0, 1)),
        (pa.float64(), [1.0, 2.0, -0.0, -0.0], [0.0, 0.0], (1,)),
    ],
)
def test_the_others_are_left_out(kind: pa.DataType, values: list[Any], keys: list[Any], expected: Any) -> None:
    footer = footer_of(pa.array(values, kind), 2)
    assert KeyIntervals(pa.table({"k": pa.array(keys, kind)})).candidate_row_groups(footer, "x", {}) == expected


def test_several_columns_and_folders() -> None:
    file = io.BytesIO()
    pq.write_table(pa.table({"a": [1, 2, 5, 6], "b": ["x", "y", "x", "y"]}), file, row_group_size=2)
    footer = pq.read_metadata(file)
    bounds = KeyIntervals(pa.table({"a": [5, 9], "b": ["a", "z"], "day": ["1", "2"]}))
    assert bounds.candidate_row_groups(footer, "x", {"day": "1"}) == (1,)
    assert bounds.candidate_row_groups(footer, "x", {"day": None}) == ()  # NULL matches nothing
    assert KeyIntervals(pa.table({"a": [5, 9], "b": ["z", "zz"]})).candidate_row_groups(footer, "x", {}) == ()


def test_no_keys_at_all() -> None:
    footer = footer_of(pa.array([1, 2]), 2)
    nothing = KeyIntervals(pa.table({"k": pa.array([None, None], pa.int64())}))
    assert nothing.candidate_row_groups(footer, "x", {}) == ()
