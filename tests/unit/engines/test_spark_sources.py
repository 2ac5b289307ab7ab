"""DataFrames as sources of a merge: odd names and types, sources too large to collect, sources that fail."""

from __future__ import annotations

import base64
import math
import pickle
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lockgate
from contracts.engine.dataset import STRATEGIES, Dataset, as_multiset, counts, folder_state, ids, new
from lockgate import DuplicateKeyError, MergeResult, NullKeyError
from lockgate.engines import spark_computed, spark_source, spark_tasks
from lockgate.errors import DatasetMergeError, LockgateError, SchemaMismatchError


@pytest.fixture
def dataset(tmp_path: Path, spark: Any) -> Dataset:
    return Dataset(tmp_path / "data", {"engine": "spark", "spark": spark})


@pytest.fixture(autouse=True, params=["spread", pytest.param("joined", marks=pytest.mark.slow)])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Every test is of both ways to merge."""
    if request.param == "joined":
        monkeypatch.setattr(spark_computed, "ROWS_BROUGHT", -1)
    return str(request.param)


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every source is too large to be brought here, and so are its keys."""
    monkeypatch.setattr(spark_computed, "ROWS_BROUGHT", -1)
    monkeypatch.setattr(spark_source, "_KEYS_COLLECTED", 0)


def by_arrow(dataset: Dataset, source: pa.Table, **options: Any) -> tuple[Any, dict[str, int]]:
    """What the Arrow engine makes of a copy of the dataset."""
    copy = Dataset(dataset.root.with_name("copy"), {"engine": "arrow"})
    for file in dataset.files():
        target = copy.root / file.relative_to(dataset.root)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(file.read_bytes())
    result = copy.merge(source, **options)
    return as_multiset(copy.rows()), counts(result)


def leaves_no_trace(dataset: Dataset, merge: Callable[[], MergeResult], error: type[Exception], text: str = "") -> None:
    """The merge fails, every file of the dataset is as it was, and there is nothing else."""
    before = dataset.contents()
    with pytest.raises(error, match=text):
        merge()
    assert dataset.contents() == before
    assert not any(p.is_dir() for p in dataset.root.rglob(".*"))


# sources too large to collect


@pytest.mark.usefixtures("large")
@pytest.mark.parametrize("strategy", ["full_merge", pytest.param("insert", marks=pytest.mark.slow), pytest.param(
    "update", marks=pytest.mark.slow), "deduplicate", pytest.param("upsert", marks=pytest.mark.slow)])  # fmt: skip
def test_a_large_source_by_each_strategy(dataset: Dataset, spark: Any, strategy: str) -> None:
    dataset.add("a.parquet", ids(1, 2, 3, 4), row_group_size=2)
    dataset.add("b.parquet", ids(90, 91))
    source = new(2, 3, 5, 7)
    expected = by_arrow(dataset, source, strategy=strategy)
    result = dataset.merge(spark.createDataFrame(source), strategy)
    assert (as_multiset(dataset.rows()), counts(result)) == expected


@pytest.mark.usefixtures("large")
def test_null_and_repeated_keys_of_a_large_source(dataset: Dataset, spark: Any) -> None:
    dataset.add("a.parquet", ids(1, 2))
    nulls = pa.table({"id": [1, None, None], "x": ["n"] * 3})
    repeated = pa.table({"id": [1, 2, 1, 2, 1, 9], "x": ["n"] * 6})
    leaves_no_trace(
        dataset, lambda: dataset.merge(spark.createDataFrame(nulls)), NullKeyError, '"id" is NULL in 2 of 3 source rows'
    )
    leaves_no_trace(
        dataset,
        lambda: dataset.merge(spark.createDataFrame(repeated)),
        DuplicateKeyError,
        "3 of 6 source rows repeat a key: id=1; id=2",
    )


@pytest.mark.usefixtures("large")
def test_a_large_source_with_nan_and_both_zeros(dataset: Dataset, spark: Any) -> None:
    dataset.add("a.parquet", pa.table({"id": [5.0, 6.0, -0.0], "x": ["old"] * 3}), row_group_size=1)
    source = pa.table({"id": [-1.0, 5.0, math.nan, 0.0], "x": ["new"] * 4})
    expected = by_arrow(dataset, source)
    assert expected[1] == {"inserted": 2, "updated": 2, "deleted": 0}
    result = dataset.merge(spark.createDataFrame(source))
    assert (as_multiset(dataset.rows()), counts(result)) == expected


