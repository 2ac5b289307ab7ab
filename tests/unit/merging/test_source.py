from __future__ import annotations

import json
import subprocess
import sys
from decimal import Decimal as D
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset as ds
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from lockgate.errors import ConfigError, SourceError
from lockgate.merging.source import load_source, open_source

ROWS = [{"id": 1, "name": "x"}, {"id": 2, "name": None}]
TABLE = pa.table({"id": [1, 2], "name": ["x", None]})


class Capsule:
    """Any library that speaks Arrow's C stream."""

    def __init__(self, table: Any) -> None:
        self.table = table

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.table.__arrow_c_stream__(requested_schema)


def both(source: Any) -> pa.Table:
    """Loaded and opened must be the same."""
    table = load_source(source)
    table.validate(full=True)
    assert open_source(source).read_all() == table
    return table


@pytest.mark.parametrize(
    "source",
    [TABLE, TABLE.to_batches()[0], Capsule(TABLE), ds.dataset(TABLE), ROWS, tuple(ROWS)],
    ids=["table", "batch", "stream", "dataset", "dicts", "tuple"],
)
def test_everything_that_holds_arrow_or_rows(source: Any) -> None:
    assert both(source) == TABLE


def test_a_reader_is_read_once_and_not_before_it_is_used() -> None:
    def batches() -> Any:
        yield from TABLE.to_batches()

    assert load_source(pa.RecordBatchReader.from_batches(TABLE.schema, batches())) == TABLE
    untouched = pa.RecordBatchReader.from_batches(TABLE.schema, (1 / 0 for _ in range(1)))
    assert open_source(untouched).schema == TABLE.schema


def test_a_table_is_taken_as_it_is() -> None:
    assert load_source(TABLE) is TABLE


def test_dicts_may_lack_names_and_an_empty_list_is_no_row() -> None:
    assert both([{"id": 1}, {"name": "x"}]).to_pylist() == [{"id": 1, "name": None}, {"id": None, "name": "x"}]
    assert both([]).num_rows == 0
    with pytest.raises(SourceError, match="list given as the source"):
        load_source([{"id": 1}, {"id": "one"}])


def test_views_and_small_decimals_become_types_that_every_kernel_knows() -> None:
    odd = pa.table(
        {
            "view": pa.array(["a", None], pa.string_view()),
            "bytes": pa.array([b"a", None], pa.binary_view()),
            "small": pa.array([D("1.5"), None], pa.decimal32(4, 1)),
            "runs": pa.RunEndEncodedArray.from_arrays([1, 2], [7, None], pa.run_end_encoded(pa.int32(), pa.int64())),
            "nested": pa.array([[{"v": "a"}], None], pa.list_view(pa.struct([("v", pa.string_view())]))),
            "words": pa.array(["a", None], pa.string_view()).dictionary_encode(),
            "map": pa.array([[("k", "v")], None], pa.map_(pa.string_view(), pa.string_view())),
            "plain": ["a", None],
        }
    )
    got = both(odd)
    assert got.schema.types == [
        pa.string(),
        pa.binary(),
        pa.decimal128(4, 1),
        pa.int64(),
        pa.list_(pa.struct([("v", pa.string())])),
        pa.dictionary(pa.int32(), pa.string()),
        pa.map_(pa.string(), pa.string()),
        pa.string(),
    ]
    assert got.drop_columns("runs").to_pylist() == odd.drop_columns("runs").to_pylist()
    assert got["runs"].to_pylist() == [7, None]


def test_pandas() -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"id": [1, 2, 3], "name": ["x", None, "z"]})
    assert both(frame).to_pylist() == [*ROWS, {"id": 3, "name": "z"}]
    assert both(frame[frame.id > 1]).column_names == ["id", "name"]  # what a filter leaves of the index is no column
    assert sorted(both(frame.set_index("id")).column_names) == ["id", "name"]
    with pytest.raises(SourceError, match="pandas DataFrame"):
        load_source(pd.DataFrame({"mixed": [1, "one"]}))
    with pytest.raises(ConfigError, match="pandas Series"):
        load_source(pd.Series([1]))


