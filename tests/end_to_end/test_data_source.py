"""`format("lockgate")` on a real Spark: what it writes is what `lockgate.merge` writes, or nothing."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator
from datetime import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import lockgate
from support.leftovers import leftovers
from support.merge_reading import all_rows, data_files, values

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(autouse=True)
def _registered(spark: Any) -> None:
    lockgate.register(spark)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A dataset of two files."""
    for first in (0, 50):
        ids = range(first, first + 50)
        rows = pa.table({"id": list(ids), "x": [f"old {n}" for n in ids]})
        lockgate.write_dataset(rows, tmp_path / "data")
    return tmp_path / "data"


def save(frame: Any, path: Path, mode: str = "append", **options: Any) -> None:
    frame.write.format("lockgate").mode(mode).options(**options).save(str(path))


def state(folder: Path) -> dict[str, tuple[str, int]]:
    """Every data file with its bytes and its time."""
    return {
        str(file.relative_to(folder)): (hashlib.sha256(file.read_bytes()).hexdigest(), file.stat().st_mtime_ns)
        for file in data_files(folder)
    }


@pytest.mark.parametrize("strategy", [str(each) for each in lockgate.MergeStrategy])
def test_every_strategy_does_what_lockgate_merge_does(spark: Any, tmp_path: Path, strategy: str) -> None:
    old = pa.table({"id": range(100), "day": [n % 3 for n in range(100)], "x": [f"old {n}" for n in range(100)]})
    new = spark.range(80, 130, 1, 3).selectExpr("id", "cast(id % 3 as bigint) AS day", "concat('new ', id) AS x")
    options: dict[str, Any] = {}
    if strategy == "deduplicate":
        new = new.union(new.selectExpr("id", "day", "concat('newer ', id) AS x"))
        options["order_by"] = ["x DESC"]
    for name in ("ours", "theirs"):
        lockgate.write_dataset(old, tmp_path / name, partition_by="day")
    done = lockgate.merge(new.toArrow(), tmp_path / "theirs", strategy=strategy, key_columns=["id", "day"], **options)
    order = {"order_by": '["x DESC"]'} if options else {}
    save(new, tmp_path / "ours", strategy=strategy, keys="id, day", **order)
    assert all_rows(tmp_path / "ours") == all_rows(tmp_path / "theirs")
    assert len(data_files(tmp_path / "ours")) == len(data_files(tmp_path / "theirs"))
    assert sum(all_rows(tmp_path / "ours").values()) == done.target_count_after
    assert leftovers(tmp_path) == []


def test_a_new_dataset_has_the_layout_that_was_asked_for(spark: Any, tmp_path: Path) -> None:
    frame = spark.range(0, 100, 1, 4).selectExpr("id", "id % 2 AS day")
    options = {"partition_by": "day", "compression": "zstd", "max_rows_per_file": 30, "row_group_size": 20}
    save(frame, tmp_path / "data", strategy="upsert", keys="id", engine="duckdb", **options)
    files = data_files(tmp_path / "data")
    assert {file.parent.name for file in files} == {"day=0", "day=1"}
    footers = [pq.ParquetFile(file).metadata for file in files]
    assert sorted(footer.num_rows for footer in footers) == [20, 20, 30, 30]
    assert {footer.row_group(0).num_rows for footer in footers} == {20}
    assert {footer.row_group(0).column(0).compression for footer in footers} == {"ZSTD"}
    schema = pq.read_schema(files[0])
    assert schema.field("id").nullable  # as in files that Spark writes


def test_skip_unchanged_and_moves_and_new_columns_are_options(spark: Any, tmp_path: Path) -> None:
    data = tmp_path / "data"
    lockgate.write_dataset(pa.table({"id": [1, 2], "day": [1, 2]}), data, partition_by="day")
    before = state(data)
    same = spark.createDataFrame([(1, 1)], "id long, day long")
    save(same, data, strategy="upsert", keys="id", skip_unchanged=True)
    assert state(data) == before
    moved = spark.createDataFrame([(1, 2, "n")], "id long, day long, note string")
    save(moved, data, strategy="upsert", keys="id", allow_partition_moves=True, schema="evolve")
    found = ds.dataset(data, partitioning="hive", schema=pa.schema({"id": "int64", "day": "int64", "note": "string"}))
    assert found.to_table().sort_by("id").to_pylist() == [
        {"id": 1, "day": 2, "note": "n"},
        {"id": 2, "day": 2, "note": None},
    ]