@pytest.mark.usefixtures("large")
def test_a_large_source_with_a_collation(dataset: Dataset, spark: Any) -> None:
    dataset.add("a.parquet", pa.table({"id": ["m", "n"], "x": ["old", "old"]}))
    source = spark.sql("SELECT id COLLATE UTF8_LCASE AS id, 'new' AS x FROM VALUES ('a'), ('Z'), ('m'), ('M') AS t(id)")
    assert counts(dataset.merge(source)) == {"inserted": 3, "updated": 1, "deleted": 0}


@pytest.mark.slow
@pytest.mark.usefixtures("large")
def test_duplicate_nan_and_zeros_of_a_large_source(dataset: Dataset, spark: Any) -> None:
    dataset.add("a.parquet", pa.table({"id": [5.0], "x": ["old"]}))
    for pair in ([0.0, -0.0], [math.nan, math.nan]):
        source = spark.createDataFrame(pa.table({"id": pair, "x": ["new"] * 2}))
        leaves_no_trace(dataset, lambda source=source: dataset.merge(source), DuplicateKeyError, "1 of 2")


@pytest.mark.slow
@pytest.mark.usefixtures("large")
@pytest.mark.parametrize(
    "column",
    [
        pa.array([datetime(1, 1, 1), datetime(2026, 1, 1), datetime(9999, 12, 31, 23)], pa.timestamp("us", "UTC")),
        pa.array([datetime(1, 1, 1), datetime(2026, 1, 1), datetime(9999, 12, 31, 23)], pa.timestamp("us")),
        pa.array([Decimal("-9.99"), Decimal("0.00"), Decimal("9.99")]),
        pa.array([b"", b"\x7f", b"\xff"]),
        pa.array([True, False, None]).drop_null(),
    ],
    ids=lambda column: str(column.type),
)
def test_a_large_source_with_keys_of_other_types(dataset: Dataset, spark: Any, column: pa.Array) -> None:
    table = pa.table({"id": column, "x": ["old"] * len(column)})
    dataset.add("a.parquet", table.slice(1), row_group_size=1)
    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        result = dataset.merge(table)  # not a DataFrame: Spark would give a time without a zone one
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)
    assert counts(result) == {"inserted": 1, "updated": len(column) - 1, "deleted": 0}


def test_footers_are_read_by_the_cluster(dataset: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_tasks, "_FOOTERS_WORTH_A_JOB", 1)
    monkeypatch.setattr(spark_tasks, "_FOOTERS_A_TASK", 2)
    for i in range(5):
        dataset.add(f"day={i}/a.parquet", ids(i * 10, i * 10 + 1))
    source = new(0, 21, 41).append_column("day", pa.array([0, 2, 4], pa.int32()))
    result = dataset.merge(source, partition_by="day")
    assert counts(result) == {"inserted": 0, "updated": 3, "deleted": 0}
    assert len(result.rewritten_files) == 3
    (dataset.root / "day=3/b.parquet").write_bytes(b"PAR1 no footer PAR1")
    leaves_no_trace(dataset, lambda: dataset.merge(source, partition_by="day"), LockgateError, "b.parquet")


# how rows are numbered

NAME = "part-0000{part}-1b9d6bcd-c321-4b2d-9b5d-c12345678901-c00{chunk}.snappy.parquet"


def test_every_staged_row_has_a_place_of_its_own(spark: Any, tmp_path: Path) -> None:
    """Whatever the job's UUID is, and into however many files a task has written."""
    for part in range(2):
        for chunk in range(2):
            first = part * 100 + chunk * 10
            pq.write_table(pa.table({"id": [first, first + 1]}), tmp_path / NAME.format(part=part, chunk=chunk))
    source = spark_computed.StagedRows(spark, tmp_path, ("id",), pa.schema([("id", pa.int64())])).source()
    rows = source.frame.orderBy("place").collect()
    assert [row["c0"] for row in rows] == [0, 1, 10, 11, 100, 101, 110, 111]
    assert len({row["place"] for row in rows}) == 8


# odd names and types

NAMES = ["id", "ID", "a.b", "`q`", "", "place", "file", "k0", "c0", "_metadata", "file_row", "leaving", "changed", "n"]