def test_polars() -> None:
    pl = pytest.importorskip("polars")
    assert both(pl.DataFrame(ROWS)).to_pylist() == ROWS


def test_a_spark_dataframe_is_known_without_importing_pyspark() -> None:
    class Frame:
        __module__ = "pyspark.sql.classic.dataframe"

        def toArrow(self) -> pa.Table:
            return TABLE

    assert both(Frame()) == TABLE

    class Broken(Frame):
        def toArrow(self) -> pa.Table:
            raise RuntimeError("stage 7 failed")

    with pytest.raises(SourceError, match="stage 7 failed"):
        load_source(Broken())
    script = "import sys, lockgate.merging.source as s; s.load_source([]); print('pyspark' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


@pytest.mark.parametrize("source", [None, 7, b"rows.parquet", object(), {"id": [1]}, [1, 2], ["a"], pa.array([1])])
def test_anything_else_is_refused_with_a_list_of_what_is_accepted(source: Any) -> None:
    with pytest.raises(ConfigError) as caught:
        load_source(source)
    assert "RecordBatchReader" in (caught.value.hint or "")


# paths


def test_a_parquet_file_by_string_path_and_url(tmp_path: Path) -> None:
    file = tmp_path / "day=2024-01-01" / "odd name's.parquet"
    file.parent.mkdir()
    pq.write_table(TABLE, file)
    for source in (file, str(file), file.as_uri()):
        assert both(source) == TABLE  # a folder above the file that was named is not part of it


def test_a_folder_of_parquet_with_hive_partitions(tmp_path: Path) -> None:
    for name, ids in (
        ("year=2024/day=mo", [1]),
        ("year=2025/day=a%2Fb", [2]),
        ("year=__HIVE_DEFAULT_PARTITION__/day=x", [3]),
    ):
        folder = tmp_path / name
        folder.mkdir(parents=True)
        pq.write_table(pa.table({"id": ids}), folder / "part-0.snappy.parquet")
    got = both(tmp_path)
    assert got.schema.field("year").type == pa.int32()
    assert sorted(got.to_pylist(), key=lambda row: row["id"]) == [
        {"id": 1, "year": 2024, "day": "mo"},
        {"id": 2, "year": 2025, "day": "a/b"},
        {"id": 3, "year": None, "day": "x"},
    ]


def test_hidden_names_are_not_data(tmp_path: Path) -> None:
    """Staging folders read as data by the next run."""
    base = tmp_path / "_base" / ".hidden above"
    for name in (
        ".staging_1/a.parquet",
        "_temporary/a.parquet",
        ".a.parquet",
        "_a.parquet",
        "_x=5/b.parquet",
        "c.parquet",
    ):
        (base / name).parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({"file": [name]}), base / name)
    (base / "README.txt").write_text("not data")
    (base / "_SUCCESS").touch()
    assert sorted(both(base)["file"].to_pylist()) == ["_x=5/b.parquet", "c.parquet"]


