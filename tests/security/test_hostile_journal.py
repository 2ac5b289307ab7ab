"""A journal from a hostile or clumsy hand: it is refused, and moves or removes nothing."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lockgate
from lockgate.datasets.entry import merge, write_dataset
from lockgate.errors import JournalError, LockgateError
from lockgate.targets.journal import JOURNAL_NAME
from support.merge_reading import by_file


def rows(ids: list[int], value: str) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "v": [value] * len(ids)})


@pytest.fixture
def dataset(place: Path) -> Path:
    write_dataset(rows([1, 2], "old"), place / "data")
    (place / "precious.txt").write_text("keep me")
    (place / "data" / "bait.parquet.staged").write_text("bait")
    return place / "data"


def signed(body: Any) -> bytes:
    digest = hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
    return json.dumps({"body": body, "sha256": digest}).encode()


def body(**changed: Any) -> dict[str, Any]:
    return {"format": 1, "id": "x", "staging": ".staging_x", "moves": [], "removes": []} | changed


OUTWARD = {
    "moves a file out": body(moves=[["bait.parquet.staged", "../loot.txt"]]),
    "moves a file out by a detour": body(moves=[["bait.parquet.staged", "p=1/../../loot.txt"]]),
    "moves over a file outside": body(moves=[["bait.parquet.staged", "../precious.txt"]]),
    "moves a file in from outside": body(moves=[["../precious.txt", "stolen.parquet"]]),
    "removes a file outside": body(removes=["../precious.txt"]),
    "removes by an absolute path": body(removes=["/precious.txt"]),
    "clears a file outside": body(clears=["../precious.txt"]),
    "stages outside": body(staging="../elsewhere"),
    "empty path": body(removes=[""]),
    "nul": body(removes=["a\0b"]),
    "path that is a number": body(removes=[7]),
    "moves that are no pairs": body(moves=[["bait.parquet.staged"]]),
    "moves that are no list": body(moves=7),
    "removes that are null": body(removes=None),
    "another format": body(format=99),
    "no format": {"id": "x"},
    "a list": [1, 2],
    "null": None,
}
BROKEN = {
    "empty": b"",
    "not JSON": b"\x00\xff garbage",
    "half of it": signed(body(removes=["0.parquet"]))[:40],
    "another checksum": signed(body()).replace(b'"id": "x"', b'"id": "y"'),
    "no checksum": json.dumps({"body": body(removes=["../precious.txt"])}).encode(),
    "a number": b"7",
    "a deep nest": b"[" * 100_000,
}
JOURNALS = {name: signed(text) for name, text in OUTWARD.items()} | BROKEN


@pytest.mark.parametrize("text", JOURNALS.values(), ids=JOURNALS.keys())
def test_it_is_refused_and_nothing_moves(place: Path, dataset: Path, text: bytes) -> None:
    (dataset / JOURNAL_NAME).write_bytes(text)
    before = by_file(dataset), sorted(p.name for p in dataset.iterdir())
    for use in (
        lambda: merge(rows([1], "new"), dataset, strategy="upsert", key_columns="id"),
        lambda: merge(rows([1], "new"), dataset, strategy="upsert", key_columns="id", dry_run=True),
        lambda: write_dataset(rows([9], "new"), dataset, mode="overwrite"),
        lambda: lockgate.recover(dataset),
    ):
        with pytest.raises(JournalError) as refused:
            use()
        assert str(dataset) in refused.value.render()
        assert refused.value.in_place, "it does not say what is in place now"
        assert refused.value.hint, "it does not say what to do"
        assert (by_file(dataset), sorted(p.name for p in dataset.iterdir())) == before
    assert (place / "precious.txt").read_text() == "keep me"
    assert {p.name for p in place.iterdir()} == {"data", "precious.txt"}


@pytest.mark.parametrize(
    "change",
    [
        body(moves=[["bait.parquet.staged", "way/loot.txt"]]),
        body(moves=[["way/precious.txt", "stolen.parquet"]]),
        body(removes=["way/precious.txt"]),
    ],
)
def test_a_link_leads_it_out_of_the_folder_no_more_than_dots_do(
    place: Path, dataset: Path, change: dict[str, Any]
) -> None:
    (dataset / "way").symlink_to(place)
    (dataset / JOURNAL_NAME).write_bytes(signed(change))
    with pytest.raises(JournalError, match="way"):
        lockgate.recover(dataset)
    assert (place / "precious.txt").read_text() == "keep me"
    assert {p.name for p in place.iterdir()} == {"data", "precious.txt"}


def test_a_journal_that_is_a_folder_is_an_error_that_names_it(dataset: Path) -> None:
    (dataset / JOURNAL_NAME).mkdir()
    before = by_file(dataset)
    with pytest.raises(LockgateError, match="lockgate_journal"):
        merge(rows([1], "new"), dataset, strategy="upsert", key_columns="id")
    assert by_file(dataset) == before


def test_a_journal_whose_files_are_gone_is_kept_and_says_so(dataset: Path) -> None:
    (dataset / JOURNAL_NAME).write_bytes(signed(body(moves=[[".staging_x/gone.parquet", "new.parquet"]])))
    before = by_file(dataset)
    with pytest.raises(JournalError, match=r"gone\.parquet"):
        merge(rows([1], "new"), dataset, strategy="upsert", key_columns="id")
    assert by_file(dataset) == before
    assert (dataset / JOURNAL_NAME).exists()
