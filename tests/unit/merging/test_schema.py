from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal as D
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from lockgate.errors import ConfigError, LockgateError, NullKeyError, SchemaMismatchError
from lockgate.merging.schema import agree, fit, validate_keys_and_schema

ID = ("id", pa.int64())


@dataclass
class Described:
    """A table of which only the schema and the row count are known."""

    schema: pa.Schema
    num_rows: int = 0


def schema(*fields: Any) -> pa.Schema:
    return pa.schema(list(fields))


# validate_keys_and_schema


def test_ensure_all_key_columns_exist_in_source_and_target() -> None:
    source, target = pa.table({"id": [1], "Day": ["x"]}), Described(schema(("ID", pa.int64()), ("Day", pa.string())))
    with pytest.raises(ValueError, match='the source has no key column "day"') as caught:
        validate_keys_and_schema(source, target, ["id", "day"])
    assert caught.value.hint == 'did you mean "Day" for "day"?'
    with pytest.raises(ValueError, match='the target has no key column "id"'):
        validate_keys_and_schema(source, target, "id")
    with pytest.raises(ValueError, match="key column"):
        validate_keys_and_schema(source, None, ["nothing"])


def test_enforce_no_null_keys() -> None:
    with pytest.raises(NullKeyError, match='key column "b" is NULL in 1 of 2 source rows') as caught:
        validate_keys_and_schema(pa.table({"a": [1, 2], "b": ["x", None]}), None, ["a", "b"])
    assert isinstance(caught.value, ValueError)
    assert caught.value.in_place == "nothing was written"


def test_a_null_hidden_in_a_dictionary_is_a_null_key() -> None:
    hidden = pa.DictionaryArray.from_arrays(pa.array([0, 1]), pa.array(["a", None]))
    with pytest.raises(NullKeyError):
        validate_keys_and_schema(pa.table({"id": hidden}), None, "id")


def test_lightweight_table_descriptors_that_expose_only_the_needed_metadata() -> None:
    validate_keys_and_schema(Described(schema(ID), 10**12), Described(schema(ID), 10**12), "id")


def test_the_function_should_avoid_forcing_full_materialization() -> None:
    class Stream:
        schema = pa.schema([ID])

        @property
        def num_rows(self) -> int:
            raise AssertionError("counting would read the stream")

    validate_keys_and_schema(Stream(), Stream(), "id")


@pytest.mark.parametrize(
    "type_",
    [pa.list_(pa.int8()), pa.struct([ID]), pa.map_(pa.string(), pa.int8()), pa.null(), pa.month_day_nano_interval()],
)
def test_a_type_that_cannot_be_a_key_is_refused(type_: pa.DataType) -> None:
    for source, target in ((type_, None), (pa.int64(), type_)):
        with pytest.raises(SchemaMismatchError, match="cannot be a key"):
            validate_keys_and_schema(
                Described(schema(("id", source))), None if target is None else Described(schema(("id", target))), "id"
            )


@pytest.mark.parametrize(
    "type_",
    [
        pa.int8(), pa.uint64(), pa.float16(), pa.float64(), pa.bool_(), pa.decimal128(5, 2), pa.string(),
        pa.string_view(), pa.binary(4), pa.date32(), pa.timestamp("ns", "UTC"), pa.time64("us"),
        pa.duration("s"), pa.uuid(),
        pa.dictionary(pa.int8(), pa.string()),
    ],
)  # fmt: skip
def test_every_other_type_can_be_a_key(type_: pa.DataType) -> None:
    validate_keys_and_schema(Described(schema(("id", type_))), Described(schema(("id", type_))), "id")


def test_schema_incompatibility_is_seen_before_any_row() -> None:
    source, target = Described(schema(ID, ("x", pa.string()))), Described(schema(ID, ("x", pa.int64())))
    with pytest.raises(ValueError, match='column "x": the source has string, the target has int64'):
        validate_keys_and_schema(source, target, "id")
    with pytest.raises(ValueError, match="no column"):
        validate_keys_and_schema(Described(schema(ID)), target, "id")
    validate_keys_and_schema(Described(schema(ID, ("x", pa.int64()), ("new", pa.int8()))), target, "id", mode="evolve")


# agree: strict


def test_strict_is_the_schema_of_the_target_whatever_the_order() -> None:
    target = pa.schema([pa.field("id", pa.int32(), nullable=False), ("n", pa.string())], metadata={"k": "v"})
    got = agree(schema(("n", pa.large_string()), ("id", pa.int64())), target, mode="strict")
    assert got.equals(target, check_metadata=True)


def test_strict_names_all_extra_and_missing_columns() -> None:
    source, target = schema(ID, ("a", pa.int8()), ("b", pa.int8())), schema(ID, ("c", pa.int8()), ("d", pa.int8()))
    with pytest.raises(SchemaMismatchError) as caught:
        agree(source, target, mode="strict")
    message = 'the source has no column "c", "d" and the target has no column "a", "b"'
    assert caught.value.message == message


