"""Symbolic links: what is behind one may not be ours, and is never written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lockgate.datasets.entry import merge, write_dataset
from lockgate.errors import LockgateError, StorageError
from support.leftovers import leftovers
from support.merge_outcomes import refusal_of
from support.merge_reading import by_file, values


def rows(ids: list[int], value: str) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "v": [value] * len(ids)})


@pytest.fixture
def dataset(place: Path) -> Path:
    write_dataset(rows([1, 2], "old"), place / "data")
    return place / "data"


@pytest.fixture
def outside(place: Path) -> Path:
    (place / "outside").mkdir()
    pq.write_table(rows([5, 6], "not ours"), place / "outside" / "theirs.parquet")
    return place / "outside"


WRITES: dict[str, Callable[[Path], object]] = {
    "upsert by arrow": lambda d: merge(rows([1, 5], "new"), d, strategy="upsert", key_columns="id", engine="arrow"),
    "upsert by duckdb": lambda d: merge(rows([1, 5], "new"), d, strategy="upsert", key_columns="id", engine="duckdb"),
    "full_merge": lambda d: merge(rows([1], "new"), d, strategy="full_merge", key_columns="id"),
    "append": lambda d: write_dataset(rows([9], "new"), d),
    "overwrite": lambda d: write_dataset(rows([9], "new"), d, mode="overwrite"),
    "dry run": lambda d: merge(rows([1], "new"), d, strategy="upsert", key_columns="id", dry_run=True),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES.keys())
def test_a_link_to_a_folder_inside_a_dataset_is_refused(
    dataset: Path, outside: Path, write: Callable[[Path], object]
) -> None:
    (dataset / "more").symlink_to(outside)
    before = by_file(dataset), by_file(outside)
    with pytest.raises(StorageError, match="more") as refused:
        write(dataset)
    assert refused.value.in_place in ("nothing was changed", "nothing was written")
    assert (by_file(dataset), by_file(outside)) == before
    assert leftovers(dataset) == []


def test_a_partition_that_is_a_link_is_refused(place: Path, outside: Path, engine: str) -> None:
    source = pa.table({"id": [1], "v": ["old"], "p": ["a"]})
    write_dataset(source, place / "data", partition_by="p")
    (place / "data" / "p=b").symlink_to(outside)
    with pytest.raises(StorageError, match="p=b"):
        merge(
            pa.table({"id": [5], "v": ["new"], "p": ["b"]}), place / "data",
            strategy="upsert", key_columns="id", engine=engine,
        )  # fmt: skip
    assert values(outside, "id", "v") == {5: "not ours", 6: "not ours"}


def test_a_link_to_itself_ends_in_an_error_that_names_it(dataset: Path, engine: str) -> None:
    (dataset / "round.parquet").symlink_to(dataset / "round.parquet")
    with pytest.raises(LockgateError, match="round"):
        merge(rows([1], "new"), dataset, strategy="upsert", key_columns="id", engine=engine)
    assert leftovers(dataset) == []


def test_a_link_to_nothing_ends_in_an_error_that_names_it(dataset: Path, engine: str) -> None:
    (dataset / "dangling.parquet").symlink_to(dataset / "nowhere")
    with pytest.raises(LockgateError, match="dangling") as refused:
        merge(rows([1], "new"), dataset, strategy="upsert", key_columns="id", engine=engine)
    assert "nothing was written" in refused.value.render()


def test_a_file_that_is_a_link_is_never_written_through(dataset: Path, outside: Path, engine: str) -> None:
    """Its rows are rows of the dataset; a merge puts a file in the link's place, or refuses."""
    (dataset / "linked.parquet").symlink_to(outside / "theirs.parquet")
    before = (outside / "theirs.parquet").read_bytes(), (outside / "theirs.parquet").stat().st_mtime_ns
    refused = refusal_of(WRITES[f"upsert by {engine}"], dataset)
    if refused:
        assert "linked.parquet" in refused.render()
        assert "nothing was written" in refused.render()
    else:
        assert values(dataset, "id", "v") == {1: "new", 2: "old", 5: "new", 6: "not ours"}
        assert not (dataset / "linked.parquet").is_symlink()
    assert ((outside / "theirs.parquet").read_bytes(), (outside / "theirs.parquet").stat().st_mtime_ns) == before


def test_removing_a_file_that_is_a_link_removes_the_link_alone(dataset: Path, outside: Path) -> None:
    (dataset / "linked.parquet").symlink_to(outside / "theirs.parquet")
    write_dataset(rows([9], "new"), dataset, mode="overwrite")
    assert values(dataset, "id", "v") == {9: "new"}
    assert values(outside, "id", "v") == {5: "not ours", 6: "not ours"}


def test_a_dataset_may_be_reached_by_a_link(place: Path, dataset: Path, engine: str) -> None:
    link = place / "link"
    link.symlink_to(dataset)
    merge(rows([1, 5], "new"), link, strategy="upsert", key_columns="id", engine=engine)
    assert link.is_symlink()
    assert values(dataset, "id", "v") == {1: "new", 2: "old", 5: "new"}
    assert {p.name for p in place.iterdir()} == {"data", "link"}


def test_a_lock_that_is_a_link_does_no_harm_to_what_is_behind_it(place: Path, dataset: Path) -> None:
    precious = place / "precious.txt"
    precious.write_text("keep me")
    (dataset / ".lockgate_lock").unlink(missing_ok=True)
    (dataset / ".lockgate_lock").symlink_to(precious)
    merge(rows([1], "new"), dataset, strategy="upsert", key_columns="id")
    assert precious.read_text() == "keep me"


def test_staging_left_by_a_hostile_hand_as_a_link_is_not_followed(dataset: Path, outside: Path) -> None:
    (dataset / ".staging_0000").symlink_to(outside)
    refused = refusal_of(WRITES["upsert by arrow"], dataset)
    assert refused is None or ".staging_0000" in refused.render()
    assert values(outside, "id", "v") == {5: "not ours", 6: "not ours"}