def test_columns_of_any_name(dataset: Dataset, spark: Any) -> None:
    columns = [pa.array([1, 2]), *(pa.array([f"{i} one", f"{i} two"]) for i in range(1, len(NAMES)))]
    table = pa.table(columns, names=NAMES)
    dataset.add("a.parquet", table.slice(0, 1))
    frame = spark.createDataFrame(pa.table(columns, names=[f"x{i}" for i in range(len(NAMES))])).toDF(*NAMES)
    result = dataset.merge(frame, key=["id", "ID", "place", "c0", "_metadata", "a.b", "`q`"], skip_unchanged=True)
    assert counts(result) == {"inserted": 1, "updated": 0, "deleted": 0}
    assert as_multiset(dataset.rows()) == as_multiset(table.to_pylist())
    assert pq.read_schema(dataset.files()[-1]).names == NAMES


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES[5:])
def test_a_key_of_any_name(dataset: Dataset, spark: Any, name: str) -> None:
    table = pa.table([[1, 2], ["a", "b"]], names=[name, "id"])
    dataset.add("a.parquet", table.slice(0, 1))
    frame = spark.createDataFrame(pa.table([[1, 2], ["a", "b"]], names=["x", "y"])).toDF(name, "id")
    assert counts(dataset.merge(frame, "deduplicate", key=name, order_by=["id"])) == {
        "inserted": 1, "updated": 1, "deleted": 0
    }  # fmt: skip
    assert as_multiset(dataset.rows()) == as_multiset(table.to_pylist())


TYPES = """SELECT id, named_struct('a', id, 'B', array(id, NULL), 'b c', map('k', id)) AS nested,
  timestamp'0001-01-01 00:00:00.000001Z' + make_interval(id) AS instant,
  timestamp_ntz'9999-12-31 23:59:59.999999' AS wall,
  CAST(id AS decimal(38, 10)) / 7 AS money, CAST('NaN' AS double) AS nan, CAST('-0.0' AS float) AS zero,
  CAST(id AS tinyint) AS small, X'00FF' AS bytes, date'0001-01-01' AS day, NULL AS nothing,
  'Text' COLLATE UNICODE_CI AS collated, interval '1' day * id AS span, '' AS empty
FROM range({first}, {last})"""


def test_columns_of_many_types_stay_as_they_are(dataset: Dataset, spark: Any) -> None:
    expected = spark.sql(TYPES.format(first=0, last=4)).toArrow().to_pylist()
    dataset.merge(spark.sql(TYPES.format(first=0, last=3)))
    schema = pq.read_schema(dataset.files()[0])
    result = dataset.merge(spark.sql(TYPES.format(first=1, last=4)), skip_unchanged=True)
    assert counts(result) == {"inserted": 1, "updated": 0, "deleted": 0}
    assert as_multiset(dataset.rows()) == as_multiset(expected)
    assert all(pq.read_schema(file).equals(schema) for file in dataset.files())


@pytest.mark.parametrize(
    "key",
    [
        "interval '1' day * id",
        pytest.param("timestamp'2026-01-01' + make_interval(id)", marks=pytest.mark.slow),
        pytest.param("timestamp_ntz'0001-01-01' + make_interval(id)", marks=pytest.mark.slow),
    ],
)
def test_a_dataset_is_made_and_found_again_by_keys_of_time(dataset: Dataset, spark: Any, key: str) -> None:
    query = f"SELECT {key} AS id, 'n' AS x FROM range(3)"
    dataset.merge(spark.sql(query))
    assert counts(dataset.merge(spark.sql(query))) == {"inserted": 0, "updated": 3, "deleted": 0}


def test_struct_fields_that_differ_in_case(dataset: Dataset, spark: Any, way: str) -> None:
    """Spark writes them and does not read them, unless its session tells upper from lower case."""
    source = spark.sql("SELECT 1L AS id, named_struct('ID', 1, 'id', 2) AS s")
    if way == "joined":
        leaves_no_trace(dataset, lambda: dataset.merge(source), DatasetMergeError, "`id` already exists")
        return
    dataset.merge(source)
    assert dataset.rows() == [{"id": 1, "s": {"ID": 1, "id": 2}}]


def test_keys_of_a_collation_are_equal_by_their_bytes(dataset: Dataset, spark: Any) -> None:
    dataset.add("a.parquet", pa.table({"id": ["a", "B"], "x": ["old"] * 2}))
    source = spark.sql("SELECT id COLLATE UTF8_LCASE AS id, 'new' AS x FROM VALUES ('A'), ('a'), ('b') AS t(id)")
    assert counts(dataset.merge(source)) == {"inserted": 2, "updated": 1, "deleted": 0}
    assert sorted((row["id"], row["x"]) for row in dataset.rows()) == [
        ("A", "new"), ("B", "old"), ("a", "new"), ("b", "new")
    ]  # fmt: skip


