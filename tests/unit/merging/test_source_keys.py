from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal as D
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lockgate.errors import DuplicateKeyError, NullKeyError, PartitionMoveError, SchemaMismatchError
from lockgate.merging.source_keys import (
    deduplicated,
    refuse_duplicate_keys,
    validate_no_null_keys,
    validate_partition_column_immutability,
)

NAN = math.nan


def test_null_key_detection() -> None:
    """Reject merges where source has null keys."""
    table = pa.table({"a": [1, 2, 3], "b": ["x", None, None]})
    validate_no_null_keys(table, ["a"])
    with pytest.raises(NullKeyError, match='key column "b" is NULL in 2 of 3 source rows') as caught:
        validate_no_null_keys(table, ["a", "b"])
    assert isinstance(caught.value, ValueError)
    assert caught.value.in_place == "nothing was written"


def test_null_key_detection_looks_into_dictionaries_and_runs() -> None:
    words = pa.DictionaryArray.from_arrays(pa.array([0, 1]), pa.array(["a", None]))
    runs = pa.RunEndEncodedArray.from_arrays([1, 2], [1, None], pa.run_end_encoded(pa.int32(), pa.int64()))
    for column in (words, runs):
        with pytest.raises(NullKeyError):
            validate_no_null_keys(pa.table({"id": column}), "id")


def test_nan_is_a_key_and_an_empty_source_has_no_null() -> None:
    validate_no_null_keys(pa.table({"id": [NAN]}), "id")
    validate_no_null_keys(pa.table({"id": pa.array([], pa.int64())}), "id")


def test_a_missing_key_column_is_named() -> None:
    for check in (validate_no_null_keys, refuse_duplicate_keys, deduplicated):
        with pytest.raises(SchemaMismatchError, match='no key column "key"'):
            check(pa.table({"id": [1]}), "key")
        with pytest.raises(SchemaMismatchError, match="cannot be a key"):
            check(pa.table({"id": [[1]]}), "id")


@pytest.mark.parametrize(
    "twice",
    [
        pa.array([NAN, NAN]),
        pa.array([0.0, -0.0]),
        pa.array([0.0, -0.0], pa.float16()),
        pa.array(["a", "a"], pa.string_view()),
        pa.array(["a", "a"]).dictionary_encode(),
        pa.array([D("1.5"), D("1.5")], pa.decimal32(4, 1)),
        pa.array([b"a", b"a"], pa.binary(1)),
        pa.array([True, True]),
        pa.array([dt.date(2024, 1, 1)] * 2),
    ],
    ids=lambda a: str(a.type),
)
def test_two_source_rows_with_one_key_are_refused(twice: pa.Array) -> None:
    with pytest.raises(DuplicateKeyError, match="1 of 2 source rows repeats a key"):
        refuse_duplicate_keys(pa.table({"id": twice}), "id")
    assert deduplicated(pa.table({"id": twice, "n": [1, 2]}), "id")["n"].to_pylist() == [2]


def test_up_to_five_of_the_keys_are_named() -> None:
    table = pa.table({"id": [*range(8), *range(7)], "day": ["d"] * 15})
    with pytest.raises(DuplicateKeyError) as caught:
        refuse_duplicate_keys(table, ["id", "day"])
    named = "; ".join(f"id={i}, day='d'" for i in range(5))
    assert caught.value.message == f"7 of 15 source rows repeat a key: {named}"
    assert "deduplicate" in (caught.value.hint or "")
    refuse_duplicate_keys(table.slice(0, 8), ["id", "day"])


def test_the_composite_tuple_is_the_key() -> None:
    table = pa.table({"a": [1, 1, 2], "b": ["x", "y", "x"]})
    refuse_duplicate_keys(table, ["a", "b"])
    assert deduplicated(table, ["a", "b"]) is table
    with pytest.raises(DuplicateKeyError):
        refuse_duplicate_keys(table, "a")


def test_without_order_by_the_last_row_stays_in_source_order() -> None:
    table = pa.table({"id": [2, 1, 2, 3, 1], "n": [0, 1, 2, 3, 4]})
    assert deduplicated(table, "id")["n"].to_pylist() == [2, 3, 4]


def test_the_first_row_in_the_order_stays_and_of_equal_rows_the_later() -> None:
    table = pa.table({"id": [1, 1, 1, 2, 1], "at": [5, 9, 9, 1, 7], "n": [0, 1, 2, 3, 4]})
    assert deduplicated(table, "id", ["at DESC"])["n"].to_pylist() == [2, 3]
    assert deduplicated(table, "id", ["at DESC", "n"])["n"].to_pylist() == [1, 3]
    assert deduplicated(table, "id", "at")["n"].to_pylist() == [0, 3]