def test_a_column_that_only_a_later_file_has_is_not_lost(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": pa.array([1], pa.int32())}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"id": [2**40], "new": ["x"]}), tmp_path / "b.parquet")
    assert both(tmp_path).to_pylist() == [{"id": 1, "new": None}, {"id": 2**40, "new": "x"}]


def test_files_come_in_the_order_of_their_names(tmp_path: Path) -> None:
    """Without order_by the last row of a key stays, so the order of files is part of the result."""
    for i in (3, 1, 2):
        pq.write_table(pa.table({"id": [i]}), tmp_path / f"{i}.parquet")
    assert both(tmp_path)["id"].to_pylist() == [1, 2, 3]


def test_a_delta_table_is_not_a_folder_of_parquet(tmp_path: Path) -> None:
    """Its folder holds files that no longer belong to it."""
    pq.write_table(TABLE, tmp_path / "a.parquet")
    (tmp_path / "_delta_log").mkdir()
    with pytest.raises(SourceError, match="Delta table"):
        load_source(tmp_path)


def test_csv_with_null_and_empty_text(tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    file.write_text('id,name,note\n1,"",NA\n2,,"two\nlines"\n')
    assert both(file).to_pylist() == [
        {"id": 1, "name": "", "note": "NA"},
        {"id": 2, "name": None, "note": "two\nlines"},
    ]


def test_csv_with_a_header_alone_has_no_rows(tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    file.write_text("id,name\n")
    assert both(file).column_names == ["id", "name"]


def test_csv_types_are_settled_by_all_rows(tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    file.write_text("id,filler\n" + "".join(f"{i},{'x' * 1000}\n" for i in range(3000)) + "last,x\n")
    assert both(file).schema.field("id").type == pa.string()


@pytest.mark.parametrize("name", ["rows.json", "rows.jsonl", "rows.NDJSON"])
def test_json_lines(tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    file.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    assert both(file).to_pylist() == ROWS


def test_json_array_and_long_objects(tmp_path: Path) -> None:
    file = tmp_path / "rows.json"
    file.write_text("\n " + json.dumps(ROWS))
    assert both(file).to_pylist() == ROWS
    file.write_text(json.dumps({"id": 1, "text": "x" * 3_000_000}))
    assert len(both(file)["text"][0].as_py()) == 3_000_000
    file.write_text("[1, 2]")
    with pytest.raises(SourceError, match=r"rows\.json"):
        load_source(file)


def test_arrow_files_and_streams(tmp_path: Path) -> None:
    with pa.OSFile(str(tmp_path / "file.arrow"), "wb") as sink, pa.ipc.new_file(sink, TABLE.schema) as writer:
        writer.write_table(TABLE)
    with pa.OSFile(str(tmp_path / "stream.arrow"), "wb") as sink, pa.ipc.new_stream(sink, TABLE.schema) as writer:
        writer.write_table(TABLE)
    pyarrow.feather.write_feather(TABLE, str(tmp_path / "rows.feather"))
    for file in sorted(tmp_path.iterdir()):
        assert both(file) == TABLE


def test_a_missing_path_is_named(tmp_path: Path) -> None:
    for missing in (tmp_path / "nothing.parquet", tmp_path / "no folder", "relative/nothing.csv"):
        with pytest.raises(SourceError) as caught:
            load_source(missing)
        assert str(missing) in caught.value.message
        assert caught.value.in_place == "nothing was written"


def test_an_empty_folder_an_unknown_ending_and_a_url_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="holds no Parquet file"):
        load_source(tmp_path)
    (tmp_path / "rows.xlsx").touch()
    with pytest.raises(SourceError, match="does not say what it holds"):
        load_source(tmp_path / "rows.xlsx")
    with pytest.raises(SourceError, match="not a local path"):
        load_source("s3://bucket/rows.parquet")


@pytest.mark.parametrize("name", ["a.parquet", "a.csv", "a.json", "a.jsonl", "a.arrow", "a.feather"])
@pytest.mark.parametrize("content", [b"", b"\x00\xff broken \xfe", b"[", b"{"])
def test_a_corrupt_file_is_named(tmp_path: Path, name: str, content: bytes) -> None:
    file = tmp_path / name
    file.write_bytes(content)
    with pytest.raises(SourceError, match=name):
        load_source(file)


def test_a_damaged_page_is_found_while_reading_and_named(tmp_path: Path) -> None:
    file = tmp_path / "damaged.parquet"
    pq.write_table(pa.table({"text": [f"row {i}" for i in range(50_000)]}), file, compression="zstd")
    data = bytearray(file.read_bytes())
    data[1000:3000] = b"\x55" * 2000
    file.write_bytes(data)
    with pytest.raises(SourceError, match=r"damaged\.parquet"):
        load_source(file)
    with pytest.raises(SourceError, match=r"damaged\.parquet"):
        open_source(file).read_all()


def test_files_of_unrelated_types_are_refused(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": [1]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"id": ["one"]}), tmp_path / "b.parquet")
    with pytest.raises(SourceError, match="id"):
        load_source(tmp_path)