def test_append_and_overwrite_without_a_strategy(spark: Any, tmp_path: Path) -> None:
    data = tmp_path / "data"
    rows = spark.range(0, 10, 1, 3)
    save(rows, data)
    save(rows, data)
    assert pq.read_table(data).num_rows == 20
    (data / "README.txt").write_text("kept")
    save(rows.selectExpr("id + 1 AS id"), data, "overwrite")
    assert sorted(pq.read_table(data_files(data)[0])["id"].to_pylist()) == list(range(1, 11))
    assert (data / "README.txt").exists()
    assert leftovers(tmp_path) == []


def test_a_frame_without_rows(spark: Any, data: Path) -> None:
    empty = spark.createDataFrame([], "id long, x string")
    before = state(data)
    save(empty, data)
    save(empty, data, strategy="upsert", keys="id")
    assert state(data) == before
    save(empty, data, strategy="full_merge", keys="id")
    assert pq.read_table(data).num_rows == 0
    save(empty, data.parent / "new", "overwrite")
    assert pq.read_table(data.parent / "new").schema.names == ["id", "x"]
    save(empty, data.parent / "not made", strategy="update", keys="id")
    assert not (data.parent / "not made").exists()
    assert leftovers(data.parent) == []


ODD = ["a,b", "a.b", 'with "quotes"', "with `ticks`", "[list]", " spaced ", "naïve_Σ", "ID", "id", "x__src"]


def test_odd_column_names(spark: Any, tmp_path: Path) -> None:
    data = tmp_path / "odd 'folder' ; --"
    schema = ", ".join(f"`{name.replace('`', '``')}` int" for name in ODD)
    for changed in (0, 1):
        rows = [tuple(n * 100 + c + changed * (c > 1) for c in range(len(ODD))) for n in range(3)]
        save(spark.createDataFrame(rows, schema), data, strategy="upsert", keys='["a,b", "a.b"]')
        found = [row for file in data_files(data) for row in pq.ParquetFile(file).read().to_pylist()]
        assert sorted(found, key=lambda row: row["a,b"]) == [dict(zip(ODD, row, strict=True)) for row in rows]
    save(spark.createDataFrame(rows, schema), data, strategy="update", keys="with `ticks`")


def test_values_of_every_type_are_kept_in_any_zone(spark: Any, tmp_path: Path) -> None:
    frame = spark.sql("""
        SELECT * FROM VALUES
          (1, timestamp'0001-01-01 00:00:00Z', timestamp_ntz'9999-12-31 23:59:59.999999', date'0001-01-01'),
          (2, timestamp'2024-03-31 02:30:00.000001Z', timestamp_ntz'2024-03-31 02:30:00.123456', date'9999-12-31'),
          (3, NULL, NULL, NULL) AS t(id, at, wall, day)
    """).selectExpr(
        "*", "map('k', at) AS moments", "array(named_struct('at', at, 'n', id)) AS nested",
        "cast(id AS decimal(38, 18)) / 7 AS amount", "cast(id AS byte) b", "cast(id AS short) s", "cast(id AS float) f",
        "cast('NaN' AS double) AS d", "X'00FF' AS bytes", "id = 1 AS yes", "array(1, NULL) AS holes", "'' AS empty",
    )  # fmt: skip
    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    expected = frame.toArrow()
    spark.conf.set("spark.sql.session.timeZone", "Pacific/Auckland")
    try:
        save(frame.repartition(2), tmp_path / "data", strategy="insert", keys="id")
        save(frame.selectExpr("*"), tmp_path / "data", strategy="upsert", keys="id")
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)
    found = pa.concat_tables(pq.ParquetFile(file).read() for file in data_files(tmp_path / "data")).sort_by("id")
    assert repr(found.to_pylist()) == repr(expected.to_pylist())  # by repr, for which NaN is NaN
    assert found.schema.field("at").type == pa.timestamp("us", "UTC")
    assert found.schema.field("wall").type == pa.timestamp("us")
    assert dict(spark.read.parquet(str(tmp_path / "data")).dtypes) == dict(frame.dtypes)


