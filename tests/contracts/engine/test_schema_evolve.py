"""schema="evolve": new columns are added, types are widened, and nothing narrower is forced on old rows."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from contracts.engine.dataset import REPLACING, Dataset, as_multiset, counts, ids, new
from lockgate.errors import SchemaMismatchError


def coloured(table: pa.Table) -> pa.Table:
    return table.append_column("colour", pa.array(["red"] * table.num_rows))


@pytest.mark.parametrize("strategy", ["upsert", "deduplicate"])
def test_a_new_column_is_null_in_old_rows(dataset: Dataset, strategy: str) -> None:
    dataset.add("a.parquet", ids(1, 2))
    result = dataset.merge(coloured(new(2, 3)), strategy, schema="evolve")
    assert counts(result) == {"inserted": 1, "updated": 1, "deleted": 0}
    assert as_multiset(dataset.rows()) == as_multiset(
        [
            {"id": 1, "x": "old 1", "colour": None},
            {"id": 2, "x": "new 2", "colour": "red"},
            {"id": 3, "x": "new 3", "colour": "red"},
        ]
    )


def test_a_new_column_goes_to_the_end(dataset: Dataset) -> None:
    dataset.add("a.parquet", ids(1, 2))
    dataset.merge(coloured(new(2, 3)).select(["colour", "x", "id"]), schema="evolve")
    assert {tuple(pq.read_schema(f).names) for f in dataset.files()} == {("id", "x", "colour")}


def test_files_without_a_source_key_are_not_rewritten_for_a_new_column(dataset: Dataset) -> None:
    far = dataset.add("b.parquet", ids(100, 101))
    dataset.add("a.parquet", ids(1, 2))
    untouched = dataset.contents()[str(far)]
    dataset.merge(coloured(new(2)), schema="evolve")
    assert dataset.contents()[str(far)] == untouched
    later = dataset.merge(coloured(new(100)), "update")  # the dataset has the column now, as strict sees it
    assert later.updated == 1
    assert {"id": 100, "x": "new 100", "colour": "red"} in dataset.rows()


def test_insert_adds_a_column_in_the_new_file_alone(dataset: Dataset) -> None:
    old = dataset.add("a.parquet", ids(1, 2))
    untouched = dataset.contents()[str(old)]
    result = dataset.merge(coloured(new(2, 3)), "insert", schema="evolve")
    assert counts(result) == {"inserted": 1, "updated": 0, "deleted": 0}
    assert dataset.contents()[str(old)] == untouched


def test_update_and_full_merge_add_a_column_too(dataset: Dataset) -> None:
    dataset.add("a.parquet", ids(1, 2))
    assert dataset.merge(coloured(new(2)), "update", schema="evolve").updated == 1
    assert dataset.merge(coloured(new(2)), "full_merge", schema="evolve").deleted == 1
    assert dataset.rows() == [{"id": 2, "x": "new 2", "colour": "red"}]


WIDENED = {
    "int32 to int64": (pa.array([1, 2], pa.int32()), pa.array([2**40], pa.int64()), [1, 2**40], pa.int64()),
    "int8 to int32": (pa.array([1, 2], pa.int8()), pa.array([70000], pa.int32()), [1, 70000], pa.int32()),
    "float to double": (pa.array([0.5, 2], pa.float32()), pa.array([0.1]), [0.5, 0.1], pa.float64()),
    "int32 to double": (pa.array([1, 2], pa.int32()), pa.array([0.1]), [1.0, 0.1], pa.float64()),
    "decimal": (
        pa.array([Decimal("1.5"), Decimal("2.5")], pa.decimal128(4, 1)),
        pa.array([Decimal("1234.25")], pa.decimal128(6, 2)),
        [Decimal("1.50"), Decimal("1234.25")],
        pa.decimal128(6, 2),
    ),
    "struct with a new field": (
        pa.array([{"a": 1}, {"a": 2}], pa.struct([("a", pa.int32())])),
        pa.array([{"a": 5, "b": "x"}], pa.struct([("a", pa.int32()), ("b", pa.string())])),
        [{"a": 1, "b": None}, {"a": 5, "b": "x"}],
        pa.struct([("a", pa.int32()), ("b", pa.string())]),
    ),
}


@pytest.mark.parametrize("case", WIDENED)
@pytest.mark.parametrize("strategy", ["update", "upsert"])
def test_a_type_is_widened(dataset: Dataset, case: str, strategy: str) -> None:
    old, fresh, values, kind = WIDENED[case]
    dataset.add("a.parquet", pa.table({"id": [1, 2], "v": old}))
    dataset.merge(pa.table({"id": [2], "v": fresh}), strategy, schema="evolve")
    assert dataset.column("v") == values
    assert pq.read_schema(dataset.files()[0]).field("v").type == kind


def test_strict_does_not_widen(dataset: Dataset) -> None:
    dataset.add("a.parquet", pa.table({"id": [1], "v": pa.array([1], pa.int32())}))
    with pytest.raises(SchemaMismatchError, match="int32"):
        dataset.merge(pa.table({"id": [1], "v": [2**40]}))


def test_a_wide_target_stays_wide(dataset: Dataset) -> None:
    dataset.add("a.parquet", pa.table({"id": [1], "v": [2**40]}))
    dataset.merge(pa.table({"id": [1], "v": pa.array([7], pa.int8())}), schema="evolve")
    assert pq.read_schema(dataset.files()[0]).field("v").type == pa.int64()


@pytest.mark.parametrize("strategy", REPLACING)
def test_a_key_may_be_widened(dataset: Dataset, strategy: str) -> None:
    dataset.add("a.parquet", pa.table({"id": pa.array([1, 2], pa.int32()), "x": ["a", "b"]}))
    result = dataset.merge(pa.table({"id": [2, 2**40], "x": ["B", "C"]}), strategy, schema="evolve")
    assert result.updated == 1
    assert {"id": 2, "x": "B"} in dataset.rows()


def test_a_missing_column_is_refused_here_too(dataset: Dataset) -> None:
    """Whole rows are replaced: without its value the column's old values would be lost."""
    dataset.add("a.parquet", coloured(ids(1, 2)))
    with pytest.raises(SchemaMismatchError, match="colour"):
        dataset.merge(new(2), schema="evolve")


def test_types_that_have_nothing_in_common_are_refused(dataset: Dataset) -> None:
    dataset.add("a.parquet", ids(1))
    with pytest.raises(SchemaMismatchError, match='"x"'):
        dataset.merge(pa.table({"id": [1], "x": [1]}), schema="evolve")


def test_another_word_for_schema_is_refused(dataset: Dataset) -> None:
    with pytest.raises(Exception, match="evolve"):
        dataset.merge(new(1), schema="loose")
    assert not dataset.root.exists()
