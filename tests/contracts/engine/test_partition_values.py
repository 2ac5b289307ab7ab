"""Values that are awkward as names of folders, and types whose text is not their value."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pytest

from contracts.engine.dataset import Dataset, counts
from lockgate.errors import SchemaMismatchError

TEXTS = [
    "Zürich",
    "日本",
    "50%",
    "a/b",
    "a b",
    "a=b",
    "a%2Fb",
    "'",
    '"',
    "..",
    "x\\y",
    "a:b",
    "007",
    "#",
    "NULL",
    "{}",
    " ",
]


def table(values: list[Any], kind: pa.DataType, mark: str) -> pa.Table:
    return pa.table(
        {
            "id": pa.array(range(len(values)), pa.int64()),
            "p": pa.array(values, kind),
            "x": [f"{mark} {i}" for i in range(len(values))],
        }
    )


def test_any_text_may_be_a_partition(dataset: Dataset) -> None:
    dataset.merge(table(TEXTS, pa.string(), "old"), partition_by="p")
    assert {r["id"]: r["p"] for r in dataset.rows()} == dict(enumerate(TEXTS))

    result = dataset.merge(table(TEXTS, pa.string(), "new"), "update")

    assert result.updated == len(TEXTS)
    assert {r["id"]: (r["p"], r["x"]) for r in dataset.rows()} == {i: (t, f"new {i}") for i, t in enumerate(TEXTS)}


def test_any_text_may_be_a_partition_inside_the_key(dataset: Dataset) -> None:
    dataset.merge(table(TEXTS, pa.string(), "old"), key=["p", "id"], partition_by="p")
    result = dataset.merge(table([*TEXTS, "another"], pa.string(), "new"), key=["p", "id"])
    assert counts(result) == {"inserted": 1, "updated": len(TEXTS), "deleted": 0}


def test_no_partition_leaves_the_dataset(dataset: Dataset) -> None:
    dataset.merge(table(["../../escaped", "..", "."], pa.string(), "old"), partition_by="p")
    assert sorted(p.name for p in dataset.root.parent.iterdir()) == ["dataset"]


TYPED: dict[str, tuple[list[Any], pa.DataType]] = {
    "date": ([date(2026, 1, 1), date(1, 1, 1), date(9999, 12, 31), None], pa.date32()),
    "int": ([1, -5, 2**62, None], pa.int64()),
    "int8": ([7, -128], pa.int8()),
    "uint64": ([2**64 - 1, 0], pa.uint64()),
    "bool": ([True, False, None], pa.bool_()),
    "timestamp": ([datetime(2026, 1, 1, 10, 30), datetime(2026, 1, 1, 10, 30, 0, 5)], pa.timestamp("us")),
    "zoned timestamp": ([datetime(2026, 1, 1, 10, 30)], pa.timestamp("us", "Europe/Oslo")),
    "decimal": ([Decimal("1.50"), Decimal("-0.25")], pa.decimal128(8, 2)),
    "double": ([0.1, -1e300, float("inf")], pa.float64()),
    "large_string": (["a", "b c"], pa.large_string()),
    "dictionary": (["a", "b c", "a"], pa.dictionary(pa.int8(), pa.string())),
}


@pytest.mark.parametrize("case", TYPED)
def test_values_of_each_type_are_found_again(dataset: Dataset, case: str) -> None:
    values, kind = TYPED[case]
    dataset.merge(table(values, kind, "old"), partition_by="p")
    folders = {f.parent.name for f in dataset.files()}

    result = dataset.merge(table(values, kind, "new"), "upsert")

    assert counts(result) == {"inserted": 0, "updated": len(values), "deleted": 0}
    assert {f.parent.name for f in dataset.files()} == folders
    assert all(x.startswith("new") for x in dataset.column("x"))


@pytest.mark.parametrize("case", [c for c in TYPED if None not in TYPED[c][0]])
def test_values_of_each_type_within_the_key(dataset: Dataset, case: str) -> None:
    values, kind = TYPED[case]
    dataset.merge(table(values, kind, "old"), key=["id", "p"], partition_by="p")
    result = dataset.merge(table(values, kind, "new"), "upsert", ["id", "p"])
    assert counts(result) == {"inserted": 0, "updated": len(values), "deleted": 0}


def test_a_folder_007_is_the_number_7(dataset: Dataset) -> None:
    dataset.add("code=007/a.parquet", pa.table({"id": [1], "x": ["a"]}))
    source = pa.table({"id": [1, 2], "x": ["A", "b"], "code": pa.array([7, 7], pa.int32())})
    result = dataset.merge(source)
    assert counts(result) == {"inserted": 1, "updated": 1, "deleted": 0}
    assert {f.parent.name for f in dataset.files()} == {"code=007"}, "the folder it has, not a second one"


def test_a_folder_007_is_the_text_007(dataset: Dataset) -> None:
    dataset.add("code=007/a.parquet", pa.table({"id": [1], "x": ["a"]}))
    result = dataset.merge(pa.table({"id": [1, 2], "x": ["A", "b"], "code": ["007", "7"]}))
    assert counts(result) == {"inserted": 1, "updated": 1, "deleted": 0}
    assert {f.parent.name for f in dataset.files()} == {"code=007", "code=7"}


def test_folders_as_spark_spells_a_timestamp(dataset: Dataset) -> None:
    name = "at=2026-01-01 10%3A30%3A00"
    dataset.add(f"{name}/a.parquet", pa.table({"id": [1], "x": ["a"]}))
    at = pa.array([datetime(2026, 1, 1, 10, 30)] * 2, pa.timestamp("us"))
    result = dataset.merge(pa.table({"id": [1, 2], "x": ["A", "b"], "at": at}))
    assert counts(result) == {"inserted": 1, "updated": 1, "deleted": 0}
    assert {f.parent.name for f in dataset.files()} == {name}


def test_a_folder_that_is_no_value_of_the_type_is_an_error_that_names_it(dataset: Dataset) -> None:
    dataset.add("code=abc/a.parquet", pa.table({"id": [1], "x": ["a"]}))
    with pytest.raises(SchemaMismatchError, match="code=abc"):
        dataset.merge(pa.table({"id": [1], "x": ["A"], "code": [7]}))


def test_the_empty_text_is_refused_as_a_partition(dataset: Dataset) -> None:
    """Readers would take it for NULL."""
    with pytest.raises(SchemaMismatchError, match="NULL"):
        dataset.merge(table(["", "a"], pa.string(), "old"), partition_by="p")
    assert dataset.rows() == []


@pytest.mark.parametrize("name", ["a column", "städte", "a=b", "a/b", "_p", "50%"])
def test_awkward_names_of_partition_columns(dataset: Dataset, name: str) -> None:
    source = pa.table({"id": [1, 2], "x": ["a", "b"], name: ["p", "q"]})
    dataset.merge(source, partition_by=[name])
    assert sorted(unquote(f.parent.name) for f in dataset.files()) == [f"{name}=p", f"{name}=q"]
    assert counts(dataset.merge(source)) == {"inserted": 0, "updated": 2, "deleted": 0}
