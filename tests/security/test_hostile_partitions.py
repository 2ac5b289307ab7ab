"""Partition values and columns of any text: they become folder names inside the dataset, and come back as they were."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
import pytest

from lockgate.datasets.entry import merge, write_dataset
from lockgate.errors import LockgateError, SchemaMismatchError
from lockgate.targets.journal import JOURNAL_NAME
from support.leftovers import leftovers
from support.merge_hostile_names import TEXTS
from support.merge_reading import all_rows, by_file, data_files

VALUES = [*TEXTS.values(), "é" * 100, " ", "007", "p=1", "%", "%%2F", "%25"]


def rows(values: list[str], text: str, name: str = "p") -> pa.Table:
    return pa.table({"id": list(range(len(values))), "v": [text] * len(values), name: values})


def found(folder: Path, name: str = "p") -> dict[int, tuple[str, str]]:
    seen: dict[int, tuple[str, str]] = {}
    for row in all_rows(folder).elements():
        columns = dict(row)
        assert columns["id"] not in seen, "a row is there twice: its partition was not found again"
        seen[columns["id"]] = columns[name], columns["v"]
    return seen


def everything_in(place: Path) -> set[str]:
    return {p.name for p in place.iterdir()}


def test_values_stay_inside_and_are_found_again(place: Path, engine: str) -> None:
    folder = place / "data"
    merge(rows(VALUES, "old"), folder, strategy="upsert", key_columns="id", partition_by="p", engine=engine)
    assert everything_in(place) == {"data"}
    assert all(len(file.relative_to(folder).parts) == 2 for file in data_files(folder)), "a value made a folder more"
    assert found(folder) == {n: (value, "old") for n, value in enumerate(VALUES)}
    merge(rows(VALUES, "new"), folder, strategy="upsert", key_columns="id", engine=engine)
    assert found(folder) == {n: (value, "new") for n, value in enumerate(VALUES)}
    merge(rows(VALUES, "newer"), folder, strategy="full_merge", key_columns=["id", "p"], engine=engine)
    assert found(folder) == {n: (value, "newer") for n, value in enumerate(VALUES)}
    assert len(data_files(folder)) == len(VALUES)
    assert everything_in(place) == {"data"}


def test_other_readers_find_the_values_too(place: Path) -> None:
    import pyarrow.dataset as ds

    write_dataset(rows(VALUES, "old"), place / "data", partition_by="p")
    hive = ds.partitioning(pa.schema([("p", pa.string())]), flavor="hive")
    table = ds.dataset(place / "data", partitioning=hive, format="parquet").to_table()
    assert dict(zip(table["id"].to_pylist(), table["p"].to_pylist(), strict=True)) == dict(enumerate(VALUES))


@pytest.mark.parametrize(
    "name", ["x/../..", "a/b", "a=b", "it's", 'x"; DROP TABLE t; --', "%2e%2e", "_p", "a*", "a b\n"]
)
def test_a_partition_column_of_that_name_stays_inside(place: Path, name: str, engine: str) -> None:
    folder = place / "data"
    source = rows(["..", "x"], "old", name)
    merge(source, folder, strategy="upsert", key_columns="id", partition_by=name, engine=engine)
    assert everything_in(place) == {"data"}
    assert {unquote(f.parent.name.split("=", 1)[0]) for f in data_files(folder)} == {name}
    merge(rows(["..", "x"], "new", name), folder, strategy="upsert", key_columns="id", engine=engine)
    assert found(folder, name) == {0: ("..", "new"), 1: ("x", "new")}


@pytest.mark.parametrize("name", [".hidden", "..", ""])
def test_a_partition_column_that_would_hide_the_rows_is_refused(place: Path, name: str) -> None:
    with pytest.raises(LockgateError) as refused:
        write_dataset(rows(["x"], "old", name), place / "data", partition_by=name)
    assert "nothing was written" in refused.value.render()
    assert data_files(place / "data") == []


@pytest.mark.parametrize("value", ["", "__HIVE_DEFAULT_PARTITION__"])
def test_a_value_that_would_come_back_as_null_is_refused(place: Path, value: str, engine: str) -> None:
    with pytest.raises(SchemaMismatchError, match="NULL"):
        merge(
            rows([value], "x"), place / "data", strategy="upsert", key_columns="id", partition_by="p", engine=engine
        )  # fmt: skip
    assert data_files(place / "data") == []


@pytest.mark.parametrize(
    "value", ["x" * 300, "/" * 100, "日" * 100], ids=["long", "long when escaped", "long in bytes"]
)
def test_a_value_too_long_for_a_folder_is_refused_before_anything_is_decided(place: Path, value: str) -> None:
    """Found only when the folder is made, it would leave a journal that nobody can ever finish."""
    folder = place / "data"
    write_dataset(rows(["a", "b"], "old"), folder, partition_by="p")
    before = by_file(folder)
    for write in (
        lambda: merge(rows(["a", "b", value], "new"), folder, strategy="upsert", key_columns="id"),
        lambda: write_dataset(rows([value], "new"), folder),
        lambda: write_dataset(rows([value], "new"), folder, mode="overwrite", partition_by="p"),
    ):
        with pytest.raises(LockgateError) as refused:
            write()
        assert not (folder / JOURNAL_NAME).exists(), "decided, and impossible to finish"
        assert "nothing was written" in refused.value.render()
        assert by_file(folder) == before
        assert leftovers(folder) == []
    merge(rows(["a", "b"], "new"), folder, strategy="upsert", key_columns="id")
    assert found(folder) == {0: ("a", "new"), 1: ("b", "new")}


def test_a_file_where_a_partition_folder_is_needed_is_found_before_anything_is_decided(place: Path) -> None:
    folder = place / "data"
    write_dataset(rows(["a"], "old"), folder, partition_by="p")
    (folder / "p=b").write_text("in the way")
    before = by_file(folder)
    with pytest.raises(LockgateError) as refused:
        merge(rows(["a", "b"], "new"), folder, strategy="upsert", key_columns="id")
    assert "p=b" in refused.value.render()
    assert "nothing was written" in refused.value.render()
    assert by_file(folder) == before
    assert leftovers(folder) == []
