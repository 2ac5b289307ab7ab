"""Merging rows into a Delta table by key."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

from lockgate.datasets.entry import DEFAULT_MAX_ROWS_PER_FILE, DEFAULT_ROW_GROUP_SIZE, merge_request
from lockgate.datasets.sources import source_and_engine
from lockgate.errors import ArgumentError
from lockgate.merging.driver import merge_rows
from lockgate.merging.result import MergeResult
from lockgate.tables.writable import TRIES, Changeable
from lockgate.targets.delta import DeltaTarget


def merge_table(
    table: Changeable,
    source: Any,
    *,
    strategy: str,
    key_columns: str | Sequence[str],
    engine: str = "auto",
    schema: Literal["strict", "evolve"] = "strict",
    order_by: str | Sequence[str] | None = None,
    skip_unchanged: bool = False,
    allow_partition_moves: bool = False,
    dry_run: bool = False,
    compression: str | None = None,
    max_rows_per_file: int = DEFAULT_MAX_ROWS_PER_FILE,
    row_group_size: int = DEFAULT_ROW_GROUP_SIZE,
    use_merge: bool | None = None,
    connection: Any = None,
    spark: Any = None,
    partition_by: str | Sequence[str] | None = None,
    tries: int = TRIES,
) -> MergeResult:
    """All of it in one version, or nothing. A merge that clashes with others is planned up to `tries` times."""
    if isinstance(tries, bool) or not isinstance(tries, int) or tries < 1:
        raise ArgumentError(f"tries must be a positive number, not {tries!r}", in_place="nothing was written")
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
        shown_root=str(table.folder),
    )
    with source_and_engine(
        source,
        engine,
        table.storage,
        stages_in=None if dry_run else table.folder,
        identity=request.identity,
        use_merge=use_merge,
        connection=connection,
        spark=spark,
    ) as (rows, chosen):

        def change(target: DeltaTarget) -> MergeResult:
            tried = replace(request, identity=uuid.uuid4().hex)  # names of files are never used twice
            done = merge_rows(rows, target, chosen, tried)
            if done.version is None and target.snapshot is not None and not dry_run:
                return replace(done, version=target.snapshot.version)
            return done

        result = table.changed(change, tries=tries)
        if not dry_run:
            table.publish()
        return result