def test_a_time_of_day_is_kept(spark: Any, tmp_path: Path) -> None:
    """By itself, since Spark can write it to us but not read it from Parquet."""
    save(spark.sql("SELECT 1 AS id, time'12:34:56.789012' AS t"), tmp_path / "data")
    assert pq.read_table(tmp_path / "data").to_pylist() == [{"id": 1, "t": time(12, 34, 56, 789012)}]


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("SELECT * FROM VALUES (1, 'a'), (1, 'b') AS t(id, x)", "DuplicateKeyError: 1 of 2 source rows"),
        ("SELECT * FROM VALUES (1, 'a'), (NULL, 'b') AS t(id, x)", 'NullKeyError: key column "id" is NULL in 1 of 2'),
        ("SELECT 1 AS id, 'a' AS y", 'SchemaMismatchError: the source has no column "x"'),
    ],
)
def test_a_merge_that_fails_changes_nothing(spark: Any, data: Path, query: str, said: str) -> None:
    before = state(data)
    with pytest.raises(Exception, match="PYTHON_DATA_SOURCE_ERROR") as caught:
        save(spark.sql(query).repartition(3), data, strategy="upsert", keys="id")
    assert f"lockgate.errors.{said}" in str(caught.value)
    assert "now: nothing was written\ndo: " in str(caught.value)
    assert "Traceback" not in str(caught.value)
    assert state(data) == before
    assert leftovers(data.parent) == []


@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_a_task_that_fails_half_way_changes_nothing(spark: Any, data: Path, mode: str) -> None:
    from pyspark.sql import functions as F

    def break_one(n):  # type: ignore[no-untyped-def]  # Spark would read the types
        if n == 25_000:
            raise ValueError("row 25000 is broken")
        return "new"

    broken = F.udf(break_one, "string")
    before = state(data)
    frame = spark.range(0, 40_000, 1, 3).select("id", broken("id").alias("x"))
    for path in (data, data.parent / "new"):
        with pytest.raises(Exception, match="row 25000 is broken"):
            save(frame, path, mode)
    assert state(data) == before
    assert sorted(p.name for p in data.parent.iterdir()) == ["data"]
    assert leftovers(data.parent) == []


@pytest.mark.parametrize(
    ("mode", "options", "said"),
    [
        ("append", {"strategy": "upsert"}, "strategy upsert needs keys"),
        ("overwrite", {"strategy": "upsert", "keys": "id"}, "mode overwrite replaces it"),
        ("append", {"strategy": "upsert", "keys": "idd"}, 'no key column "idd"'),
        ("error", {}, "UNSUPPORTED_DATA_SOURCE_SAVE_MODE"),
        ("ignore", {}, "UNSUPPORTED_DATA_SOURCE_SAVE_MODE"),
    ],
)
def test_a_wrong_call_is_refused_before_a_row_is_computed(
    spark: Any, data: Path, mode: str, options: dict[str, str], said: str
) -> None:
    from pyspark.sql import functions as F

    seen = str(data.parent / "seen")
    touched = F.udf(lambda n: os.close(os.open(seen, os.O_CREAT)) or str(n), "string")
    before = state(data)
    with pytest.raises(Exception, match=said):
        save(spark.range(2).select("id", touched("id").alias("x")), data, mode, **options)
    assert not Path(seen).exists()
    assert state(data) == before
    assert leftovers(data.parent) == []


def test_partition_by_of_the_writer_and_reading_are_refused(spark: Any, data: Path) -> None:
    with pytest.raises(Exception, match="partitioning"):
        spark.range(2).write.format("lockgate").partitionBy("id").mode("append").save(str(data))
    with pytest.raises(Exception, match="writes only"):
        spark.read.format("lockgate").load(str(data))


def python_of_the_page() -> Iterator[tuple[int, str]]:
    text = (DOCS / "spark.md").read_text(encoding="utf-8")
    for block in re.finditer(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        yield text[: block.start(1)].count("\n"), block[1]


def test_the_page_about_it_is_true(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from lockgate.running.data_source_options import _OPTIONS

    text = (DOCS / "spark.md").read_text(encoding="utf-8")
    assert all(f"| `{option}` |" in text for option in _OPTIONS)
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"spark": spark}
    for line, code in python_of_the_page():
        code = code.replace("/lake/", f"{tmp_path}/lake/")
        exec(compile("\n" * line + code, "docs/spark.md", "exec"), names)
        assert capsys.readouterr().out.splitlines() == re.findall(r"^ *print\(.*\)  # (.*)$", code, re.MULTILINE)
    assert values(tmp_path / "lake/orders", "id", "amount")