@pytest.mark.parametrize("kind", [pa.json_(), pa.bool8()], ids=str)
def test_a_table_with_what_spark_does_not_take_is_merged_all_the_same(dataset: Dataset, kind: Any) -> None:
    storage = pa.array(["{}"]) if kind == pa.json_() else pa.array([1], pa.int8())
    table = pa.table({"id": [1], "x": pa.ExtensionArray.from_storage(kind, storage)})
    assert counts(dataset.merge(table)) == {"inserted": 1, "updated": 0, "deleted": 0}


def test_two_columns_of_one_name_are_refused(dataset: Dataset, spark: Any) -> None:
    dataset.add("a.parquet", ids(1))
    source = spark.sql("SELECT 1L AS id, 'a' AS x, 'b' AS x")
    leaves_no_trace(dataset, lambda: dataset.merge(source), SchemaMismatchError, 'several columns named "x"')


@pytest.mark.parametrize("name", ["a[1]{b}*? it's \\ odd % # ü", pytest.param("a=1", marks=pytest.mark.slow)])
def test_a_dataset_under_an_odd_path(dataset: Dataset, spark: Any, name: str) -> None:
    odd = Dataset(dataset.root / name, dataset.implementation)
    odd.add("a.parquet", ids(1))
    assert counts(odd.merge(spark.createDataFrame(new(1, 2)))) == {"inserted": 1, "updated": 1, "deleted": 0}
    assert sorted(odd.column("x")) == ["new 1", "new 2"]


# what the session is set to


@pytest.mark.parametrize(
    "setting",
    [
        {"spark.sql.files.maxRecordsPerFile": "1", "spark.sql.execution.arrow.maxRecordsPerBatch": "1",
         "spark.sql.session.timeZone": "America/New_York", "spark.sql.ansi.enabled": "false",
         "spark.sql.caseSensitive": "true", "spark.sql.parquet.writeLegacyFormat": "true"},
        pytest.param({"spark.sql.execution.arrow.useLargeVarTypes": "true", "spark.sql.shuffle.partitions": "1",
                      "spark.sql.timestampType": "TIMESTAMP_NTZ", "spark.sql.parquet.enableVectorizedReader": "false"}),
    ],
    ids=["small pieces", "other types"],
)  # fmt: skip
def test_a_session_with_settings_of_its_own(dataset: Dataset, spark: Any, setting: dict[str, str]) -> None:
    at = [datetime(2026, 1, 1, tzinfo=UTC), datetime(1, 1, 1, tzinfo=UTC), datetime(2026, 7, 1, 12, tzinfo=UTC)]
    table = pa.table({"id": ["a", "b", "c"], "at": pa.array(at, pa.timestamp("us", "UTC")),
                      "n": [Decimal("1.5")] * 3, "l": [[1], None, []]})  # fmt: skip
    dataset.add("a.parquet", table.slice(0, 2))
    frame = spark.createDataFrame(table)
    before = {name: spark.conf.get(name, None) for name in setting}
    try:
        for name, value in setting.items():
            spark.conf.set(name, value)
        result = dataset.merge(frame, "deduplicate", key=["id", "at"])
        assert {name: spark.conf.get(name) for name in setting} == setting
    finally:
        for name, old in before.items():
            spark.conf.unset(name) if old is None else spark.conf.set(name, old)
    assert counts(result) == {"inserted": 1, "updated": 2, "deleted": 0}
    assert as_multiset(dataset.rows()) == as_multiset(table.to_pylist())


# sources that are not the same twice, dry runs, failures


def test_a_source_that_is_never_the_same_twice(dataset: Dataset, spark: Any) -> None:
    dataset.add("a.parquet", pa.table({"id": range(100), "x": [-1.0] * 100}), row_group_size=10)
    source = spark.range(0, 400, 1, 4).selectExpr("id", "rand() AS x").filter("rand() < 0.5")
    result = dataset.merge(source)
    rows = dataset.rows()
    assert result.source_count == result.inserted + result.updated
    assert len({row["id"] for row in rows}) == len(rows) == result.target_count_after == 100 + result.inserted
    assert sum(row["id"] < 100 and row["x"] >= 0 for row in rows) == result.updated
    assert sum(row["id"] >= 100 for row in rows) == result.inserted


def test_a_dry_run_leaves_nothing(dataset: Dataset, spark: Any) -> None:
    before = folder_state(dataset.root)
    source = spark.createDataFrame(new(2, 3))
    assert counts(dataset.merge(source, dry_run=True)) == {"inserted": 2, "updated": 0, "deleted": 0}
    assert not dataset.root.exists()
    dataset.add("a.parquet", ids(1, 2))
    before = folder_state(dataset.root)
    result = dataset.merge(source, "full_merge", dry_run=True)
    assert counts(result) == {"inserted": 1, "updated": 1, "deleted": 1}
    assert len(result.rewritten_files) == 1
    assert folder_state(dataset.root) == before


