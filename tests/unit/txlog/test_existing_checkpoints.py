"""Checkpoints of every kind give the state that their commits gave, and a log is read from the oldest one it needs."""

from __future__ import annotations

import datetime
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from lockgate.errors import DamagedLog
from lockgate.storage.log_folder import LocalLogFolder
from lockgate.txlog.existing_intervals import LIVE
from lockgate.txlog.existing_table import ExistingTable, read_existing
from support.delta_logs import (
    add,
    metadata,
    protocol,
    remove,
    write_checkpoint,
    write_commit,
    write_log,
    write_v2_checkpoint,
)

V2 = protocol(3, 7, ["v2Checkpoint", "domainMetadata"], ["v2Checkpoint"])
STATE: list[Any] = [
    V2,
    metadata(partition_by=["day"], delta__appendOnly="false"),
    {"txn": {"appId": "loader", "version": 3, "lastUpdated": 9}},
    {"domainMetadata": {"domain": "mine", "configuration": "{}", "removed": False}},
    add("a", {"day": "1"}, stats='{"numRecords":1}', tags={"T": "1"}),
    add("b", {"day": None}),
    add("c", {"day": "ü"}),
    remove("z"),
]


def read(table: Path) -> ExistingTable:
    return read_existing(LocalLogFolder(table))


def live(table: ExistingTable) -> list[str]:
    return sorted(table.adds.filter(pc.equal(table.adds["removed_version"], LIVE))["path"].to_pylist())


def write_tail(table: Path, first: int = 11) -> None:
    write_commit(table, first, [remove("a", partitionValues={"day": "1"}), add("d", {"day": "2"})])


@pytest.mark.parametrize("kind", ["classic", "parts", "json", "json+2", "parquet", "parquet+2", "classic-v2"])
def test_every_kind_of_checkpoint_is_the_first_version(kind: str, tmp_path: Path) -> None:
    write_tail(tmp_path)
    match kind:
        case "classic":
            write_checkpoint(tmp_path, 10, STATE)
        case "parts":
            write_checkpoint(tmp_path, 10, STATE, parts=3)
        case "classic-v2":
            write_v2_checkpoint(tmp_path, 10, STATE, form="parquet", sidecars=2, classic_name=True)
        case _:
            form, _, sidecars = kind.partition("+")
            write_v2_checkpoint(tmp_path, 10, STATE, form=form, sidecars=int(sidecars or 0))
    table = read(tmp_path)
    assert (table.first, table.last) == (10, 11)
    assert live(table) == ["b", "c", "d"]
    assert sorted(table.adds.filter(pc.equal(table.adds["version"], 10))["path"].to_pylist()) == ["a", "b", "c"]
    base = table.commits[0]
    assert base.transactions[0].version == 3
    assert base.domains[0].domain == "mine"
    assert base.metadata is not None
    assert base.metadata.partition_columns == ("day",)
    rows = {row["path"]: row for row in table.adds.to_pylist()}
    assert rows["a"]["partition_values"] == '{"day":"1"}'
    assert (rows["a"]["stats"], rows["a"]["tags"]) == ('{"numRecords":1}', '{"T":"1"}')
    assert rows["b"]["partition_values"] == '{"day":null}'
    assert json.loads(table.removes["line"][0].as_py())["remove"]["path"] == "z"
    assert "versions before 10" in table.notes[0]


def test_all_versions_are_read_where_all_commits_are_there(tmp_path: Path) -> None:
    write_log(tmp_path, [protocol(), metadata(), add("a")], [add("b")], [remove("a")])
    write_checkpoint(tmp_path, 1, [protocol(), metadata(), add("a"), add("b")])
    table = read(tmp_path)
    assert (table.first, table.last, table.notes) == (0, 2, ())


def test_the_oldest_checkpoint_that_leads_to_the_end_is_the_first_version(tmp_path: Path) -> None:
    for version in (4, 5, 6, 7, 8):
        write_commit(tmp_path, version, [add(f"f{version}")])
    for version in (2, 5, 7):
        state = [protocol(), metadata(), *[add(f"f{n}") for n in range(4, version + 1)]]
        write_checkpoint(tmp_path, version, state)
    table = read(tmp_path)
    assert (table.first, table.last) == (5, 8)
    assert live(table) == ["f4", "f5", "f6", "f7", "f8"]


def test_a_gap_that_no_checkpoint_bridges_is_named(tmp_path: Path) -> None:
    write_log(tmp_path, [protocol(), metadata()], [add("a")], [add("b")], [add("c")])
    (tmp_path / "_delta_log" / f"{2:020}.json").unlink()
    with pytest.raises(DamagedLog, match="commit of version 2 is missing"):
        read(tmp_path)
    write_checkpoint(tmp_path, 2, [protocol(), metadata(), add("a"), add("b")])
    assert read(tmp_path).first == 2


def test_a_checkpoint_with_missing_parts_is_none(tmp_path: Path) -> None:
    write_tail(tmp_path)
    paths = write_checkpoint(tmp_path, 10, STATE, parts=3)
    paths[1].unlink()
    with pytest.raises(DamagedLog, match="commit of version 10 is missing"):
        read(tmp_path)


