"""The data source as Spark calls it, without Spark: a writer, attempts, then a commit or an abort."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import types as T

import lockgate
from lockgate.running.data_source import DatasetWriter, LockgateDataSource
from lockgate.running.staged_parts import StagedPart
from support.leftovers import leftovers
from support.merge_reading import values

SCHEMA = T.StructType().add("id", T.LongType(), False).add("x", "string")
UPSERT = {"strategy": "upsert", "keys": "id"}


@pytest.fixture(autouse=True)
def _own_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_HIDE_TRACEBACK", "")  # set by our errors, for a process that ends with them


@pytest.fixture
def data(tmp_path: Path) -> Path:
    lockgate.write_dataset(pa.table({"id": [1, 2], "x": ["a", "b"]}), tmp_path / "data")
    return tmp_path / "data"


def writer_for(path: Path, *, overwrite: bool = False, schema: T.StructType = SCHEMA, **options: str) -> DatasetWriter:
    made = LockgateDataSource({"path": str(path), **options}).writer(schema, overwrite)
    return pickle.loads(pickle.dumps(made))  # as it reaches a task


def batch(**columns: list[Any]) -> pa.RecordBatch:
    return pa.record_batch(columns)


def test_rows_of_attempts_that_spark_did_not_choose_are_not_read(data: Path) -> None:
    writer = writer_for(data, **UPSERT)
    lost = writer.write(iter([batch(id=[2], x=["lost"])]))
    chosen = writer.write(iter([batch(id=[2], x=["B"]), batch(id=[3], x=["C"])]))
    again = writer.write(iter([batch(id=[2], x=["B"]), batch(id=[3], x=["C"])]))
    assert len({lost.name, chosen.name, again.name}) == 3
    writer.commit([chosen, writer.write(iter([]))])
    assert values(data, "id", "x") == {1: "a", 2: "B", 3: "C"}
    assert leftovers(data.parent) == []


def test_other_writers_leave_what_the_tasks_stage_alone_and_readers_do_not_see_it(data: Path) -> None:
    writer = writer_for(data, **UPSERT)
    part = writer.write(iter([batch(id=[3], x=["c"])]))
    lockgate.merge(pa.table({"id": [4], "x": ["d"]}), data, strategy="upsert", key_columns="id")
    assert lockgate.recover(data).staging_swept == []
    assert values(data, "id", "x") == {1: "a", 2: "b", 4: "d"}
    assert pq.read_table(data).num_rows == 3
    writer.commit([part])
    assert values(data, "id", "x") == {1: "a", 2: "b", 3: "c", 4: "d"}


def test_a_task_that_outlives_its_job_leaves_nothing(data: Path) -> None:
    writer = writer_for(data, **UPSERT)

    def rows() -> Any:
        yield batch(id=list(range(100_000)), x=["x"] * 100_000)
        writer.abort([None])
        yield batch(id=[-1], x=["late"])

    with pytest.raises(lockgate.StorageError, match="cannot write to"):
        writer.write(rows())
    with pytest.raises(lockgate.StageError, match="cannot see the folder"):
        writer.write(iter([batch(id=[3], x=["c"])]))
    assert leftovers(data.parent) == []
    assert values(data, "id", "x") == {1: "a", 2: "b"}


def test_a_folder_that_was_not_there_is_gone_after_an_abort(tmp_path: Path) -> None:
    writer = writer_for(tmp_path / "new" / "data")
    part = writer.write(iter([batch(id=[3], x=["c"])]))
    writer.abort([part, None])
    writer.abort([part, None])
    assert list(tmp_path.iterdir()) == []


def test_an_update_of_nothing_makes_nothing(tmp_path: Path) -> None:
    writer = writer_for(tmp_path / "new", strategy="update", keys="id")
    writer.commit([writer.write(iter([batch(id=[3], x=["c"])]))])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("harm", ["lost", "shortened", "unreported", "swept"])
def test_rows_that_cannot_be_found_are_an_error_and_nothing_is_written(data: Path, harm: str) -> None:
    writer = writer_for(data)
    parts: list[StagedPart | None] = [writer.write(iter([batch(id=[n], x=["c"])])) for n in (3, 4)]
    [area] = data.glob(".staging-new_*")
    if harm == "lost":
        (area / str(parts[1].name)).unlink()  # type: ignore[union-attr]
    elif harm == "shortened":
        pq.write_table(pa.table({"id": pa.array([], pa.int64()), "x": []}), area / str(parts[1].name))  # type: ignore[union-attr]
    elif harm == "unreported":
        parts[1] = None
    else:
        area.rename(data.parent / "elsewhere")
    with pytest.raises(lockgate.StageError, match=r"cannot see 1 of the 2|are gone"):
        writer.commit(parts)
    writer.abort(parts)
    assert values(data, "id", "x") == {1: "a", 2: "b"}
    assert leftovers(data) == []


KILLED_COMMIT = """
import os, pickle, sys
from lockgate.running import data_source

