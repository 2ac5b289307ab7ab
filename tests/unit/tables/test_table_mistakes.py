"""What a table refuses, and that it is as it was afterwards."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lockgate
from lockgate.errors import ArgumentError, SchemaMismatchError, StorageError

SCHEMA = pa.schema({"id": pa.int64(), "x": pa.string()})


@pytest.fixture
def table(project: Path) -> Any:
    del project
    with lockgate.create_table("sales.daily", SCHEMA) as made:
        made.append([{"id": 1, "x": "a"}])
        yield made


def test_a_table_that_is_not_there_is_told_with_the_nearest(table: lockgate.Table) -> None:
    with pytest.raises(lockgate.TableNotFound) as caught:
        lockgate.open_table("sales.dayly")
    assert caught.value.hint == "did you mean sales.daily?"
    assert table.version == 1


@pytest.mark.parametrize("name", ["", "a..b", "../x", "a/b", "_hidden", "x\0y", "a.", ".a", "a:b", "a\nb", "x" * 300])
def test_names_that_are_no_tables(name: str, project: Path) -> None:
    with pytest.raises(ArgumentError):
        lockgate.create_table(name, SCHEMA)
    assert not (project / "warehouse").exists()


def test_a_location_of_another_table(table: lockgate.Table) -> None:
    with pytest.raises(lockgate.TableExists, match=r"sales\.daily"):
        lockgate.create_table("other", SCHEMA, location=table.location)
    with pytest.raises(lockgate.TableExists, match=r"sales\.daily"):
        lockgate.create_table("other", SCHEMA, location=f"{table.location}/inside")
    with pytest.raises(lockgate.TableExists):
        lockgate.create_table("sales.daily", SCHEMA)


def test_a_folder_with_somebody_elses_files(project: Path) -> None:
    (project / "theirs").mkdir()
    pq.write_table(pa.table({"id": [1]}), project / "theirs/a.parquet")
    with pytest.raises(StorageError, match="of no table"):
        lockgate.create_table("t", SCHEMA, location="theirs")
    with pytest.raises(ArgumentError, match="is a file"):
        lockgate.create_table("t", SCHEMA, location="theirs/a.parquet")


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([{"id": 1}], 'no column "x"'),
        ([{"id": 1, "x": "a", "y": 2}], 'no column "y"'),
        ([{"id": "one", "x": "a"}], '"id"'),
    ],
)
def test_rows_that_do_not_fit(table: lockgate.Table, rows: list[dict[str, Any]], said: str) -> None:
    for write in (table.append, table.overwrite, lambda r: table.merge(r, strategy="upsert", key_columns="id")):
        with pytest.raises(SchemaMismatchError, match=said):
            write(rows)
    assert table.version == 1
    assert not any(Path(table.location).rglob(".staging*"))
    assert len(list(Path(table.location).glob("*.parquet"))) == 1


def test_the_past_is_not_written_to(table: lockgate.Table) -> None:
    with pytest.raises(ArgumentError, match="the past"):
        table.at(version=0).append([{"id": 2, "x": "b"}])
    with pytest.raises(lockgate.TableNotFound, match="no version 7"):
        table.at(version=7)
    with pytest.raises(ArgumentError):
        table.at()
    with pytest.raises(ArgumentError, match="moment"):
        table.at(timestamp="yesterday")


def test_types_are_not_widened_in_place_and_new_columns_are_free(table: lockgate.Table) -> None:
    with lockgate.create_table("narrow", pa.schema({"id": pa.int32()})) as narrow:
        for write in (narrow.append, lambda r, **o: narrow.merge(r, strategy="upsert", key_columns="id", **o)):
            with pytest.raises(SchemaMismatchError, match="written again"):
                write(pa.table({"id": pa.array([2**40], pa.int64())}), schema="evolve")
        assert narrow.version == 0
        assert not list(Path(narrow.location).glob("*.parquet"))
    table.append([{"id": 2, "x": "b", "y": 1.5}], schema="evolve")
    assert table.to_arrow().sort_by("id").column("y").to_pylist() == [None, 1.5]
    table.merge([{"id": 1, "x": "A", "y": 2.5}], strategy="upsert", key_columns="id")
    assert table.to_arrow().sort_by("id").column("y").to_pylist() == [2.5, 1.5]
    table.overwrite([{"id": "one"}], schema="evolve")
    assert table.to_arrow().to_pylist() == [{"id": "one"}]
    assert table.at(version=1).to_arrow().to_pylist() == [{"id": 1, "x": "a"}]


def test_a_column_that_may_not_be_null(project: Path) -> None:
    del project
    with lockgate.create_table("t", pa.schema([pa.field("id", pa.int64(), nullable=False)])) as table:
        with pytest.raises(SchemaMismatchError, match="NULL"):
            table.append(pa.table({"id": pa.array([None], pa.int64())}))
        table.append([{"id": 1}])
        assert table.version == 1


def test_a_file_that_is_gone_is_named(table: lockgate.Table) -> None:
    next(Path(table.location).glob("*.parquet")).unlink()
    with pytest.raises(StorageError, match="is gone"):
        table.to_arrow()


def test_rules_in_sql_are_not_ignored(project: Path) -> None:
    del project
    with lockgate.create_table("t", SCHEMA, properties={"delta.constraints.positive": "id > 0"}) as table:
        with pytest.raises(lockgate.ConstraintError, match="positive"):
            table.append([{"id": -1, "x": ""}])
        assert table.version == 0


def test_an_append_only_table_takes_appends_alone(project: Path) -> None:
    del project
    with lockgate.create_table("t", SCHEMA, properties={"delta.appendOnly": "true"}) as table:
        table.append([{"id": 1, "x": "a"}])
        with pytest.raises(lockgate.ValidationError, match="append-only"):
            table.overwrite([{"id": 2, "x": "b"}])
        assert len(list(Path(table.location).glob("*.parquet"))) == 1, "what could not be committed is gone"


def test_a_commit_that_somebody_else_published(table: lockgate.Table) -> None:
    Path(table.location, "_delta_log", f"{2:020}.json").write_text("{}\n")
    with pytest.raises(lockgate.ForeignCommit):
        table.append([{"id": 2, "x": "b"}])
    assert table.version == 1
    assert len(list(Path(table.location).glob("*.parquet"))) == 1
