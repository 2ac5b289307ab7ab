"""Statistics may be wider than the truth, never narrower."""

from __future__ import annotations

import json
import tempfile
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lockgate.txlog.statistics import bounds, row_count, statistics_json

VALUES: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.float64(): st.floats(),
    pa.string(): st.text(alphabet=st.characters(codec="utf-8"), max_size=40),
    pa.date32(): st.dates(),
    pa.timestamp("us", "UTC"): st.datetimes(timezones=st.just(UTC)),
    pa.timestamp("us"): st.datetimes(),
    pa.decimal128(12, 3): st.decimals(-999999999, 999999999, places=3),
}


def written(table: pa.Table, **options: Any) -> str:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "x.parquet")
        pq.write_table(table, path, **options)
        return statistics_json(path, table.schema)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_every_value_lies_within_the_bounds(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(list(VALUES)))
    values = data.draw(st.lists(st.one_of(st.none(), VALUES[kind]), max_size=8))
    told = written(pa.table({"x": pa.array(values, kind)}), row_group_size=3)
    assert row_count(told) == len(values)
    assert json.loads(told)["nullCount"].get("x", 0) == values.count(None)
    found = bounds(told, {"x": kind}).get("x")
    if found is None:
        return
    low, high = found
    for value in values:
        if value is not None:
            if isinstance(value, str):
                assert low.encode() <= value.encode() <= high.encode()
            else:
                assert low <= value <= high


def test_the_text_is_what_delta_wants() -> None:
    table = pa.table(
        {
            "n": pa.array([1, 2], pa.int8()),
            "d": pa.array([Decimal("1.20"), Decimal("-3.00")], pa.decimal128(9, 2)),
            "t": pa.array([datetime(2026, 1, 1, 0, 0, 0, 1, UTC)] * 2, pa.timestamp("us", "UTC")),
            "day": pa.array([date(2026, 1, 1), None]),
            "s": pa.array([{"a": 1, "b": {"c": "x"}}, None]),
            "l": [[1], [2]],
            "b": [b"x", b"y"],
        }
    )
    assert written(table) == (
        '{"numRecords":2,'
        '"minValues":{"n":1,"d":-3.00,"t":"2026-01-01T00:00:00.000Z","day":"2026-01-01","s":{"a":1,"b":{"c":"x"}}},'
        '"maxValues":{"n":2,"d":1.20,"t":"2026-01-01T00:00:00.001Z","day":"2026-01-01","s":{"a":1,"b":{"c":"x"}}},'
        '"nullCount":{"n":0,"d":0,"t":0,"day":1,"s":{"a":1,"b":{"c":1}},"b":0}}'
    )


def test_long_texts_are_cut_so_that_the_bounds_hold() -> None:
    low, high = bounds(written(pa.table({"x": ["a" * 50, "z" * 50]})), {"x": pa.string()})["x"]
    assert low == "a" * 32
    assert high == "z" * 32 + "\U0010ffff" > "z" * 50
    highest = "\U0010ffff" * 40
    assert bounds(written(pa.table({"x": [highest]})), {"x": pa.string()})["x"][1] >= highest


@pytest.mark.parametrize("values", [[1.0, float("nan")], [float("inf"), 1.0], [float("nan")]])
def test_a_column_with_nan_or_infinity_has_no_bounds(values: list[float]) -> None:
    assert bounds(written(pa.table({"x": values})), {"x": pa.float64()}) == {}


def test_minus_zero_is_zero() -> None:
    low, high = bounds(written(pa.table({"x": [-0.0, 0.0]})), {"x": pa.float64()})["x"]
    assert low <= 0.0 <= high


@pytest.mark.parametrize(
    "text", [None, "", "{", "[]", '{"minValues":{"x":"a"},"maxValues":{"x":3}}', '{"numRecords":-1}']
)
def test_odd_statistics_prove_nothing(text: str | None) -> None:
    assert bounds(text, {"x": pa.int64()}) == {}
    assert row_count(text) is None


def test_a_file_of_another_type_has_no_bounds_for_it() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "x.parquet")
        pq.write_table(pa.table({"x": ["10", "9"]}), path)
        told = statistics_json(path, pa.schema({"x": pa.int64()}))
        assert json.loads(told)["minValues"] == {}
