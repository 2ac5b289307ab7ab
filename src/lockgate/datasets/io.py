"""One class an engine, with `merge` and `write_dataset`, for those who choose the engine once."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lockgate.datasets.entry import DEFAULT_MAX_ROWS_PER_FILE, DEFAULT_ROW_GROUP_SIZE, merge, write_dataset
from lockgate.errors import ArgumentError
from lockgate.merging.result import MergeResult, WriteResult


class _DatasetIO:
    _engine: str

    def merge(
        self,
        source: Any = None,
        path: str | Path | None = None,
        strategy: str | None = None,
        key_columns: str | Sequence[str] | None = None,
        partition_columns: str | Sequence[str] | None = None,
        filesystem: Any = None,
        compression: str | None = None,
        max_rows_per_file: int = DEFAULT_MAX_ROWS_PER_FILE,
        row_group_size: int = DEFAULT_ROW_GROUP_SIZE,
        *,
        data: Any = None,
        partition_by: str | Sequence[str] | None = None,
        **options: Any,
    ) -> MergeResult:
        """As `lockgate.merge`, by this engine. `data` and `partition_columns` are other names of `source` and
        `partition_by`."""
        return merge(
            _one("source", source, "data", data),
            _needed("path", path),
            strategy=_needed("strategy", strategy),
            key_columns=_needed("key_columns", key_columns),
            partition_by=_one_or_none("partition_by", partition_by, "partition_columns", partition_columns),
            filesystem=filesystem,
            compression=compression,
            max_rows_per_file=max_rows_per_file,
            row_group_size=row_group_size,
            engine=self._engine,
            **self._own_options(),
            **options,
        )

    def write_dataset(
        self,
        source: Any = None,
        path: str | Path | None = None,
        mode: str = "append",
        *,
        data: Any = None,
        partition_by: str | Sequence[str] | None = None,
        partition_columns: str | Sequence[str] | None = None,
        **options: Any,
    ) -> WriteResult:
        """As `lockgate.write_dataset`."""
        return write_dataset(
            _one("source", source, "data", data),
            _needed("path", path),
            mode=mode,  # type: ignore[arg-type]  # checked there
            partition_by=_one_or_none("partition_by", partition_by, "partition_columns", partition_columns),
            **options,
        )

    def _own_options(self) -> dict[str, Any]:
        return {}


class PyArrowDatasetIO(_DatasetIO):
    """Parquet datasets by the Arrow engine.

    >>> import pyarrow as pa, tempfile
    >>> io = PyArrowDatasetIO()
    >>> io.merge(pa.table({"id": [1]}), tempfile.mkdtemp(), strategy="upsert", key_columns=["id"]).inserted
    1
    """

    _engine = "arrow"


class DuckDBDatasetIO(_DatasetIO):
    """Parquet datasets by the DuckDB engine. A connection that is given is used and left as it was."""

    _engine = "duckdb"

    def __init__(self, connection: Any = None) -> None:
        self._connection = connection

    def _own_options(self) -> dict[str, Any]:
        return {"connection": self._connection}


class SparkDatasetIO(_DatasetIO):
    """Parquet datasets by the Spark engine. Without a session, the source's own is used, or the one that is active."""

    _engine = "spark"

    def __init__(self, spark: Any = None) -> None:
        self._spark = spark

    def _own_options(self) -> dict[str, Any]:
        return {"spark": self._spark}


def _needed(name: str, value: Any) -> Any:
    if value is None:
        raise ArgumentError(f"{name} is missing", in_place="nothing was written")
    return value


def _one(name: str, value: Any, other: str, alternative: Any) -> Any:
    found = _one_or_none(name, value, other, alternative)
    return _needed(name, found)


def _one_or_none(name: str, value: Any, other: str, alternative: Any) -> Any:
    if value is not None and alternative is not None:
        raise ArgumentError(f"{name} and {other} are the same thing; give one", in_place="nothing was written")
    return alternative if value is None else value
