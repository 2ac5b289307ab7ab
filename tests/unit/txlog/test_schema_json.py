"""Schemas of Delta tables: what deltalake makes of ours, and what Delta lacks."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest
from deltalake import Schema
from hypothesis import given
from hypothesis import strategies as st

from lockgate.errors import SchemaMismatchError
from lockgate.txlog.schema_json import arrow_schema, held_schema, needs_timestamp_ntz, schema_json

PLAIN = st.sampled_from(
    [
        pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.string(), pa.binary(),
        pa.bool_(), pa.date32(), pa.timestamp("us", "UTC"), pa.timestamp("us"), pa.decimal128(38, 10),
    ]
)  # fmt: skip
NAMES = st.text(min_size=1, max_size=5).filter(lambda t: t.isprintable() and "`" not in t)
TYPES = st.recursive(
    PLAIN,
    lambda inner: st.one_of(
        st.builds(lambda t, n: pa.list_(pa.field("element", t, n)), inner, st.booleans()),
        st.builds(
            lambda k, v, n: pa.map_(pa.field("key", k, False), pa.field("value", v, n)), PLAIN, inner, st.booleans()
        ),
        st.builds(lambda a, b: pa.struct({"a": a, "ünï": b}), inner, inner),
    ),
    max_leaves=5,
)


@given(st.dictionaries(NAMES, st.tuples(TYPES, st.booleans()), min_size=1, max_size=5))
def test_there_and_back_and_as_deltalake_reads_it(columns: dict[str, tuple[pa.DataType, bool]]) -> None:
    if len({name.lower() for name in columns}) < len(columns):
        return
    schema = pa.schema([pa.field(name, kind, nullable) for name, (kind, nullable) in columns.items()])
    text = schema_json(schema)
    assert arrow_schema(text).equals(schema)
    assert json.loads(Schema.from_json(text).to_json()) == json.loads(text)


@pytest.mark.parametrize(
    ("given", "held"),
    [
        (pa.uint8(), pa.int16()),
        (pa.uint16(), pa.int32()),
        (pa.uint32(), pa.int64()),
        (pa.uint64(), pa.decimal128(20, 0)),
        (pa.float16(), pa.float32()),
        (pa.large_string(), pa.string()),
        (pa.dictionary(pa.int8(), pa.string()), pa.string()),
        (pa.timestamp("ns"), pa.timestamp("us")),
        (pa.timestamp("s", "Europe/Oslo"), pa.timestamp("us", "UTC")),
        (pa.date64(), pa.date32()),
        (pa.binary(3), pa.binary()),
        (pa.list_(pa.uint8(), 2), pa.list_(pa.field("element", pa.int16()))),
        (pa.decimal256(38, 2), pa.decimal128(38, 2)),
    ],
    ids=str,
)
def test_types_that_delta_lacks_are_widened(given: pa.DataType, held: pa.DataType) -> None:
    assert held_schema(pa.schema({"x": given})).field("x").type == held


@pytest.mark.parametrize(
    "kind", [pa.time64("us"), pa.duration("s"), pa.null(), pa.decimal256(60, 2), pa.decimal128(5, -2)], ids=str
)
def test_types_without_a_home_are_refused_by_the_name_of_the_column(kind: pa.DataType) -> None:
    with pytest.raises(SchemaMismatchError, match=r"s\.element\.when"):
        schema_json(pa.schema({"s": pa.list_(pa.struct({"when": kind}))}))


def test_names_that_differ_in_case_alone_are_one_to_delta() -> None:
    with pytest.raises(SchemaMismatchError, match="'id', 'ID'"):
        schema_json(pa.schema({"id": pa.int8(), "ID": pa.int8()}))


def test_what_is_said_of_a_column_stays_said() -> None:
    before = (
        '{"type":"struct","fields":[{"name":"a","type":"long","nullable":true,"metadata":{"comment":"the first"}}]}'
    )
    after = json.loads(schema_json(arrow_schema(before).append(pa.field("b", pa.string())), like=before))
    assert [f["metadata"] for f in after["fields"]] == [{"comment": "the first"}, {}]


def test_a_nested_wall_clock_needs_the_feature() -> None:
    assert needs_timestamp_ntz(pa.schema({"m": pa.map_(pa.string(), pa.struct({"t": pa.timestamp("ms")}))}))
    assert not needs_timestamp_ntz(pa.schema({"t": pa.timestamp("ms", "UTC")}))


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"fields":[{"name":"x","type":"variant"}]}', '{"fields":[{"type":"long"}]}']
)
def test_what_is_no_schema_is_refused(text: str) -> None:
    with pytest.raises(SchemaMismatchError):
        arrow_schema(text)