def test_statistics_in_columns_become_text(tmp_path: Path) -> None:
    bounds = {
        "id": 3,
        "ratio": 0.5,
        "nan": float("nan"),
        "name": 'a"b\\c',
        "day": datetime.date(2026, 1, 2),
        "at": datetime.datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=datetime.UTC),
        "local": datetime.datetime(2026, 1, 2, 3, 4, 5),
        "cost": Decimal("1.50"),
        "in": {"x": 1, "y": None},
    }
    type_ = pa.struct(
        [
            ("id", pa.int64()),
            ("ratio", pa.float64()),
            ("nan", pa.float64()),
            ("name", pa.string()),
            ("day", pa.date32()),
            ("at", pa.timestamp("us", "UTC")),
            ("local", pa.timestamp("us")),
            ("cost", pa.decimal128(9, 2)),
            ("in", pa.struct([("x", pa.int32()), ("y", pa.int32())])),
        ]
    )
    parsed = pa.struct([("numRecords", pa.int64()), ("minValues", type_)])
    added = [
        add("a", stats_parsed={"numRecords": 2, "minValues": bounds}),
        add("b"),
        add("c", stats='{"numRecords":9}'),
    ]
    write_checkpoint(tmp_path, 0, [protocol(), metadata(), *added], more={"add": [("stats_parsed", parsed)]})
    rows = {row["path"]: row["stats"] for row in read(tmp_path).adds.to_pylist()}
    assert json.loads(rows["a"]) == {
        "numRecords": 2,
        "minValues": {
            "id": 3,
            "ratio": 0.5,
            "name": 'a"b\\c',
            "day": "2026-01-02",
            "at": "2026-01-02T03:04:05.678901Z",
            "local": "2026-01-02T03:04:05.000000",
            "cost": 1.5,
            "in": {"x": 1},
        },
    }
    assert rows["b"] is None
    assert rows["c"] == '{"numRecords":9}'


def test_damaged_checkpoints_are_named(tmp_path: Path) -> None:
    write_tail(tmp_path)
    (path,) = write_checkpoint(tmp_path, 10, STATE)
    whole = path.read_bytes()
    for content in (b"", b"PAR1", whole[: len(whole) // 2], whole[:200] + b"\0" * 50 + whole[250:]):
        path.write_bytes(content)
        with pytest.raises(DamagedLog) as raised:
            read(tmp_path)
        assert path.name in raised.value.message
    write_checkpoint(tmp_path, 10, STATE[2:])
    with pytest.raises(DamagedLog, match="0 protocol and 0 metaData"):
        read(tmp_path)


@pytest.mark.parametrize(
    "path", ["../../x.parquet", "..", "", "/etc/passwd", "s3://b/_sidecars/x.parquet", "a%2F..%2Fb"]
)
def test_a_sidecar_elsewhere_is_refused(path: str, tmp_path: Path) -> None:
    write_tail(tmp_path)
    manifest = write_v2_checkpoint(tmp_path, 10, STATE, form="json", sidecars=1)
    sidecar = {"sidecar": {"path": path, "sizeInBytes": 1, "modificationTime": 1}}
    manifest.write_text(manifest.read_text() + json.dumps(sidecar) + "\n")
    with pytest.raises(DamagedLog, match=r"sidecar|_sidecars"):
        read(tmp_path)


def test_a_missing_sidecar_and_a_wrong_version_are_named(tmp_path: Path) -> None:
    write_tail(tmp_path)
    manifest = write_v2_checkpoint(tmp_path, 10, STATE, form="json", sidecars=2)
    sidecar = next((tmp_path / "_delta_log" / "_sidecars").iterdir())
    sidecar.unlink()
    with pytest.raises(DamagedLog, match=f"{sidecar.name} is missing"):
        read(tmp_path)
    manifest.write_text(manifest.read_text().replace('"version":10', '"version":9', 1))
    with pytest.raises(DamagedLog, match="checkpoint of version 9"):
        read(tmp_path)


def test_a_checkpoint_of_another_table_is_found_out(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, 10, [protocol(), metadata(), add("other")])
    write_commit(tmp_path, 10, [add("mine")])
    with pytest.raises(DamagedLog, match="lacks files that its commit added"):
        read(tmp_path)


def test_a_log_that_lost_its_end_is_found_out(tmp_path: Path) -> None:
    write_log(tmp_path, [protocol(), metadata(), add("a")])
    hint = tmp_path / "_delta_log" / "_last_checkpoint"
    hint.write_text('{"version":7,"size":3}')
    with pytest.raises(DamagedLog, match="speaks of version 7, and the newest version there is 0"):
        read(tmp_path)
    for content in ("", "{", "[]", '{"version":"x"}', '{"version":0}'):
        hint.write_text(content)
        assert read(tmp_path).last == 0


def test_a_count_of_files_that_is_another_is_found_out(tmp_path: Path) -> None:
    write_log(tmp_path, [protocol(), metadata(), add("a")])
    checksum = tmp_path / "_delta_log" / f"{0:020}.crc"
    checksum.write_text('{"numFiles":2}')
    with pytest.raises(DamagedLog, match="version 0 has 2 files"):
        read(tmp_path)
    checksum.write_text('{"numFiles":1}')
    assert read(tmp_path).live_files == 1


@pytest.mark.parametrize("name", [f"{1:021}.json", "1.json", "0000.json"])
def test_a_commit_with_another_number_of_digits_is_refused(name: str, tmp_path: Path) -> None:
    write_log(tmp_path, [protocol(), metadata()])
    (tmp_path / "_delta_log" / name).write_text("{}")
    with pytest.raises(DamagedLog, match="20 digits"):
        read(tmp_path)


def test_other_names_are_passed_over(tmp_path: Path) -> None:
    write_log(tmp_path, [protocol(), metadata()])
    folder = tmp_path / "_delta_log"
    for name in ("notes.txt", f"{0:020}.json.tmp", f"{0:020}.{1:020}.compacted.json", ".00.json.crc", "_commits.json"):
        (folder / name).write_text("nothing")
    (folder / f"{1:020}.json").mkdir()
    assert read(tmp_path).last == 0


def test_an_empty_folder_is_no_table(tmp_path: Path) -> None:
    (tmp_path / "_delta_log").mkdir()
    with pytest.raises(DamagedLog, match="no Delta table"):
        read(tmp_path)
