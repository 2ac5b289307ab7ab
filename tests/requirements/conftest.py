from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lockgate import DuckDBDatasetIO, PyArrowDatasetIO


@pytest.fixture
def connection() -> Iterator[Any]:
    with duckdb.connect() as opened:
        yield opened


@pytest.fixture(params=["pyarrow", "duckdb"])
def backend(request: pytest.FixtureRequest) -> Any:
    return PyArrowDatasetIO() if request.param == "pyarrow" else DuckDBDatasetIO()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "dataset"


@pytest.fixture
def file(path: Path) -> Callable[..., str]:
    """Make a file of the dataset; answers with its path."""

    def write(name: str, columns: dict[str, Any], **options: Any) -> str:
        where = path / name
        where.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table(columns), where, **options)
        return str(where)

    return write


@pytest.fixture
def rows(path: Path) -> Callable[[], list[dict[str, Any]]]:
    """All rows of the dataset by their first column."""

    def read() -> list[dict[str, Any]]:
        found = [row for f in sorted(path.rglob("*.parquet")) for row in pq.ParquetFile(f).read().to_pylist()]
        return sorted(found, key=lambda row: tuple(map(str, row.values())))

    return read
