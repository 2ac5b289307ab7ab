"""What COPY reads beside a file: row by row what replaces it, and never the replacement of another row."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lockgate.engines import duckdb_replacements
from lockgate.engines.duckdb_replacements import row_by_row
from lockgate.engines.duckdb_sql import copy_statement
from lockgate.merging.table_source import RowChange

ROWS = 10_000
KINDS: dict[str, tuple[pa.DataType, Any]] = {
    "number": (pa.int64(), 7),
    "text": (pa.string(), "é"),
    "bytes": (pa.large_binary(), b"\xff"),
    "coded": (pa.dictionary(pa.int8(), pa.string()), "x"),
    "list": (pa.list_(pa.string()), ["a", None]),
    "struct": (pa.struct({"a": pa.int32()}), {"a": 1}),
    "date": (pa.date32(), 0),
}


def change(rows: list[int]) -> RowChange:
    numbers = pa.array(rows, pa.int64())
    return RowChange(numbers, pa.arange(0, len(rows)), numbers.slice(0, 0), None)


@pytest.mark.parametrize("at_once", [2048, 3 * 2048, 60 * 2048])
@pytest.mark.parametrize("kind", KINDS)
def test_each_row_beside_its_own(monkeypatch: pytest.MonkeyPatch, kind: str, at_once: int) -> None:
    monkeypatch.setattr(duckdb_replacements, "_ROWS_AT_ONCE", at_once)
    type_, value = KINDS[kind]
    places = [0, 5, 2047, 2048, 4095, 6144, ROWS - 1]
    source = pa.table({"x": pa.array([value, None] * 3 + [value], type_)})
    found = row_by_row(change(places), ROWS, source).read_all().to_pylist()
    expected = dict(zip(places, source["x"].to_pylist(), strict=True))
    assert [row["file_row"] for row in found] == [n if n in expected else None for n in range(ROWS)]
    assert [row["c0"] for row in found] == [expected.get(n) for n in range(ROWS)]


@pytest.mark.parametrize("rows", [[], [3]])
def test_a_file_without_rows_and_one_in_which_nothing_changes(rows: list[int]) -> None:
    source = pa.table({"x": pa.array(["new"] * len(rows), pa.string())})
    assert row_by_row(change([]), 0, source.slice(0, 0)).read_all().num_rows == 0
    assert row_by_row(change(rows), 5, source).read_all()["file_row"].drop_null().to_pylist() == rows


def test_rows_out_of_step_are_an_error(tmp_path: Path) -> None:
    """As if DuckDB had read the rows of the file in another order."""
    pq.write_table(pa.table({"id": range(10)}), tmp_path / "old.parquet")
    statement = copy_statement(
        ["id"],
        str(tmp_path / "old.parquet"),
        "replacements",
        str(tmp_path / "new.parquet"),
        compression="snappy",
        row_group_size=2048,
        dictionary_entries=1,
    )
    with duckdb.connect() as connection:
        connection.register(
            "replacements", pa.table({"file_row": [None, 4, *[None] * 8], "c0": [None, 9, *[None] * 8]})
        )
        with pytest.raises(duckdb.InvalidInputException, match="out of their order"):
            connection.execute(statement).fetchall()
