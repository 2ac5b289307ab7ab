"""Columns of any name, also such as would end an SQL identifier or clash with a name that an engine uses itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lockgate.datasets.entry import merge
from support.merge_hostile_names import TEXTS
from support.merge_reading import file_rows

GROUPS = {
    "texts": [*TEXTS.values(), "c" * 300],
    "words that our own SQL uses": [
        "k0", "c0", "file", "file_row", "source_row", "merge_action", "path", "target", "source", "t", "r", "f",
        "select", "rowid", "nulls of 0", "code", "row", "0", "1", "a.b", "_",
    ],
    # DuckDB cannot tell these from its own, or from each other, and must leave them to Arrow.
    "words that DuckDB adds": ["filename", "file_row_number"],
    "one word to DuckDB": ["id", "ID", "Id"],
}  # fmt: skip


def merged(folder: Path, old: pa.Table, new: pa.Table, keys: list[str], engine: str) -> list[dict[str, Any]]:
    folder.mkdir()
    pq.write_table(old, folder / "0.parquet")
    merge(new, folder, strategy="upsert", key_columns=keys, engine=engine)
    found = [dict(row) for file in sorted(folder.glob("*.parquet")) for row in file_rows(file, folder)]
    return sorted(found, key=str)


@pytest.mark.parametrize("names", GROUPS.values(), ids=GROUPS.keys())
def test_columns_of_these_names_hold_values(place: Path, names: list[str], engine: str) -> None:
    old = pa.table({"the key": [1, 2], **{name: [f"{n}", "old"] for n, name in enumerate(names)}})
    new = pa.table({**{name: [f"new {n}"] for n, name in reversed([*enumerate(names)])}, "the key": [2]})
    first, second = merged(place / "data", old, new, ["the key"], engine)
    assert first == {"the key": 1} | {name: f"{n}" for n, name in enumerate(names)}
    assert second == {"the key": 2} | {name: f"new {n}" for n, name in enumerate(names)}


@pytest.mark.parametrize("names", GROUPS.values(), ids=GROUPS.keys())
def test_columns_of_these_names_are_keys(place: Path, names: list[str], engine: str) -> None:
    old = pa.table({name: [n, n + 1] for n, name in enumerate(names)} | {"the value": ["one", "two"]})
    # The second row has the old second row's key; the first differs from the old first row in the last column only.
    new = pa.table(
        {name: [n + (name == names[-1]) * 100, n + 1] for n, name in enumerate(names)} | {"the value": ["ONE", "TWO"]}
    )
    found = merged(place / "data", old, new, names, engine)
    assert sorted(row["the value"] for row in found) == ["ONE", "TWO", "one"]
    assert {row["the value"]: row[names[-1]] for row in found}["ONE"] == len(names) - 1 + 100


@pytest.mark.parametrize("name", ['x"; DROP TABLE t; --', "it's", "a.b", "../../etc", "a\0b"])
def test_a_column_of_that_name_is_the_key_alone(place: Path, name: str, engine: str) -> None:
    old = pa.table({name: [1, 2], "v": ["one", "two"]})
    new = pa.table({"v": ["TWO", "THREE"], name: [2, 3]})
    expected = [{name: 1, "v": "one"}, {name: 2, "v": "TWO"}, {name: 3, "v": "THREE"}]
    assert merged(place / "data", old, new, [name], engine) == sorted(expected, key=str)


def test_such_texts_are_keys_and_values(place: Path, engine: str) -> None:
    texts = [*TEXTS.values(), "", " ", "A*", "é", "a", "A", "a ", "a\0", "a\0c"]
    old = pa.table({"key": texts, "v": [f"old {text}" for text in texts]})
    new = pa.table({"key": [*texts[::2], "\0"], "v": [f"new {text}" for text in [*texts[::2], "\0"]]})
    expected = {t: f"old {t}" for t in texts} | {t: f"new {t}" for t in [*texts[::2], "\0"]}
    found = merged(place / "data", old, new, ["key"], engine)
    assert len(found) == len(texts) + 1
    assert {row["key"]: row["v"] for row in found} == expected


def test_nothing_of_a_name_is_run_as_sql(place: Path) -> None:
    """The words would drop a table and write a file, if any of them got out of its quotes."""
    loot = place / "loot.csv"
    ends = ["'", '"', "''", '""', "\\'", "'}", "')", '")', "*/", "\n", "$$"]
    names = [f"{end}; DROP TABLE t; COPY (SELECT 1) TO '{loot}'; --" for end in ends]
    metadata = {name.encode(): f"value {name}".encode() for name in names}
    table = pa.table({"id": [1, 2], **{name: [name, name] for name in names}})
    table = table.replace_schema_metadata(metadata)
    folder = place / "data"
    folder.mkdir()
    pq.write_table(table, folder / "it's '; DROP TABLE t; --.parquet")
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE t AS SELECT 1 AS one").fetchall()
        new = table.slice(1).set_column(1, names[0], pa.array([f"new {names[0]}"]))
        result = merge(new, folder, strategy="upsert", key_columns="id", engine="duckdb", connection=connection)
        assert result.updated == 1
        with connection.cursor() as cursor:
            assert cursor.sql("SELECT one FROM t").fetchall() == [(1,)]
    assert not loot.exists()
    file = folder / "it's '; DROP TABLE t; --.parquet"
    assert [dict(row)[names[0]] for row in file_rows(file, folder)] == [names[0], f"new {names[0]}"]
    with file.open("rb") as opened:
        kept = pq.ParquetFile(opened).schema_arrow.metadata
    assert {key: kept.get(key) for key in metadata} == metadata
