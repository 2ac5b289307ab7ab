"""Datasets and files of any name that a disk can hold: merged, or refused in so many words, and never misread."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from lockgate.datasets.entry import merge
from lockgate.errors import ArgumentError
from support.merge_hostile_names import FILE_NAMES
from support.merge_outcomes import refusal_of
from support.merge_reading import by_file, values

LONGEST = "x" * 247  # with .parquet it is 255 bytes, the most that a disk takes
NAMES = FILE_NAMES | {"longest": LONGEST, "longest unicode": "é" * 123}
# What the patterns among the names would match, if somebody took them for patterns.
DECOYS = ("a", "ab", "b", "a1", "it", "x", "back", "e", "100", "é")


def rows(ids: list[int], value: str) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "v": [value] * len(ids)})


def write_file(path: Path, table: pa.Table) -> None:
    with path.open("wb") as file:
        pq.write_table(table, file)


def merge_or_refuse(source: pa.Table, folder: Path, strategy: str, engine: str) -> bool:
    """Whether it was merged. Only DuckDB may refuse, only for the path, and without a trace."""
    before = by_file(folder)
    refused = refusal_of(
        lambda: merge(source, str(folder), strategy=strategy, key_columns="id", engine=engine)
    )  # fmt: skip
    if refused:
        assert engine == "duckdb"
        assert isinstance(refused, ArgumentError)
        assert isinstance(refused, ValueError)
        assert "nothing was written" in refused.render()
        assert by_file(folder) == before
        return False
    return True


def test_files_of_these_names_are_read_and_their_neighbours_are_not(place: Path, engine: str) -> None:
    folder = place / "data"
    folder.mkdir()
    for number, name in enumerate(NAMES.values()):
        write_file(folder / f"{name}.parquet", rows([number * 10, number * 10 + 1], "old"))
    for number, decoy in enumerate(DECOYS):
        write_file(folder / f"{decoy}.parquet", rows([-number * 10, -number * 10 - 1], "decoy"))
    before = by_file(folder)
    ids = [number * 10 + 1 for number in range(len(NAMES))]
    if not merge_or_refuse(rows([*ids, 5_000], "new"), folder, "upsert", engine):
        return
    after = by_file(folder)
    for number, name in enumerate(NAMES.values()):
        old, new = (("id", number * 10), ("v", "old")), (("id", number * 10 + 1), ("v", "new"))
        assert after.pop(f"{name}.parquet") == [old, new], name
    (added,) = after.keys() - before.keys()
    assert after.pop(added) == [(("id", 5_000), ("v", "new"))]
    assert after == {f"{decoy}.parquet": before[f"{decoy}.parquet"] for decoy in DECOYS}


def test_datasets_of_these_names_are_merged_and_their_neighbours_are_not(place: Path, engine: str) -> None:
    names = {name: place / name for name in [*FILE_NAMES.values(), "x" * 255]}
    decoys = [place / decoy for decoy in DECOYS]
    for folder in (*names.values(), *decoys):
        folder.mkdir()
        write_file(folder / "part.parquet", rows([1, 2], folder.name))
    others = {p.name for p in place.iterdir()}
    for name, folder in names.items():
        if merge_or_refuse(rows([2, 3], f"new {name}"), folder, "upsert", engine):
            assert values(folder, "id", "v") == {1: name, 2: f"new {name}", 3: f"new {name}"}
    assert {p.name for p in place.iterdir()} == others, "something was made beside the datasets"
    for decoy in decoys:
        assert values(decoy, "id", "v") == {1: decoy.name, 2: decoy.name}


def test_a_pattern_does_not_stand_for_the_files_it_matches(place: Path, engine: str) -> None:
    """Each of these names matches others of them, and each file is merged as itself alone."""
    folder = place / "data"
    folder.mkdir()
    names = ["a*", "ab", "a?", "[ab]", "a", "b", "{a,b}", "*", "**", "a[b]", "[!x]"]
    for number, name in enumerate(names):
        write_file(folder / f"{name}.parquet", rows([number * 10, number * 10 + 1], "old"))
    merge(rows([n * 10 for n in range(len(names))], "new"), folder, strategy="update", key_columns="id", engine=engine)
    for number, name in enumerate(names):
        found = dict(tuple(value for _, value in row) for row in by_file(folder)[f"{name}.parquet"])
        assert found == {number * 10: "new", number * 10 + 1: "old"}, name


def test_a_source_file_of_any_name_is_read_as_itself(place: Path) -> None:
    for number, name in enumerate(["a*", "ab", "[ab]", "a", "it's", "a;b", "%61"]):
        write_file(place / f"{name}.parquet", rows([number], name))
    for number, name in enumerate(["a*", "ab", "[ab]", "a", "it's", "a;b", "%61"]):
        folder = place / "data" / str(number)
        merge(str(place / f"{name}.parquet"), folder, strategy="upsert", key_columns="id")
        assert values(folder, "id", "v") == {number: name}
