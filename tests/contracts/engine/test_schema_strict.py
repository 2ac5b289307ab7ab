"""schema="strict": the same columns by name, and types that fit without losing a value."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from contracts.engine.dataset import STRATEGIES, Dataset, ids
from lockgate.errors import SchemaMismatchError

D = Decimal


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_an_extra_column_is_refused_by_name(dataset: Dataset, strategy: str) -> None:
    dataset.add("a.parquet", ids(1))
    before = dataset.contents()
    with pytest.raises(SchemaMismatchError, match="colour"):
        dataset.merge(ids(1, 2).append_column("colour", pa.array(["r", "g"])), strategy)
    assert dataset.contents() == before


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_missing_column_is_refused_by_name(dataset: Dataset, strategy: str) -> None:
    dataset.add("a.parquet", ids(1))
    before = dataset.contents()
    with pytest.raises(SchemaMismatchError, match='"x"'):
        dataset.merge(ids(1, 2).select(["id"]), strategy)
    assert dataset.contents() == before


def test_a_column_spelled_in_another_case_is_another_column(dataset: Dataset) -> None:
    dataset.add("a.parquet", ids(1))
    with pytest.raises(SchemaMismatchError, match="X"):
        dataset.merge(ids(1).rename_columns(["id", "X"]))


def test_a_column_that_the_source_has_twice_is_refused(dataset: Dataset) -> None:
    dataset.add("a.parquet", ids(1))
    twice = pa.Table.from_arrays([pa.array([1]), pa.array(["a"]), pa.array(["b"])], names=["id", "x", "x"])
    with pytest.raises(SchemaMismatchError, match="x"):
        dataset.merge(twice)


LOSSLESS = {
    "int64 to int8": (pa.int8(), pa.array([127], pa.int64()), 127),
    "int8 to int64": (pa.int64(), pa.array([-7], pa.int8()), -7),
    "uint64 to int64": (pa.int64(), pa.array([2**62], pa.uint64()), 2**62),
    "int64 to float": (pa.float64(), pa.array([2**60], pa.int64()), 2.0**60),
    "float to int64": (pa.int64(), pa.array([3.0]), 3),
    "double to float": (pa.float32(), pa.array([0.5]), 0.5),
    "string to large_string": (pa.large_string(), pa.array(["é"]), "é"),
    "dictionary to string": (pa.string(), pa.array(["a"]).dictionary_encode(), "a"),
    "decimal to a wider one": (pa.decimal128(12, 4), pa.array([D("1.25")], pa.decimal128(5, 2)), D("1.2500")),
    "int64 to decimal": (pa.decimal128(10, 2), pa.array([12]), D("12.00")),
    "us to ms": (pa.timestamp("ms"), pa.array([datetime(2026, 1, 1)], pa.timestamp("us")), datetime(2026, 1, 1)),
    "midnight to date": (pa.date32(), pa.array([datetime(2026, 1, 1)], pa.timestamp("us")), date(2026, 1, 1)),
    "all NULL to string": (pa.string(), pa.nulls(1), None),
    "list of int32 to list of int64": (pa.list_(pa.int64()), pa.array([[1, 2]], pa.list_(pa.int32())), [1, 2]),
}


@pytest.mark.parametrize("case", LOSSLESS)
def test_a_type_is_cast_when_no_value_is_lost(dataset: Dataset, case: str) -> None:
    kind, values, expected = LOSSLESS[case]
    schema = pa.schema([("id", pa.int64()), ("x", kind)])
    dataset.add("a.parquet", pa.Table.from_arrays([pa.array([1]), pa.nulls(1, kind)], schema=schema))

    dataset.merge(pa.table({"id": pa.array([1]), "x": values}), "update")

    assert dataset.rows() == [{"id": 1, "x": expected}]
    assert pq.read_schema(dataset.files()[0]).field("x").type == kind


LOSSY = {
    "int64 to int8": (pa.int8(), pa.array([1, 128]), "128"),
    "float to int64": (pa.int64(), pa.array([1.0, 2.5]), "2.5"),
    "int64 to float": (pa.float64(), pa.array([1, 2**53 + 1]), str(2**53 + 1)),
    "double to float": (pa.float32(), pa.array([0.5, 0.1]), "0.1"),
    "negative to unsigned": (pa.uint32(), pa.array([1, -1]), "-1"),
    "decimal to fewer digits": (pa.decimal128(5, 1), pa.array([D("1.10"), D("1.25")]), "1.25"),
    "timestamp to date": (
        pa.date32(),
        pa.array([datetime(2026, 1, 1), datetime(2026, 1, 1, 10, 30)]),
        "10, 30",
    ),
    "us to s": (pa.timestamp("s"), pa.array([datetime(2026, 1, 1), datetime(2026, 1, 1, 0, 0, 0, 5)]), "5"),
    "text to number": (pa.int64(), pa.array(["1", "2"]), "string"),
    "number to text": (pa.string(), pa.array([1, 2]), "int64"),
}


@pytest.mark.parametrize("case", LOSSY)
def test_a_value_that_would_be_lost_is_shown(dataset: Dataset, case: str) -> None:
    kind, values, shown = LOSSY[case]
    schema = pa.schema([("id", pa.int64()), ("measure", kind)])
    dataset.add("a.parquet", pa.Table.from_arrays([pa.array([1]), pa.nulls(1, kind)], schema=schema))
    before = dataset.contents()

    with pytest.raises(SchemaMismatchError) as refused:
        dataset.merge(pa.table({"id": pa.array([1, 2]), "measure": values}), "upsert")

    assert "measure" in refused.value.message
    assert shown in refused.value.message
    assert dataset.contents() == before


def test_null_into_a_column_that_may_not_be_null(dataset: Dataset) -> None:
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("x", pa.string(), nullable=False)])
    dataset.add("a.parquet", ids(1).cast(schema))
    with pytest.raises(SchemaMismatchError, match='"x"'):
        dataset.merge(pa.table({"id": [1], "x": pa.array([None], pa.string())}))