def test_extra_columns_are_pointed_to_evolve_and_a_near_name() -> None:
    with pytest.raises(SchemaMismatchError) as caught:
        agree(schema(ID, ("new", pa.int8())), schema(ID), mode="strict")
    assert 'schema="evolve"' in (caught.value.hint or "")
    with pytest.raises(SchemaMismatchError) as caught:
        agree(schema(ID, ("adress", pa.string())), schema(ID, ("address", pa.string())), mode="strict")
    assert caught.value.hint == 'did you mean "adress" for "address"?'


def test_column_names_id_and_ID_are_two_columns() -> None:
    both = schema(("id", pa.int8()), ("ID", pa.string()))
    assert agree(both, both, mode="strict") == both
    with pytest.raises(SchemaMismatchError, match='"ID"'):
        agree(schema(("id", pa.int8()), ("Id", pa.string())), both, mode="strict")


@pytest.mark.parametrize("mode", ["strict", "evolve"])
def test_a_column_missing_in_the_source_is_refused_in_both_modes(mode: Any) -> None:
    """Full-row replacement: it would silently become NULL."""
    with pytest.raises(SchemaMismatchError, match='the source has no column "b"'):
        agree(schema(ID, ("c", pa.int8())), schema(ID, ("b", pa.int8())), mode=mode)


@pytest.mark.parametrize("mode", ["strict", "evolve"])
def test_duplicate_column_names_are_refused(mode: Any) -> None:
    twice = schema(ID, ("a", pa.int8()), ("a", pa.int8()))
    once = schema(ID, ("a", pa.int8()))
    with pytest.raises(SchemaMismatchError, match='the source has several columns named "a"'):
        agree(twice, once, mode=mode)
    with pytest.raises(SchemaMismatchError, match='the target has several columns named "a"'):
        agree(once, twice, mode=mode)


@pytest.mark.parametrize("mode", ["strict", "evolve"])
def test_types_of_another_kind_are_refused(mode: Any) -> None:
    for theirs, mine in (
        (pa.string(), pa.int8()),
        (pa.bool_(), pa.int8()),
        (pa.timestamp("us"), pa.timestamp("us", "UTC")),
    ):
        with pytest.raises(SchemaMismatchError) as caught:
            agree(schema(("x", theirs)), schema(("x", mine)), mode=mode)
        assert '"x"' in caught.value.message
        assert str(theirs) in caught.value.message
        assert str(mine) in caught.value.message


def test_another_mode_is_refused() -> None:
    with pytest.raises(ConfigError, match="strict"):
        agree(schema(ID), schema(ID), mode="loose")  # type: ignore[arg-type]


# agree: evolve

A8 = pa.struct([("a", pa.int8())])


@pytest.mark.parametrize(
    ("target", "source", "result"),
    [
        (pa.int8(), pa.int16(), pa.int16()),
        (pa.int8(), pa.int64(), pa.int64()),
        (pa.int32(), pa.int64(), pa.int64()),
        (pa.int64(), pa.int8(), pa.int64()),
        (pa.float32(), pa.float64(), pa.float64()),
        (pa.float64(), pa.float32(), pa.float64()),
        (pa.int32(), pa.float64(), pa.float64()),
        (pa.int64(), pa.float64(), pa.int64()),  # a double does not hold every int64
        (pa.int8(), pa.float32(), pa.int8()),
        (pa.float64(), pa.int64(), pa.float64()),
        (pa.uint8(), pa.uint64(), pa.uint8()),  # Spark has no unsigned integers
        (pa.decimal128(10, 2), pa.decimal128(12, 3), pa.decimal128(12, 3)),
        (pa.decimal128(10, 2), pa.decimal128(10, 4), pa.decimal128(12, 4)),
        (pa.decimal128(10, 2), pa.decimal128(5, 1), pa.decimal128(10, 2)),
        (pa.decimal128(38, 0), pa.decimal128(38, 10), pa.decimal128(38, 0)),
        (pa.timestamp("us"), pa.date32(), pa.timestamp("us")),
        (pa.timestamp("ms"), pa.timestamp("us"), pa.timestamp("ms")),
        (pa.string(), pa.large_string(), pa.string()),
        (pa.large_string(), pa.string(), pa.large_string()),
        (pa.string(), pa.dictionary(pa.int8(), pa.string()), pa.string()),
        (pa.dictionary(pa.int8(), pa.string()), pa.string(), pa.dictionary(pa.int8(), pa.string())),
        (pa.int8(), pa.dictionary(pa.int8(), pa.int64()), pa.int64()),
        (pa.null(), pa.string(), pa.string()),
        (pa.string(), pa.null(), pa.string()),
        (pa.list_(pa.int8()), pa.list_(pa.int64()), pa.list_(pa.int64())),
        (pa.large_list(pa.int8()), pa.list_(pa.int64()), pa.large_list(pa.int64())),
        (pa.list_(pa.int8(), 2), pa.list_(pa.int64(), 2), pa.list_(pa.int64(), 2)),
        (A8, pa.struct([("b", pa.int8()), ("a", pa.int32())]), pa.struct([("a", pa.int32()), ("b", pa.int8())])),
        (pa.list_(A8), pa.list_(pa.struct([("a", pa.int64())])), pa.list_(pa.struct([("a", pa.int64())]))),
        (pa.map_(pa.string(), pa.int8()), pa.map_(pa.string(), pa.int64()), pa.map_(pa.string(), pa.int64())),
    ],
    ids=str,
)
def test_evolve_widens_types_where_spark_and_arrow_both_allow(
    target: pa.DataType, source: pa.DataType, result: pa.DataType
) -> None:
    assert agree(schema(("x", source)), schema(("x", target)), mode="evolve").field("x").type == result


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (pa.array([1, -128], pa.int8()), pa.int64()),
        (pa.array([1.5], pa.float32()), pa.float64()),
        (pa.array([2**31 - 1], pa.int32()), pa.float64()),
        (pa.array([D("1.50")], pa.decimal128(5, 2)), pa.decimal128(9, 4)),
        (pa.array([[1], None], pa.list_(pa.int8())), pa.list_(pa.int64())),
    ],
    ids=str,
)
def test_arrow_reads_an_old_file_under_the_widened_type(old: pa.Array, new: pa.DataType, tmp_path: Any) -> None:
    evolved = agree(schema(("x", new)), schema(("x", old.type)), mode="evolve")
    assert evolved == schema(("x", new))
    pq.write_table(pa.table({"x": old}), tmp_path / "old.parquet")
    read = ds.dataset(tmp_path, format="parquet", schema=evolved).to_table()
    assert read.schema == evolved
    assert read.column("x").combine_chunks() == old.cast(new)


