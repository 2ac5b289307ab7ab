"""`lockgate.merge` and `lockgate.write_dataset`."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from lockgate.datasets.choice import chosen_engine
from lockgate.datasets.filesystems import local_root, s3_root
from lockgate.datasets.on_s3 import merge_on_s3, refuse_overwrite, refuse_spark, s3_folder
from lockgate.datasets.sources import source_and_engine
from lockgate.datasets.writing import WriteRequest, write_rows
from lockgate.errors import ArgumentError
from lockgate.merging.driver import MergeRequest, merge_rows
from lockgate.merging.keys import normalize_keys
from lockgate.merging.order import parse_order_by
from lockgate.merging.result import MergeResult, WriteResult
from lockgate.merging.source import load_source, open_source
from lockgate.merging.strategy import MergeStrategy
from lockgate.merging.table_source import TableSource
from lockgate.storage.local import LocalStorage
from lockgate.targets.folder import DEFAULT_LOCK_TIMEOUT
from lockgate.targets.open_folder import DatasetFolder

DEFAULT_MAX_ROWS_PER_FILE = 5_000_000
DEFAULT_ROW_GROUP_SIZE = 500_000
CODECS = ("none", "snappy", "gzip", "zstd", "brotli", "lz4")


def merge(
    source: Any,
    path: str | Path,
    *,
    strategy: str,
    key_columns: str | Sequence[str],
    engine: str = "auto",
    partition_by: str | Sequence[str] | None = None,
    schema: Literal["strict", "evolve"] = "strict",
    order_by: str | Sequence[str] | None = None,
    skip_unchanged: bool = False,
    allow_partition_moves: bool = False,
    dry_run: bool = False,
    filesystem: Any = None,
    compression: str | None = None,
    max_rows_per_file: int = DEFAULT_MAX_ROWS_PER_FILE,
    row_group_size: int = DEFAULT_ROW_GROUP_SIZE,
    use_merge: bool | None = None,
    lock_timeout: float = DEFAULT_LOCK_TIMEOUT,
    connection: Any = None,
    spark: Any = None,
    s3_connection: str | None = None,
    storage: LocalStorage | None = None,
) -> MergeResult:
    """Merge rows by key into the Parquet dataset at `path`: all of it, or nothing.

    >>> import pyarrow as pa, tempfile
    >>> orders = tempfile.mkdtemp()
    >>> merge(pa.table({"id": [1, 2], "x": ["a", "b"]}), orders, strategy="upsert", key_columns="id").inserted
    2
    >>> result = merge(pa.table({"id": [2, 3], "x": ["B", "C"]}), orders, strategy="upsert", key_columns="id")
    >>> result.updated, result.inserted, result.target_count_after
    (1, 1, 3)
    """
    _require_seconds(lock_timeout)
    request = merge_request(
        strategy=strategy,
        key_columns=key_columns,
        partition_by=partition_by,
        schema=schema,
        order_by=order_by,
        skip_unchanged=skip_unchanged,
        allow_partition_moves=allow_partition_moves,
        dry_run=dry_run,
        compression=compression,
        max_rows_per_file=max_rows_per_file,
        row_group_size=row_group_size,
        shown_root=str(path).rstrip("/") or "/",
    )
    disk = storage or LocalStorage()
    prefix = s3_root(path, filesystem)
    if prefix is not None:
        refuse_spark(engine)
        folder = s3_folder(prefix, disk, connection=s3_connection, lock_timeout=lock_timeout)
        with chosen_engine(engine, disk, use_merge=use_merge, connection=connection) as chosen:
            return merge_on_s3(TableSource(load_source(source)), folder, chosen, request)
    target = DatasetFolder(local_root(path, filesystem), disk, lock_timeout=lock_timeout)
    writes = not dry_run and (target.exists() or request.strategy.actions.creates)
    if writes:
        target.refuse_delta()
    with source_and_engine(
        source,
        engine,
        disk,
        stages_in=target.root if writes else None,
        identity=request.identity,
        use_merge=use_merge,
        connection=connection,
        spark=spark,
    ) as (rows, chosen):
        return merge_rows(rows, target, chosen, request)


def merge_request(
    *,
    strategy: str,
    key_columns: str | Sequence[str],
    shown_root: str,
    partition_by: str | Sequence[str] | None = None,
    schema: Literal["strict", "evolve"] = "strict",
    order_by: str | Sequence[str] | None = None,
    skip_unchanged: bool = False,
    allow_partition_moves: bool = False,
    dry_run: bool = False,
    compression: str | None = None,
    max_rows_per_file: int = DEFAULT_MAX_ROWS_PER_FILE,
    row_group_size: int = DEFAULT_ROW_GROUP_SIZE,
) -> MergeRequest:
    """What a caller of a merge asks for, refused here if it makes no sense."""
    wanted = _strategy(strategy)
    if order_by and not wanted.actions.deduplicates:
        raise ArgumentError(
            f"order_by says which of several source rows stays, and {wanted} takes no two rows of one key",
            hint="leave it out, or use strategy='deduplicate'",
            in_place="nothing was written",
        )
    _require_choice("schema", schema, ("strict", "evolve"))
    _require_positive(max_rows_per_file=max_rows_per_file, row_group_size=row_group_size)
    _require_codec(compression)
    request = MergeRequest(
        strategy=wanted,
        key_columns=tuple(normalize_keys(key_columns)),
        identity=uuid.uuid4().hex,
        partition_by=_names(partition_by),
        schema=schema,
        order_by=tuple([order_by] if isinstance(order_by, str) else order_by or ()),
        skip_unchanged=skip_unchanged,
        allow_partition_moves=allow_partition_moves,
        dry_run=dry_run,
        compression=compression,
        max_rows_per_file=max_rows_per_file,
        row_group_size=row_group_size,
        shown_root=shown_root,
    )
    parse_order_by(request.order_by)
    return request


def write_dataset(
    source: Any,
    path: str | Path,
    *,
    mode: Literal["append", "overwrite"] = "append",
    partition_by: str | Sequence[str] | None = None,
    schema: Literal["strict", "evolve"] = "strict",
    filesystem: Any = None,
    compression: str | None = None,
    max_rows_per_file: int = DEFAULT_MAX_ROWS_PER_FILE,
    row_group_size: int = DEFAULT_ROW_GROUP_SIZE,
    lock_timeout: float = DEFAULT_LOCK_TIMEOUT,
    s3_connection: str | None = None,
    storage: LocalStorage | None = None,
) -> WriteResult:
    """Add rows to the Parquet dataset at `path` in new files, or replace all its rows; all of it, or nothing.

    >>> import pyarrow as pa, tempfile
    >>> write_dataset(pa.table({"id": [1, 2]}), tempfile.mkdtemp()).total_rows
    2
    """
    _require_seconds(lock_timeout)
    request = write_request(
        mode=mode,
        partition_by=partition_by,
        schema=schema,
        compression=compression,
        max_rows_per_file=max_rows_per_file,
        row_group_size=row_group_size,
        shown_root=str(path).rstrip("/") or "/",
    )
    disk = storage or LocalStorage()
    prefix = s3_root(path, filesystem)
    if prefix is not None:
        refuse_overwrite(mode, prefix)
        folder = s3_folder(prefix, disk, connection=s3_connection, lock_timeout=lock_timeout)
        return write_rows(open_source(source), folder, disk, request)
    target = DatasetFolder(local_root(path, filesystem), disk, lock_timeout=lock_timeout)
    return write_rows(open_source(source), target, disk, request)


def write_request(
    *,
    mode: Literal["append", "overwrite"],
    shown_root: str,
    partition_by: str | Sequence[str] | None = None,
    schema: Literal["strict", "evolve"] = "strict",
    compression: str | None = None,
    max_rows_per_file: int = DEFAULT_MAX_ROWS_PER_FILE,
    row_group_size: int = DEFAULT_ROW_GROUP_SIZE,
) -> WriteRequest:
    """What a caller of a write asks for, refused here if it makes no sense."""
    _require_choice("mode", mode, ("append", "overwrite"))
    _require_choice("schema", schema, ("strict", "evolve"))
    _require_positive(max_rows_per_file=max_rows_per_file, row_group_size=row_group_size)
    _require_codec(compression)
    return WriteRequest(
        mode=mode,
        identity=uuid.uuid4().hex,
        partition_by=_names(partition_by),
        schema=schema,
        compression=compression,
        max_rows_per_file=max_rows_per_file,
        row_group_size=row_group_size,
        shown_root=shown_root,
    )


def _names(columns: str | Sequence[str] | None) -> tuple[str, ...] | None:
    if columns is None:
        return None
    names = (columns,) if isinstance(columns, str) else tuple(columns)
    if not all(isinstance(name, str) and name for name in names) or len(set(names)) < len(names):
        raise ArgumentError(
            f"partition_by must name columns, each once, not {columns!r}", in_place="nothing was written"
        )
    return names


def _strategy(name: str) -> MergeStrategy:
    try:
        return MergeStrategy(name)
    except ValueError as error:
        raise ArgumentError(str(error), in_place="nothing was written") from None


def _require_choice(name: str, value: str, known: Sequence[str]) -> None:
    if value not in known:
        raise ArgumentError(
            f"{name} must be {' or '.join(repr(k) for k in known)}, not {value!r}", in_place="nothing was written"
        )


def _require_seconds(lock_timeout: float) -> None:
    if isinstance(lock_timeout, bool) or not isinstance(lock_timeout, int | float) or not lock_timeout >= 0:
        raise ArgumentError(
            f"lock_timeout must be a number of seconds, not {lock_timeout!r}", in_place="nothing was written"
        )


def _require_positive(**numbers: int) -> None:
    for name, value in numbers.items():
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise ArgumentError(f"{name} must be a positive number, not {value!r}", in_place="nothing was written")


def _require_codec(compression: str | None) -> None:
    if compression is not None and (not isinstance(compression, str) or compression.lower() not in CODECS):
        raise ArgumentError(
            f"there is no compression {compression!r}",
            hint=f"known: {', '.join(CODECS)}",
            in_place="nothing was written",
        )