data_source._carry_out = lambda *_: os.kill(os.getpid(), 9)
writer, part = pickle.load(sys.stdin.buffer)
writer.commit([part])
"""


@pytest.mark.parametrize("who", ["abort", "recover"])
def test_a_commit_that_is_killed_is_swept_by_the_abort_or_by_the_next_writer(data: Path, who: str) -> None:
    writer = writer_for(data)
    given = pickle.dumps((writer, writer.write(iter([batch(id=[3], x=["c"])]))))
    ended = subprocess.run([sys.executable, "-c", KILLED_COMMIT], input=given, check=False)
    assert ended.returncode == -signal.SIGKILL
    assert leftovers(data) != []
    if who == "abort":
        writer.abort([])
    else:
        assert len(lockgate.recover(data).staging_swept) == 1
    assert leftovers(data) == []
    assert values(data, "id", "x") == {1: "a", 2: "b"}


def test_our_errors_say_what_is_in_place_and_what_to_do(data: Path) -> None:
    writer = writer_for(data, **UPSERT)
    part = writer.write(iter([batch(id=[3, 3], x=["c", "d"])]))
    with pytest.raises(lockgate.DuplicateKeyError) as caught:
        writer.commit([part])
    assert "now: nothing was written\ndo: " in caught.value.__notes__[0]
    assert os.environ["SPARK_HIDE_TRACEBACK"] == "1"


def test_counts_are_logged(data: Path, caplog: pytest.LogCaptureFixture) -> None:
    writer = writer_for(data, **UPSERT)
    writer.commit([writer.write(iter([batch(id=[2, 3], x=["B", "C"])]))])
    assert f"{data}: upsert of 2 rows: 1 inserted, 1 updated, 0 deleted; 3 rows now" in caplog.messages
    writer = writer_for(data, overwrite=True)
    writer.commit([writer.write(iter([batch(id=[2], x=["B"])]))])
    assert f"{data}: overwrite of 1 rows" in caplog.messages


@pytest.mark.parametrize(
    ("options", "overwrite", "said"),
    [
        ({"strategy": "upsert"}, False, "strategy upsert needs keys"),
        ({"keys": "id"}, False, "keys is an option of a merge"),
        ({"engine": "arrow"}, False, "engine is an option of a merge"),
        ({"skip_unchanged": "true"}, True, "skip_unchanged is an option of a merge"),
        (UPSERT, True, "mode overwrite replaces it"),
        ({"strategy": "upset", "keys": "id"}, False, "there is no merge strategy 'upset'"),
        ({"strategi": "upsert", "key": "id"}, False, "there is no option key, strategi"),
        ({"strategy": "upsert", "keys": "idd"}, False, 'no key column "idd"'),
        ({"strategy": "upsert", "keys": '["id"'}, False, "keys is not a JSON list"),
        ({"strategy": "upsert", "keys": "[1]"}, False, "keys is not a JSON list"),
        ({"strategy": "upsert", "keys": "id,id"}, False, "named twice"),
        ({**UPSERT, "order_by": "x"}, False, "order_by says which"),
        ({"strategy": "deduplicate", "keys": "id", "order_by": "y"}, False, 'no order_by column "y"'),
        ({**UPSERT, "engine": "spark"}, False, "engine must be auto, arrow or duckdb"),
        ({**UPSERT, "skip_unchanged": "yes"}, False, "skip_unchanged is true or false"),
        ({"schema": "loose"}, False, "schema must be"),
        ({"compression": "zip"}, False, "there is no compression 'zip'"),
        ({"max_rows_per_file": "many"}, False, "max_rows_per_file must be a positive number"),
        ({"row_group_size": "0"}, True, "row_group_size must be a positive number"),
        ({"lock_timeout": "soon"}, False, "lock_timeout must be a number of seconds"),
        ({"lock_timeout": "-1"}, False, "lock_timeout must be a number of seconds"),
        ({"partition_by": "z"}, False, 'no partition column "z"'),
        ({"path": ""}, False, "no path is given"),
        ({"path": "s3://bucket/data"}, False, "datasets on 's3' are not available"),
        ({"path": "dbfs:/data"}, False, "datasets on 'dbfs' are not available"),
    ],
)
def test_what_can_be_refused_is_refused_before_any_row_and_leaves_nothing(
    tmp_path: Path, options: dict[str, str], overwrite: bool, said: str
) -> None:
    with pytest.raises(lockgate.LockgateError, match=said) as caught:
        LockgateDataSource({"path": str(tmp_path / "data"), **options}).writer(SCHEMA, overwrite)
    assert caught.value.in_place == "nothing was written"
    assert list(tmp_path.iterdir()) == []


def test_a_file_or_a_delta_table_in_the_place_of_the_dataset_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "delta" / "_delta_log").mkdir(parents=True)
    for name, said in (("file", "is a file"), ("delta", "is a Delta table")):
        with pytest.raises(lockgate.LockgateError, match=said):
            writer_for(tmp_path / name)
    assert leftovers(tmp_path) == []


@pytest.mark.parametrize(
    "kind",
    [T.YearMonthIntervalType(), T.DayTimeIntervalType(), T.VariantType(), T.ArrayType(T.VariantType())],
    ids=lambda kind: kind.simpleString(),
)
def test_types_that_parquet_files_cannot_keep_are_refused(tmp_path: Path, kind: T.DataType) -> None:
    with pytest.raises(lockgate.SchemaMismatchError, match='column "odd" has the type'):
        writer_for(tmp_path / "data", schema=T.StructType().add("odd", kind))
    with pytest.raises(lockgate.SchemaMismatchError, match="no columns"):
        writer_for(tmp_path / "data", schema=T.StructType())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("spelled", ["file://{}", "file:{}", "{}"])
def test_the_path_is_local_however_it_is_spelled(tmp_path: Path, spelled: str) -> None:
    source = LockgateDataSource({"path": spelled.format(tmp_path / "a data"), "Lock_Timeout": "5"})
    writer = source.writer(SCHEMA, overwrite=False)
    writer.commit([writer.write(iter([batch(id=[1], x=["a"])]))])
    assert values(tmp_path / "a data", "id", "x") == {1: "a"}
    assert [p.name for p in tmp_path.iterdir()] == ["a data"]


def test_many_small_batches_become_few_row_groups(tmp_path: Path) -> None:
    writer = writer_for(tmp_path / "data")
    part = writer.write(batch(id=[n] * 100, x=[""] * 100) for n in range(1_200))
    [area] = (tmp_path / "data").glob(".staging-new_*")
    assert pq.ParquetFile(area / str(part.name)).num_row_groups == 2
    writer.commit([part])
    assert pq.read_table(tmp_path / "data").num_rows == 120_000
