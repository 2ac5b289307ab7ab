"""Actions keep every field on their way through JSON, in Delta's own spelling."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

import lockgate
from lockgate.txlog.actions import Add, CommitInfo, DeletionVector, Remove, from_json, to_json
from lockgate.txlog.commit_lines import add_line
from lockgate.txlog.prepared import _add_parts

LINES = [
    (
        '{"add":{"path":"a%20b.parquet","partitionValues":{"day":"2026-01-01","x":null},"size":841454,"modificati'
        'onTime":1512909768000,"dataChange":true,"stats":"{\\"numRecords\\":1,\\"n\\":1.50}","tags":{"k":"v"},"deleti'
        'onVector":{"storageType":"u","pathOrInlineDv":"ab^-aqEH.-t@S}K{vb[*k^","offset":4,"sizeInBytes":40,"card'
        'inality":6},"baseRowId":4071,"defaultRowCommitVersion":41,"clusteringProvider":"liquid"}}'
    ),
    (
        '{"remove":{"path":"part-00001-9.parquet","deletionTimestamp":1515488792485,"dataChange":true,"extendedFi'
        'leMetadata":true,"partitionValues":{"date":"2017-12-09"},"size":841454,"baseRowId":4071,"defaultRowCommi'
        'tVersion":40}}'
    ),
    (
        '{"metaData":{"id":"af23c9d7","name":"n","description":"d","format":{"provider":"parquet","options":{}},"'
        'schemaString":"{\\"type\\":\\"struct\\",\\"fields\\":[]}","partitionColumns":["a"],"configuration":{"delta.app'
        'endOnly":"true"},"createdTime":1}}'
    ),
    (
        '{"protocol":{"minReaderVersion":3,"minWriterVersion":7,"readerFeatures":["timestampNtz"],"writerFeatures'
        '":["timestampNtz","appendOnly"]}}'
    ),
    '{"protocol":{"minReaderVersion":1,"minWriterVersion":2}}',
    '{"txn":{"appId":"3ba13872-2d47-4e17-86a0-21afd2a22395","version":364475,"lastUpdated":7}}',
    '{"domainMetadata":{"domain":"delta.clustering","configuration":"{\\"a\\":1}","removed":false}}',
    '{"commitInfo":{"timestamp":1515491537026,"operation":"INSERT","nested":{"a":[1,null]}}}',
]


@pytest.mark.parametrize("line", LINES)
def test_a_line_survives(line: str) -> None:
    assert to_json(from_json(line)) == line
    assert from_json(json.loads(line), strict=True) == from_json(line.encode())


TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
VALUES = st.dictionaries(TEXT, st.none() | TEXT, max_size=3)
NUMBER = st.integers(-(2**63), 2**63 - 1)
VECTORS = st.builds(DeletionVector, TEXT, TEXT, NUMBER, NUMBER, st.none() | NUMBER)


@given(
    st.builds(
        Add,
        TEXT,
        VALUES,
        NUMBER,
        NUMBER,
        st.booleans(),
        st.none() | TEXT,
        st.none() | st.dictionaries(TEXT, TEXT, max_size=2),
        st.none() | VECTORS,
        st.none() | NUMBER,
        st.none() | NUMBER,
        st.none() | TEXT,
    )
)
def test_a_file_is_published_from_its_row_as_it_was_given(file: Add) -> None:
    assert from_json(to_json(file)) == file
    assert add_line(_add_parts(file)[4:6] + _add_parts(file)[1:4] + _add_parts(file)[6:]) == to_json(file)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{", "not JSON"),
        ("[]", "JSON object"),
        ('{"add":{},"remove":{}}', "exactly one key"),
        ('{"cdc":{}}', "no action 'cdc'"),
        ('{"add":3}', "not an object"),
        ('{"add":{"partitionValues":{},"size":1,"modificationTime":1,"dataChange":true}}', "has no path"),
        ('{"add":{"path":"a","partitionValues":{"a":1},"size":1,"modificationTime":1,"dataChange":true}}', "texts"),
        ('{"add":{"path":"a","partitionValues":{},"size":"1","modificationTime":1,"dataChange":true}}', "whole number"),
        ('{"add":{"path":"a","partitionValues":{},"size":1e3,"modificationTime":1,"dataChange":true}}', "whole number"),
        ('{"add":{"path":"a","partitionValues":{},"size":9999999999999999999,"modificationTime":1}}', "whole number"),
        ('{"remove":{"path":"a","dataChange":1}}', "true or false"),
        ('{"protocol":{"minReaderVersion":true,"minWriterVersion":2}}', "whole number"),
        ('{"txn":{"appId":"a","version":1,"odd":1}}', "not known: odd"),
    ],
)
def test_what_is_no_action_is_refused(line: str, said: str) -> None:
    with pytest.raises(lockgate.ValidationError, match=said):
        from_json(line, strict=True)


def test_unknown_fields_are_left_out_where_others_wrote_them() -> None:
    assert to_json(from_json('{"txn":{"appId":"a","version":1,"odd":1}}')) == '{"txn":{"appId":"a","version":1}}'


def test_a_file_with_another_deletion_vector_is_another_file() -> None:
    vector = DeletionVector("i", "abc", 3, 1)
    assert Remove("a").deletion_vector_id is None
    assert Remove("a", deletion_vector=vector).deletion_vector_id == "iabc"
    assert isinstance(from_json('{"commitInfo":{}}'), CommitInfo)