@pytest.mark.parametrize(
    ("order", "first"),
    [("x", None), ("x NULLS LAST", -1.0), ("x DESC", NAN), ("x DESC NULLS FIRST", None), ("x ASC NULLS FIRST", None)],
)
def test_null_and_nan_are_placed_as_in_spark(order: str, first: Any) -> None:
    """NaN is the largest value; NULL comes first in ascending order and last in descending order."""
    table = pa.table({"id": [1] * 5, "x": [math.inf, None, -1.0, NAN, 3.0]})
    [got] = deduplicated(table, "id", order)["x"].to_pylist()
    assert got == first or (got is not None and math.isnan(got) and first is not None and math.isnan(first))


@pytest.mark.parametrize(
    "values",
    [
        pa.array(["b", "a", None, "c"]),
        pa.array(["b", "a", None, "c"], pa.large_string()),
        pa.array(["b", "a", None, "c"], pa.string_view()),
        pa.array(["b", "a", None, "c"]).dictionary_encode(),
        pa.array([b"b", b"a", None, b"c"]),
        pa.array([D("2.5"), D("-1.0"), None, D("30.0")], pa.decimal128(5, 1)),
        pa.array([D("2.5"), D("-1.0"), None, D("30.0")], pa.decimal32(5, 1)),
        pa.array([2, 1, None, 3], pa.uint8()),
        pa.array([2.0, 1.0, None, NAN], pa.float16()),
        pa.array([2, 1, None, 3], pa.date32()),
        pa.array([2, 1, None, 3], pa.timestamp("ns", "Europe/Zurich")),
        pa.array([2, 1, None, 3], pa.time64("ns")),
        pa.array([2, 1, None, 3], pa.duration("s")),
    ],
    ids=lambda a: str(a.type),
)
def test_every_sortable_type(values: pa.Array) -> None:
    table = pa.table({"id": [1] * 4, "n": range(4), "x": values})
    picked = [
        deduplicated(table, "id", o)["n"].to_pylist() for o in ("x", "x nulls last", "x desc", "x desc nulls first")
    ]
    assert picked == [[2], [1], [3], [2]]


def test_booleans_and_columns_of_nothing() -> None:
    table = pa.table({"id": [1, 1], "yes": [True, False], "none": pa.nulls(2), "n": [0, 1]})
    assert deduplicated(table, "id", "none, yes desc")["n"].to_pylist() == [0]
    assert deduplicated(table, "id", "none")["n"].to_pylist() == [1]


def test_an_order_that_cannot_be_is_refused_even_if_no_key_repeats() -> None:
    table = pa.table({"id": [1, 2], "updated_at": [1, 2], "list": [[1], [2]]})
    with pytest.raises(SchemaMismatchError, match='no order_by column "update_at"') as caught:
        deduplicated(table, "id", "update_at DESC")
    assert caught.value.hint == 'did you mean "updated_at" for "update_at"?'
    with pytest.raises(SchemaMismatchError, match='order by "list"'):
        deduplicated(pa.concat_tables([table, table]), "id", "list")


CELLS = st.tuples(
    st.sampled_from([0.0, -0.0, 1.0, NAN]),
    st.sampled_from(["a", "b"]),
    st.one_of(st.none(), st.sampled_from([NAN, -1.5, 0.0, -0.0, 2.0])),
    st.one_of(st.none(), st.sampled_from(["", "x", "y"])),
)


def same_key(row: tuple[Any, ...]) -> tuple[Any, ...]:
    return ("nan" if math.isnan(row[0]) else row[0], row[1])


def sort_value(value: Any, descending: bool, nulls_first: bool) -> tuple[Any, ...]:
    if value is None:
        return (0 if nulls_first else 2,)
    if isinstance(value, str):
        return (1, (*(-ord(c) for c in value), 1) if descending else tuple(ord(c) for c in value))
    number = math.inf if math.isnan(value) else value  # no infinity among the values
    return (1, -number if descending else number)


@settings(max_examples=200, deadline=None)
@given(st.lists(CELLS, max_size=12), st.sampled_from([(), (True, False), (False, True), (False, False), (True, True)]))
def test_deduplicated_equals_a_dict(rows: list[tuple[Any, ...]], how: tuple[bool, ...]) -> None:
    names = ["k", "l", "x", "y"]
    types = [pa.float64(), pa.string(), pa.float64(), pa.string()]
    columns = [pa.array([row[i] for row in rows], type_) for i, type_ in enumerate(types)]
    table = pa.table([*columns, pa.array(range(len(rows)), pa.int64())], [*names, "n"])
    if rows:  # chunks must not matter
        table = pa.concat_tables([table.slice(0, 1), table.slice(1)])
    order_by = None
    best: dict[Any, int] = {}
    if how:
        descending, nulls_first = how
        words = f"{'desc' if descending else 'asc'} nulls {'first' if nulls_first else 'last'}"
        order_by = [f"y {words}", f"x {words}"]
        for n, row in enumerate(rows):
            rank = (sort_value(row[3], *how), sort_value(row[2], *how))
            other = best.get(same_key(row))
            if other is None or rank <= (sort_value(rows[other][3], *how), sort_value(rows[other][2], *how)):
                best[same_key(row)] = n
    else:
        best = {same_key(row): n for n, row in enumerate(rows)}
    assert deduplicated(table, ["k", "l"], order_by)["n"].to_pylist() == sorted(best.values())


