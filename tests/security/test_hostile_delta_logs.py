"""Bytes changed anywhere in somebody's log: an error of ours, or a table that makes sense; never a crash."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from lockgate.errors import LockgateError
from lockgate.storage.log_folder import LocalLogFolder
from lockgate.txlog.existing_rows import final_row, history_of
from lockgate.txlog.existing_table import read_existing
from support.deletion_vectors import inline
from support.delta_logs import (
    add,
    info,
    metadata,
    protocol,
    remove,
    write_checkpoint,
    write_log,
    write_v2_checkpoint,
)

FEATURES = protocol(3, 7, ["deletionVectors", "v2Checkpoint"], ["deletionVectors", "v2Checkpoint"])
VECTOR = {"stats": '{"numRecords":9}', "deletionVector": inline([1, 2])}
STATE = [
    FEATURES,
    metadata(partition_by=["day"]),
    add("a", {"day": "1"}, **VECTOR),
    add("b", {"day": None}, tags={"k": "v"}),
]
WORDS = [b"null", b"true", b"-1", b"1e999", b'""', b"{}", b"[]", b'"\\ud800"', b'"\\u0000"', b"\xff", b"\0", b"9" * 20]
WORDS += [b"}", b'"', b"\n"]


def changed(content: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(content))
    match chance.randrange(5):
        case 0:
            return content[:at]
        case 1:
            return content[:at] + bytes([chance.randrange(256)]) + content[at + 1 :]
        case 2:
            return content[:at] + chance.choice(WORDS) + content[at:]
        case 3:
            end = min(len(content), at + chance.randrange(1, 40))
            return content[:at] + content[end:]
        case _:
            words = [word for word in (b"1", b'"a"', b"true", b'"day"', b"{", b":") if word in content]
            return content.replace(chance.choice(words), chance.choice(WORDS), 1) if words else content[::-1]


def made(table: Path, kind: str) -> Path:
    """A log, and the file of it that is to be changed."""
    tail = [info(), remove("b", partitionValues={"day": None}), add("c", {"day": "ü"})]
    if kind == "commit":
        write_log(table, [info(), *STATE], tail)
        return table / "_delta_log" / f"{0:020}.json"
    write_log(table, tail, first=11)
    if kind == "parquet":
        return write_checkpoint(table, 10, STATE)[0]
    manifest = write_v2_checkpoint(table, 10, STATE, form="json", sidecars=1)
    return manifest if kind == "manifest" else next((table / "_delta_log" / "_sidecars").iterdir())


@pytest.mark.parametrize("kind", ["commit", "parquet", "manifest", "sidecar"])
def test_changed_bytes_are_an_error_of_ours_or_another_table(kind: str, tmp_path: Path) -> None:
    path = made(tmp_path, kind)
    whole = path.read_bytes()
    refused = set()
    for seed in range(150):
        path.write_bytes(changed(whole, random.Random(seed)))
        try:
            table = read_existing(LocalLogFolder(tmp_path))
            for load in history_of(table, 1, "i"):
                assert all(len(row) == len(load.columns) for row in load.rows)
            final_row(table, 1, "t", "/t")
        except LockgateError as error:
            refused.add(error.in_place)
    assert refused == {"nothing was changed"}
    path.write_bytes(whole)
    assert read_existing(LocalLogFolder(tmp_path)).live_files == 2
