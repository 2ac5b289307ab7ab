"""Sources of no columns, of a thousand, and with keys larger than anybody planned for."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pyarrow as pa
import pytest

from lockgate.datasets.entry import merge, write_dataset
from lockgate.errors import LockgateError
from support.merge_outcomes import refusal_of
from support.merge_reading import all_rows, by_file, values


@pytest.fixture
def dataset(place: Path) -> Path:
    write_dataset(pa.table({"id": [1, 2], "v": ["old", "old"]}), place / "data")
    return place / "data"


@pytest.mark.parametrize("strategy", ["insert", "update", "upsert", "full_merge", "deduplicate"])
@pytest.mark.parametrize("length", [0, 3])
def test_a_source_of_no_columns_is_refused(dataset: Path, strategy: str, length: int, engine: str) -> None:
    before = by_file(dataset)
    nothing = pa.table({"id": [0] * length}).select([])
    with pytest.raises(LockgateError) as refused:
        merge(nothing, dataset, strategy=strategy, key_columns="id", engine=engine)
    assert isinstance(refused.value, ValueError)
    assert "nothing was written" in refused.value.render()
    assert by_file(dataset) == before


@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_a_write_of_no_columns_is_refused(dataset: Path, mode: Literal["append", "overwrite"]) -> None:
    """An overwrite by it would leave a dataset without a schema."""
    before = by_file(dataset)
    with pytest.raises(LockgateError) as refused:
        write_dataset(pa.table({"id": [0]}).select([]), dataset, mode=mode)
    assert "nothing was written" in refused.value.render()
    assert by_file(dataset) == before


def test_a_dataset_is_not_made_from_no_columns(place: Path) -> None:
    with pytest.raises(LockgateError):
        write_dataset(pa.table({"id": [0]}).select([]), place / "new")
    assert not (place / "new").exists() or by_file(place / "new") == {}


@pytest.mark.parametrize("keys", [[], [""], ["missing"], ["id", "id"]])
def test_keys_that_are_none_are_refused(dataset: Path, keys: list[str], engine: str) -> None:
    before = by_file(dataset)
    source = pa.table({"id": [1], "v": ["new"]})
    refused = refusal_of(
        lambda: merge(source, dataset, strategy="upsert", key_columns=keys, engine=engine)
    )  # fmt: skip
    if refused:
        assert isinstance(refused, ValueError)
        assert by_file(dataset) == before
    else:
        assert keys == ["id", "id"], "a key named twice is still a key"
        assert values(dataset, "id", "v") == {1: "new", 2: "old"}


def test_a_thousand_columns(place: Path, engine: str) -> None:
    names = [f"c{number}" for number in range(1_000)]  # such names that our own SQL gives to columns
    old = pa.table({"id": [1, 2], **{name: [f"{name} one", f"{name} two"] for name in names}})
    new = pa.table({**{name: [f"{name} TWO", f"{name} THREE"] for name in reversed(names)}, "id": [2, 3]})
    write_dataset(old, place / "data")
    merge(new, place / "data", strategy="upsert", key_columns="id", engine=engine)
    found = {dict(row)["id"]: dict(row) for row in all_rows(place / "data")}
    for id, word in ((1, "one"), (2, "TWO"), (3, "THREE")):
        assert found[id] == {"id": id} | {name: f"{name} {word}" for name in names}


def test_huge_keys_that_differ_at_their_very_end(place: Path, engine: str) -> None:
    """Statistics of such columns are cut short or left out: what is cut must not be taken for equal, or for absent."""
    keys = ["k" * 1_000_000 + end for end in ("a", "b", "c", "")]
    write_dataset(pa.table({"key": keys[:3], "v": ["old"] * 3}), place / "data")
    source = pa.table({"key": [keys[1], keys[3]], "v": ["new", "new"]})
    result = merge(source, place / "data", strategy="upsert", key_columns="key", engine=engine)
    assert (result.updated, result.inserted) == (1, 1)
    found = values(place / "data", "key", "v")
    assert found == {keys[0]: "old", keys[1]: "new", keys[2]: "old", keys[3]: "new"}


def test_the_words_about_a_huge_key_are_not_huge(place: Path, engine: str) -> None:
    key = "k" * 1_000_000
    source = pa.table({"key": [key, key], "v": ["a", "b"]})
    with pytest.raises(LockgateError) as refused:
        merge(source, place / "data", strategy="upsert", key_columns="key", engine=engine)
    assert len(refused.value.render()) < 10_000
