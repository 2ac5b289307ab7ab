"""Deletion vectors of every layout are read exactly; damaged ones are named."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from lockgate.errors import DamagedLog
from lockgate.txlog.action_json import vector_from
from lockgate.txlog.deletion_vectors import deleted_rows, file_of, from_z85
from support.deletion_vectors import in_file, inline, z85

SETS = {
    "none": [],
    "one": [0],
    "few": [3, 4, 7, 11, 18, 29],
    "list": list(range(0, 8_000, 2)),
    "bits": list(range(0, 60_000, 3)),
    "full": list(range(65_536)),
    "containers": [0, 65_535, 65_536, 200_000, 1_000_000, 2**32 - 1],
    "buckets": [5, 2**32 + 5, 2**40, 2**62],
    "mixed": sorted(random.Random(1).sample(range(400_000), 50_000)),
}


@pytest.mark.parametrize("name", list(SETS))
@pytest.mark.parametrize("runs", [False, True])
def test_rows_of_every_layout(name: str, runs: bool) -> None:
    rows = SETS[name]
    assert deleted_rows(vector_from(inline(rows, runs=runs)), lambda _: b"").to_pylist() == rows


def test_several_vectors_in_one_file(tmp_path: Path) -> None:
    sets = [[1, 2], list(range(70_000)), [9]]
    for body, rows in zip(in_file(tmp_path, sets, "ab"), sets, strict=True):
        vector = vector_from(body)
        assert (file_of(vector) or "").startswith("ab/deletion_vector_")
        assert deleted_rows(vector, lambda name: (tmp_path / name).read_bytes()).to_pylist() == rows


def changed(body: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {**body, **fields}


def test_damage_is_found(tmp_path: Path) -> None:
    (body,) = in_file(tmp_path, [[1, 2, 3]])
    path = next(tmp_path.glob("*.bin"))
    whole = path.read_bytes()
    damaged = {
        "checksum": whole[:-6] + b"\xff" + whole[-5:],
        "cut": whole[:-1],
        "empty": b"",
        "version": b"\x02" + whole[1:],
    }
    for content in damaged.values():
        with pytest.raises(DamagedLog):
            deleted_rows(vector_from(body), lambda _, content=content: content)  # type: ignore[misc]
    for fields in ({"cardinality": 4}, {"sizeInBytes": 3}, {"offset": 2}, {"offset": 10_000}):
        with pytest.raises(DamagedLog):
            deleted_rows(vector_from(changed(body, **fields)), lambda _: whole)


@pytest.mark.parametrize(
    "body",
    [
        changed(inline([1]), pathOrInlineDv="abc"),
        changed(inline([1]), pathOrInlineDv="~~~~~"),
        changed(inline([1]), pathOrInlineDv="#####"),
        changed(inline([1]), pathOrInlineDv=z85(b"\0" * 40), sizeInBytes=40),
        changed(inline([1]), sizeInBytes=400),
        changed(inline(list(range(9_000))), sizeInBytes=60),
        changed(inline([1]), storageType="x"),
        changed(inline([1]), storageType="u", pathOrInlineDv="short"),
    ],
)
def test_texts_that_are_no_vector_are_named(body: dict[str, Any]) -> None:
    with pytest.raises(DamagedLog):
        deleted_rows(vector_from(body), lambda _: b"")


def test_any_cut_of_a_vector_is_an_error_of_ours() -> None:
    for rows in (SETS["few"], SETS["bits"][:5_000], SETS["buckets"]):
        body = inline(rows, runs=len(rows) > 10)
        data = from_z85(body["pathOrInlineDv"])[: body["sizeInBytes"]]
        for size in range(0, len(data), max(1, len(data) // 40)):
            short = vector_from(changed(body, pathOrInlineDv=z85(data[:size]), sizeInBytes=size))
            with pytest.raises(DamagedLog):
                deleted_rows(short, lambda _: b"")
