"""What is refused before any lock is taken."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

import lockgate
from lockgate.txlog import features
from lockgate.txlog.actions import Action, CommitInfo, DomainMetadata, Format, Metadata, Protocol, Txn
from lockgate.txlog.paths import as_uri, from_uri, problem_of
from lockgate.txlog.validation import TableState, validate
from support.txlogs import METADATA, PARTITIONED, PROTOCOL, SCHEMA, add, remove

STATE = TableState(PROTOCOL, METADATA)
PARTS = TableState(PROTOCOL, PARTITIONED)


def refused(actions: list[Action], said: str, state: TableState = STATE) -> None:
    with pytest.raises(lockgate.ValidationError, match=said) as error:
        validate(actions, state, table="sales.orders")
    assert isinstance(error.value, ValueError)
    assert error.value.in_place == "nothing was committed"


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("", "empty"), ("../x", "leaves the table"), ("a/../../x", "leaves the table"), ("/etc/passwd", "absolute"),
        ("%2e%2e/x", "leaves the table"), ("a/%2E./x", "leaves the table"), ("%2Fetc/x", "absolute"),
        ("s3://other/x", "absolute"), ("file:/x", "absolute"), ("a\0b", "NUL"), ("a%00b", "NUL"), ("a\nb", "UTF-8"),
        ("a\ud800b", "UTF-8"), ("a/", "folder"), ("x" * 40_000, "longer than"),
    ],
)  # fmt: skip
def test_paths(path: str, said: str) -> None:
    refused([add(path)], said)
    refused([remove(path)], said)


@pytest.mark.parametrize("name", ["a b%.parquet", "day=ü/x'\"#?.parquet", "a:b.parquet", "..a/b..c", "日本/%2e%2e/x"])
def test_names_of_files_are_encoded_once(name: str) -> None:
    assert from_uri(as_uri(name)) == name
    assert problem_of(as_uri(name)) is None


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({}, "partitioned by"),
        ({"day": "1", "x": "2"}, "partitioned by"),
        ({"day": ""}, "empty text"),
        ({"day": "\0"}, "NUL"),
    ],
)
def test_partition_values(values: dict[str, str | None], said: str) -> None:
    refused([add("a", partition_values=values)], said, PARTS)
    validate([add("a", partition_values={"day": None})], PARTS)


@pytest.mark.parametrize("stats", ["", "1", "{", '{"a":"\n"}', '{"a":"\0"}'])
def test_statistics(stats: str) -> None:
    refused([add("a", stats=stats)], "not a JSON object")


def test_one_of_each() -> None:
    refused([METADATA, METADATA], "2 actions metaData")
    refused([PROTOCOL, PROTOCOL], "2 actions protocol")
    refused([CommitInfo({}), CommitInfo({})], "2 actions commitInfo")
    refused([Txn("a", 1), Txn("a", 2)], "two actions txn")
    refused([add("a"), add("a")], "twice")
    refused([remove("a"), add("a")], "twice")
    refused([add("a", size=-1)], "size")


@pytest.mark.parametrize("name", ["", "x" * 1001, "a\0", "a\n", "\ud800"])
def test_names(name: str) -> None:
    refused([Txn(name, 1)], "not a name")


def schema(*names: str) -> str:
    fields = [{"name": name, "type": "long", "nullable": True, "metadata": {}} for name in names]
    return json.dumps({"type": "struct", "fields": fields})


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"schema_string": "{"}, "not a Delta schema"), ({"schema_string": "[]"}, "not a Delta schema"),
        ({"schema_string": '{"type":"array","fields":[]}'}, "not a struct"),
        ({"schema_string": schema("a", "A")}, "but for case"), ({"schema_string": schema("a", "a")}, "but for case"),
        ({"partition_columns": ("x",)}, "not in the schema"), ({"format": Format("orc")}, "parquet"),
        ({"name": "\0"}, "NUL"), ({"configuration": {"a": "\0"}}, "NUL"),
        ({"configuration": {"delta.columnMapping.mode": "name"}}, None),
    ],
)  # fmt: skip
def test_metadata(change: dict[str, Any], said: str | None) -> None:
    if said is None:
        validate([replace(METADATA, **change)], STATE)
    else:
        refused([replace(METADATA, **change)], said)


@pytest.mark.parametrize(
    ("protocol", "said"),
    [
        (Protocol(0, 2), "begin at 1"), (Protocol(1, 2, ("a",)), "readerFeatures"), (Protocol(1, 7), "writerFeatures"),
        (Protocol(3, 7, None, ()), "readerFeatures"), (Protocol(3, 7, ("v2Checkpoint",), ()), "not in writerFeatures"),
        (Protocol(3, 7, ("catalogManaged",), ("catalogManaged",)), "uses catalogManaged"),
        (Protocol(3, 7, (), ("rowTracking", "madeUp")), "uses madeUp, rowTracking"),
        (Protocol(4, 7, (), ()), "reader version 4"), (Protocol(1, 1), "cannot go back"),
    ],
)  # fmt: skip
def test_protocols(protocol: Protocol, said: str) -> None:
    refused([protocol], said)


def test_features_of_older_protocols_are_refused_where_they_are_used() -> None:
    mapped = replace(METADATA, configuration={"delta.columnMapping.mode": "name"})
    refused([Protocol(2, 5), mapped], "uses columnMapping")
    refused([Protocol(1, 4), replace(METADATA, configuration={"delta.enableChangeDataFeed": "true"})], "changeDataFeed")
    generated = SCHEMA.replace('"metadata": {}', '"metadata": {"delta.generationExpression": "1"}')
    refused([Protocol(1, 4), replace(METADATA, schema_string=generated)], "uses generatedColumns")
    validate([Protocol(2, 6)], STATE)
    known = tuple(sorted(features.WRITER_FEATURES))
    validate([Protocol(3, 7, ("timestampNtz", "v2Checkpoint"), known)], STATE)


def test_an_append_only_table_keeps_its_rows() -> None:
    state = TableState(PROTOCOL, replace(METADATA, configuration={"delta.appendOnly": "true"}))
    refused([remove("a")], "append-only", state)
    validate([replace(remove("a"), data_change=False), add("b", data_change=False)], state)


def test_domains_need_their_feature() -> None:
    refused([DomainMetadata("a", "{}")], "domainMetadata")
    validate([DomainMetadata("a", "{}")], TableState(Protocol(1, 7, None, ("domainMetadata",)), METADATA))


def test_commit_info_is_json() -> None:
    refused([CommitInfo({"a": object()})], "cannot be written as JSON")
    refused([CommitInfo({"a": float("nan")})], "cannot be written as JSON")
    refused([CommitInfo({"a": "\ud800"})], "UTF-8")


def test_the_first_commit() -> None:
    refused([], "no protocol and metaData", TableState())
    validate([PROTOCOL, METADATA], TableState())
    assert isinstance(METADATA, Metadata)