def test_evolve_adds_new_columns_at_the_end_nullable_and_without_ids_of_another_file() -> None:
    target = pa.schema([pa.field("id", pa.int64(), nullable=False)], metadata={"k": "v"})
    new = pa.field("new", pa.string(), nullable=False, metadata={"PARQUET:field_id": "1"})
    got = agree(pa.schema([new, ("id", pa.int64())]), target, mode="evolve")
    assert got.names == ["id", "new"]
    assert not got.field("id").nullable
    assert got.field("new").nullable
    assert got.field("new").metadata is None
    assert got.metadata == {b"k": b"v"}


def test_evolve_keeps_what_else_the_target_says_of_a_field() -> None:
    field = pa.field("id", pa.int32(), nullable=False, metadata={"comment": "key"})
    got = agree(schema(ID), pa.schema([field]), mode="evolve").field("id")
    assert got.equals(field.with_type(pa.int64()), check_metadata=True)


def test_a_struct_field_missing_in_the_source_is_refused_in_both_modes() -> None:
    two, one = pa.struct([("a", pa.int8()), ("b", pa.int8())]), pa.struct([("a", pa.int8())])
    for mode in ("strict", "evolve"):
        with pytest.raises(SchemaMismatchError, match='column "s"'):
            agree(schema(("s", one)), schema(("s", two)), mode=mode)  # type: ignore[arg-type]
    with pytest.raises(SchemaMismatchError, match='column "s"'):
        agree(schema(("s", two)), schema(("s", one)), mode="strict")


# fit


def test_columns_are_matched_by_name_never_by_position() -> None:
    wanted = pa.schema([pa.field("a", pa.int8(), nullable=False), ("b", pa.large_string())], metadata={"k": "v"})
    got = fit(pa.table({"b": ["x", None], "a": [1, 2], "unasked": [0, 0]}), wanted)
    assert got.schema.equals(wanted, check_metadata=True)
    assert got.to_pylist() == [{"a": 1, "b": "x"}, {"a": 2, "b": None}]


def test_null_in_a_column_that_may_not_be_null_is_refused() -> None:
    wanted = pa.schema([pa.field("a", pa.int64(), nullable=False)])
    with pytest.raises(SchemaMismatchError, match='column "a" of the target may not be NULL, but 2 source rows'):
        fit(pa.table({"a": [1, None, None]}), wanted)


def test_a_value_that_does_not_fit_names_its_column() -> None:
    with pytest.raises(
        SchemaMismatchError, match='column "a": int64 does not fit into int8 without loss: 300 in row 1'
    ):
        fit(pa.table({"a": [1, 300]}), schema(("a", pa.int8())))


def test_an_empty_source_and_a_missing_column() -> None:
    empty = pa.table({"a": pa.array([], pa.int64())})
    assert fit(empty, schema(("a", pa.int8()))).schema == schema(("a", pa.int8()))
    with pytest.raises(SchemaMismatchError, match='"b"'):
        fit(empty, schema(("b", pa.int8())))


def test_every_refusal_is_a_lockgate_error_that_says_what_is_in_place() -> None:
    with pytest.raises(LockgateError) as caught:
        validate_keys_and_schema(pa.table({"a": [1]}), None, "b")
    assert caught.value.in_place == "nothing was written"