# validate_partition_column_immutability


def test_reject_partition_movement_on_update() -> None:
    """The target contains key id=1 in partition day=2025-01-01, the source provides id=1 with day=2025-01-02."""
    target = pa.table({"id": [1, 2], "day": ["2025-01-01", "2025-01-01"], "v": [0, 0]})
    source = pa.table({"v": [1, 1], "id": [1, 3], "day": ["2025-01-02", "2025-01-02"]})
    with pytest.raises(ValueError, match="partition columns cannot change for existing keys") as caught:
        validate_partition_column_immutability(source, target, ["id"], ["day"])
    assert isinstance(caught.value, PartitionMoveError)
    assert "id=1 from day='2025-01-01' to day='2025-01-02'" in caught.value.message
    assert "id=3" not in caught.value.message
    assert caught.value.in_place == "nothing was written"


@pytest.mark.parametrize(
    ("old", "new", "moves"),
    [
        (["a"], ["a"], False),
        ([None], [None], False),
        ([None], ["a"], True),
        (["a"], [None], True),
        ([NAN], [NAN], False),
        ([0.0], [-0.0], False),
        ([NAN], [1.0], True),
        ([1], [1.0], False),
        ([1], [2.0], True),
    ],
)
def test_null_and_nan_in_partition_columns(old: list[Any], new: list[Any], moves: bool) -> None:
    type_ = pa.string() if not any(isinstance(v, float | int) for v in old + new) else None
    source = pa.table({"id": [1], "p": pa.array(new, type_)})
    target = pa.table({"id": pa.array([1], pa.int32()), "p": pa.array(old, type_)})
    if moves:
        with pytest.raises(PartitionMoveError):
            validate_partition_column_immutability(source, target, "id", "p")
    else:
        validate_partition_column_immutability(source, target, "id", "p")


def test_any_of_several_target_rows_and_partition_columns() -> None:
    target = pa.table({"id": [1, 1, 9], "year": [2024, 2024, 2024], "day": ["a", "b", "c"]})
    source = pa.table({"id": [1], "year": [2024], "day": ["a"]})
    with pytest.raises(PartitionMoveError, match="id=1 from year=2024, day='b' to year=2024, day='a'"):
        validate_partition_column_immutability(source, target, ["id"], ["year", "day"])
    validate_partition_column_immutability(source, target, ["id"], ["year"])


def test_up_to_five_moves_are_named() -> None:
    target = pa.table({"id": range(9), "p": ["old"] * 9})
    with pytest.raises(PartitionMoveError) as caught:
        validate_partition_column_immutability(pa.table({"id": range(7), "p": ["new"] * 7}), target, "id", "p")
    assert caught.value.message.count("from p=") == 5
    assert caught.value.message.endswith("and 2 more")


def test_the_partition_column_inside_the_key_never_moves() -> None:
    target, source = pa.table({"id": [1], "p": ["a"]}), pa.table({"id": [1], "p": ["b"]})
    validate_partition_column_immutability(source, target, ["id", "p"], ["p"])
    validate_partition_column_immutability(source, target, ["id"], [])


def test_target_rows_with_a_null_key_match_nothing_and_dictionaries_are_read() -> None:
    target = pa.table({"id": [None, 1], "p": pa.array(["z", "a"]).dictionary_encode()})
    validate_partition_column_immutability(pa.table({"id": [1], "p": ["a"]}), target, "id", "p")
    validate_partition_column_immutability(pa.table({"id": [1], "p": ["a"]}), target.slice(0, 0), "id", "p")


def test_what_cannot_be_compared_is_refused() -> None:
    target = pa.table({"id": [1], "p": ["a"]})
    with pytest.raises(SchemaMismatchError, match='no partition column "p"'):
        validate_partition_column_immutability(pa.table({"id": [1]}), target, "id", "p")
    with pytest.raises(SchemaMismatchError, match='column "p"'):
        validate_partition_column_immutability(pa.table({"id": [1], "p": [1]}), target, "id", "p")
    with pytest.raises(DuplicateKeyError):
        validate_partition_column_immutability(pa.table({"id": [1, 1], "p": ["a", "b"]}), target, "id", "p")
