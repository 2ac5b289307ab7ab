"""Keys of the source: NULL and repeated ones are refused before anything is written."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest

from contracts.engine.dataset import STRATEGIES, Dataset, ids, new
from lockgate.errors import DuplicateKeyError, NullKeyError, SchemaMismatchError

UNIQUE = [s for s in STRATEGIES if s != "deduplicate"]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_null_key_is_refused(dataset: Dataset, strategy: str) -> None:
    dataset.add("a.parquet", ids(1, 2))
    before = dataset.state()
    with pytest.raises(NullKeyError, match="id"):
        dataset.merge(new(2, None), strategy)
    assert dataset.state() == before


def test_a_null_key_error_is_a_value_error() -> None:
    assert issubclass(NullKeyError, ValueError)
    assert issubclass(DuplicateKeyError, ValueError)


def test_a_null_in_the_second_key_column_is_refused(dataset: Dataset) -> None:
    source = pa.table({"id": [1, 2], "day": pa.array([None, 1], pa.int64())})
    with pytest.raises(NullKeyError, match="day"):
        dataset.merge(source, key=["id", "day"])
    assert not dataset.root.exists()


def test_a_null_inside_a_dictionary_is_a_null_key(dataset: Dataset) -> None:
    values = pa.DictionaryArray.from_arrays(pa.array([0, 1]), pa.array(["a", None]))
    with pytest.raises(NullKeyError, match="id"):
        dataset.merge(pa.table({"id": values}))


@pytest.mark.parametrize("strategy", UNIQUE)
def test_a_repeated_key_is_refused_and_named(dataset: Dataset, strategy: str) -> None:
    dataset.add("a.parquet", ids(1, 2))
    before = dataset.state()
    with pytest.raises(DuplicateKeyError) as refused:
        dataset.merge(new(2, 71, 3, 71, 2), strategy)
    assert "71" in refused.value.message
    assert "2" in refused.value.message
    assert refused.value.in_place == "nothing was written"
    assert dataset.state() == before


def test_at_most_five_repeated_keys_are_named(dataset: Dataset) -> None:
    values = [*range(1000, 1009)] * 2
    with pytest.raises(DuplicateKeyError) as refused:
        dataset.merge(new(*values))
    assert sum(str(v) in refused.value.render() for v in range(1000, 1009)) == 5


def test_a_repeated_key_of_several_columns_is_refused(dataset: Dataset) -> None:
    source = pa.table({"id": [1, 1, 1], "day": ["mon", "tue", "mon"], "x": [1, 2, 3]})
    with pytest.raises(DuplicateKeyError, match="mon"):
        dataset.merge(source, key=["id", "day"])
    dataset.merge(source.slice(0, 2), key=["id", "day"])
    assert len(dataset.rows()) == 2


@pytest.mark.parametrize("pair", [(0.0, -0.0), (math.nan, -math.nan), (math.nan, math.nan)])
@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()])
def test_one_number_spelled_in_two_ways_is_a_repeated_key(
    dataset: Dataset, pair: tuple[float, float], kind: pa.DataType
) -> None:
    with pytest.raises(DuplicateKeyError):
        dataset.merge(pa.table({"id": pa.array(pair, kind), "x": [1, 2]}))


def test_a_missing_key_column_is_refused(dataset: Dataset) -> None:
    dataset.add("a.parquet", ids(1))
    with pytest.raises(SchemaMismatchError, match="idd"):
        dataset.merge(new(1), key="idd")


@pytest.mark.parametrize("key", [[], "", ["id", "id"], [1], None])
def test_a_key_that_is_no_list_of_names_is_refused(dataset: Dataset, key: object) -> None:
    with pytest.raises(ValueError):
        dataset.merge(new(1), key=key)
    assert not dataset.root.exists()


def test_a_list_cannot_be_a_key(dataset: Dataset) -> None:
    with pytest.raises(SchemaMismatchError, match="list"):
        dataset.merge(pa.table({"id": [[1], [2]]}))
