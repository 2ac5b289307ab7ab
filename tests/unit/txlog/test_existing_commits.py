"""Commits of somebody else's log: each line is read as it stands, at once or on its own, and what is wrong is named."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pyarrow.compute as pc
import pytest

from lockgate.errors import DamagedLog
from lockgate.storage.log_folder import LocalLogFolder
from lockgate.txlog import existing_lines
from lockgate.txlog.existing_intervals import LIVE
from lockgate.txlog.existing_lines import parsed_lines
from lockgate.txlog.existing_table import ExistingTable, read_existing
from support.delta_logs import SCHEMA, add, info, metadata, protocol, remove, write_commit, write_log

VECTOR = {
    "storageType": "u",
    "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^",
    "offset": 4,
    "sizeInBytes": 40,
    "cardinality": 6,
}


def read(table: Path) -> ExistingTable:
    return read_existing(LocalLogFolder(table))


def live_at(table: ExistingTable, version: int) -> list[str]:
    adds = table.adds
    at = pc.and_(pc.less_equal(adds["version"], version), pc.greater(adds["removed_version"], version))
    return sorted(adds.filter(at)["path"].to_pylist())


def test_files_live_from_the_version_that_adds_them_to_the_one_that_removes_them(tmp_path: Path) -> None:
    write_log(
        tmp_path,
        [info(), protocol(), metadata(), add("a"), add("b")],
        [add("c"), remove("a")],
        [remove("b"), add("d")],
        [add("a")],  # the same file again, as a restore does
    )
    table = read(tmp_path)
    assert [live_at(table, v) for v in range(4)] == [["a", "b"], ["b", "c"], ["c", "d"], ["a", "c", "d"]]
    assert table.adds.filter(pc.equal(table.adds["version"], 0))["ordinal"].to_pylist() == [0, 1]


def test_a_file_added_again_while_it_lives_has_the_newer_statistics(tmp_path: Path) -> None:
    write_log(tmp_path, [protocol(), metadata(), add("a", stats="{}")], [add("a", stats='{"numRecords":3}')])
    table = read(tmp_path)
    assert [live_at(table, v) for v in range(2)] == [["a"], ["a"]]
    assert table.adds["removed_version"].to_pylist() == [1, LIVE]


def test_lines_at_once_and_on_their_own_give_the_same_table(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [
        add("a", {"day": "2026-01-01", "city": None}, stats='{"numRecords":1}', tags={"T": "1", "U": 'x"y'}),
        add("b", {"day": "", "city": "ü %"}, deletionVector=VECTOR, baseRowId=7, clusteringProvider="liquid"),
        add("c", {"day": "x", "city": "1970-01-01T00:00:00Z"}, tags={}, deletionVector=None),
    ]
    texts = [json.dumps(line, separators=(",", ":")).encode() for line in lines]
    at_once = parsed_lines("add", texts, [4, 4, 5], ["day", "city"], "t")
    monkeypatch.setattr(existing_lines, "_at_once", lambda *_: None)
    alone = parsed_lines("add", texts, [4, 4, 5], ["day", "city"], "t")
    assert at_once.to_pylist() == alone.to_pylist()
    assert at_once["partition_values"].to_pylist()[1] == '{"day":null,"city":"ü %"}'
    assert at_once["deletion_vector_id"].to_pylist() == [None, "uab^-aqEH.-t@S}K{vb[*k^@4", None]


def test_removes_at_once_and_on_their_own_give_the_same_table(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [remove("a"), remove("b", partitionValues={"day": "1"}, size=3, extendedFileMetadata=True)]
    texts = [json.dumps(line, separators=(",", ":")).encode() for line in lines]
    at_once = parsed_lines("remove", texts, [1, 2], ["day"], "t")
    monkeypatch.setattr(existing_lines, "_at_once", lambda *_: None)
    alone = parsed_lines("remove", texts, [1, 2], ["day"], "t")
    for name in at_once.column_names:
        if name != "line":
            assert at_once[name].to_pylist() == alone[name].to_pylist(), name
    assert at_once["line"].to_pylist() == [text.decode() for text in texts]


def test_fields_and_actions_that_nobody_knows_are_passed_over(tmp_path: Path) -> None:
    write_log(
        tmp_path,
        [protocol(), metadata(), add("a", newField={"x": [1]}), {"newAction": {"x": 1}}],
        [add("b"), {"cdc": {"path": "_change_data/x", "partitionValues": {}, "size": 1, "dataChange": False}}],
    )
    table = read(tmp_path)
    assert live_at(table, 1) == ["a", "b"]
    assert [commit.changes for commit in table.commits] == [0, 1]


def test_spaces_and_nulls_around_actions_are_read(tmp_path: Path) -> None:
    write_log(
        tmp_path,
        [
            protocol(),
            metadata(),
            f'  {{ "add" : {json.dumps(add("a")["add"])}, "txn": null }}',
            "",
            '{"add": {"path":"b","partitionValues":{},"size":1,"modificationTime":1,"dataChange":true}}\r',
        ],
    )
    assert live_at(read(tmp_path), 0) == ["a", "b"]


def test_partition_columns_that_change_are_read_as_each_version_has_them(tmp_path: Path) -> None:
    write_log(
        tmp_path,
        [protocol(), metadata(partition_by=["day"]), add("a", {"day": "1"})],
        [metadata(), remove("a"), add("b")],
        [metadata(partition_by=["id"]), remove("b"), add("c", {"id": "9"})],
    )
    assert read(tmp_path).adds["partition_values"].to_pylist() == ['{"day":"1"}', "{}", '{"id":"9"}']


def test_a_commit_has_its_own_time_or_its_files_and_always_a_later_one(tmp_path: Path) -> None:
    write_log(
        tmp_path,
        [info(timestamp=99), protocol(), metadata()],
        [info(inCommitTimestamp=5_000)],
        [info()],
    )
    for version, seconds in enumerate((4, 900, 2)):
        os.utime(tmp_path / "_delta_log" / f"{version:020}.json", (seconds, seconds))
    assert [commit.timestamp for commit in read(tmp_path).commits] == [4_000, 5_000, 5_001]


def test_batches_do_not_change_what_is_read(tmp_path: Path) -> None:
    from lockgate.txlog.existing_commits import read_commits
    from lockgate.txlog.existing_listing import LogFile

    write_log(tmp_path, [protocol(), metadata()], *[[add(f"f{n}"), remove(f"f{n - 1}")] for n in range(1, 30)])
    folder = LocalLogFolder(tmp_path)
    files = sorted((LogFile(*each) for each in folder.names()), key=lambda file: file.name)
    small = list(read_commits(files, 0, folder.read, "t", batch_bytes=300))
    (whole,) = read_commits(files, 0, folder.read, "t")
    assert len(small) > 5
    assert [c for batch in small for c in batch.commits] == list(whole.commits)
    assert [r for batch in small for r in batch.adds.to_pylist()] == whole.adds.to_pylist()


DAMAGE = [
    ("", "is empty"),
    ("\n \n", "is empty"),
    ('{"add":{"path":"a"', "not JSON"),
    ('{"add":{"path":"x","partitionValues":{},"size":1,"modificationTime":1}}', "no dataChange"),
    ('{"add":{"path":5,"partitionValues":{},"size":1,"modificationTime":1,"dataChange":true}}', "path"),
    ('{"add":{"path":"x","partitionValues":{},"size":1e400,"modificationTime":1,"dataChange":true}}', "size"),
    ('{"add":{"path":"x","partitionValues":{},"size":NaN,"modificationTime":1,"dataChange":true}}', "NaN"),
    (
        '{"add":{"path":"x","partitionValues":{},"size":9223372036854775808,"modificationTime":1,"dataChange":true}}',
        "size",
    ),
    ('{"add":{"path":"x","path":"y","partitionValues":{},"size":1,"modificationTime":1,"dataChange":true}}', "twice"),
    (
        '{"add":{"path":"x","partitionValues":{"day":3},"size":1,"modificationTime":1,"dataChange":true}}',
        "partitionValues",
    ),
    ('{"add":{"path":"x","partitionValues":{},"size":1,"modificationTime":1,"dataChange":true}} {"a":1}', "not JSON"),
    ('{"add":{"path":"x"},"remove":{"path":"y"}}', "several actions"),
    ("[1]", "no action"),
    ("7", "no action"),
    ("[" * 100_000, "nested"),
    ('{"commitInfo":{}}\n{"commitInfo":{}}', "2 actions commitInfo"),
    ('{"commitInfo":{"inCommitTimestamp":"soon"}}', "inCommitTimestamp"),
    ('{"txn":{"appId":"a","version":1}}\n{"txn":{"appId":"a","version":2}}', "two actions txn"),
    ('{"metaData":{"id":"x"}}', "metaData"),
    ('{"remove":{"deletionTimestamp":1,"dataChange":true}}', "no path"),
    ('{"remove":{"path":"a","dataChange":true}}\n{"remove":{"path":"a","dataChange":true}}', "two things"),
    ('{"remove":{"path":"a","dataChange":true}}\n' + json.dumps(add("a")), "two things"),
    ("\x00", "not JSON"),
]


@pytest.mark.parametrize(("content", "said"), DAMAGE, ids=[said + str(n) for n, (_, said) in enumerate(DAMAGE)])
def test_damage_is_named_with_its_file(content: str, said: str, tmp_path: Path) -> None:
    write_log(tmp_path, [protocol(), metadata(), add("a")])
    (tmp_path / "_delta_log" / f"{1:020}.json").write_text(content)
    with pytest.raises(DamagedLog) as raised:
        read(tmp_path)
    assert said in raised.value.message
    assert "version 1" in raised.value.message or f"{1:020}.json" in raised.value.message
    assert raised.value.in_place == "nothing was changed"


def test_bytes_that_are_no_text_are_named(tmp_path: Path) -> None:
    write_log(tmp_path, [protocol(), metadata()])
    line = json.dumps(add("x"), separators=(",", ":")).encode().replace(b'"x"', b'"\xff"')
    (tmp_path / "_delta_log" / f"{1:020}.json").write_bytes(line)
    with pytest.raises(DamagedLog, match="not JSON"):
        read(tmp_path)


def test_a_table_without_protocol_or_metadata_is_refused(tmp_path: Path) -> None:
    write_commit(tmp_path, 0, [metadata(), add("a")])
    with pytest.raises(DamagedLog, match="before any protocol"):
        read(tmp_path)
    write_commit(tmp_path, 0, [protocol(), add("a")])
    with pytest.raises(DamagedLog, match="before any metaData"):
        read(tmp_path)


@pytest.mark.parametrize("value", ["soon", "2026-13-01", "1e400"])
def test_a_partition_value_that_is_none_of_its_column_is_refused(value: str, tmp_path: Path) -> None:
    schema = [SCHEMA[0], {**SCHEMA[1], "type": "date"}]
    write_log(tmp_path, [protocol(), metadata(schema, ["day"]), add("a", {"day": value})])
    with pytest.raises(DamagedLog, match="partition values"):
        read(tmp_path)
    write_log(tmp_path, [protocol(), metadata(schema, ["day"]), add("a", {"day": "2026-01-31"})])
    assert read(tmp_path).live_files == 1