@pytest.mark.parametrize("how", ["dry run", "update", pytest.param("insert", marks=pytest.mark.slow)])
def test_a_value_that_does_not_fit_is_refused_wherever_it_is(dataset: Dataset, how: str) -> None:
    """As the other engines refuse it: what a merge takes does not depend on which rows it needs."""
    dataset.add("a.parquet", pa.table({"id": [1], "x": pa.array([1], pa.int32())}))
    source = pa.table({"id": [2 if how == "update" else 1], "x": [2**40]})
    strategy = "upsert" if how == "dry run" else how
    leaves_no_trace(
        dataset,
        lambda: dataset.merge(source, strategy, dry_run=how == "dry run"),
        SchemaMismatchError,
        "does not fit into int32 without loss",
    )


def test_a_function_of_the_source_fails(dataset: Dataset, spark: Any) -> None:
    from pyspark.sql import functions as F

    def fails(number):  # type: ignore[no-untyped-def]  # with types, Spark would make it another kind of function
        if number == 37:
            raise ValueError("no luck with 37")
        return "x"

    dataset.add("a.parquet", ids(1, 2))
    source = spark.range(0, 40, 1, 2).select("id", F.udf(fails, "string")("id").alias("x"))
    leaves_no_trace(dataset, lambda: dataset.merge(source), DatasetMergeError, "no luck with 37")
    leaves_no_trace(dataset, lambda: dataset.merge(source, dry_run=True), DatasetMergeError, "no luck with 37")
    missing = Dataset(dataset.root.with_name("missing"), dataset.implementation)
    with pytest.raises(DatasetMergeError, match="no luck with 37"):
        missing.merge(source)
    assert not missing.root.exists()


class MakesAFolder:
    """Unpickling it makes a folder."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def __reduce__(self) -> Any:
        import os

        return os.mkdir, (self.folder,)


def test_a_value_of_the_source_is_never_run(dataset: Dataset, spark: Any, tmp_path: Path) -> None:
    dataset.add("a.parquet", ids(1, 2))
    folder = tmp_path / "made"
    packed = base64.b64encode(pickle.dumps(MakesAFolder(str(folder)))).decode()
    value = pa.table({"text": [f"lockgate-error:{packed}:"]})
    source = spark.createDataFrame(value).selectExpr("CAST(text AS bigint) AS id", "'n' AS x")
    leaves_no_trace(dataset, lambda: dataset.merge(source), DatasetMergeError, "CAST_INVALID_INPUT")
    assert not folder.exists()


def test_a_file_that_cannot_be_written_leaves_no_trace(dataset: Dataset, spark: Any) -> None:
    """A damaged page is found by a worker in the middle of the merge."""
    good = dataset.add("a.parquet", ids(1, 2), compression="none", use_dictionary=False)
    text = dataset.add("b.parquet", ids(3, 4), compression="none", use_dictionary=False)
    damaged = bytearray(text.read_bytes())
    at = pq.read_metadata(text).row_group(0).column(1).data_page_offset
    damaged[at : at + 12] = b"\xff" * 12
    text.write_bytes(damaged)
    assert good.exists()
    leaves_no_trace(dataset, lambda: dataset.merge(spark.createDataFrame(new(1, 4, 9))), LockgateError, "b.parquet")


def test_a_source_that_reads_the_dataset_itself(dataset: Dataset, spark: Any) -> None:
    dataset.add("a.parquet", ids(1, 2, 3))
    own = spark.read.parquet(str(dataset.root))
    result = dataset.merge(own.filter("id > 1").selectExpr("id + 1 AS id", "concat('moved ', x) AS x"), "full_merge")
    assert counts(result) == {"inserted": 1, "updated": 1, "deleted": 2}
    assert sorted(dataset.column("x")) == ["moved old 2", "moved old 3"]


@pytest.mark.slow
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_frame_and_a_table_mean_the_same(dataset: Dataset, spark: Any, strategy: str) -> None:
    for number, day in enumerate(("p", "q r", "é/%")):
        table = ids(number, number + 10).append_column("day", pa.array([day] * 2))
        lockgate.write_dataset(table, dataset.root, partition_by="day")
    source = new(0, 11, 99).append_column("day", pa.array(["p", "q r", None]))
    expected = by_arrow(dataset, source, strategy=strategy, partition_by="day", skip_unchanged=True)
    result = dataset.merge(spark.createDataFrame(source), strategy, partition_by="day", skip_unchanged=True)
    assert (as_multiset(dataset.rows()), counts(result)) == expected
