"""A merge by the Spark engine: the source is computed once, and kept by Spark or staged beside the data meanwhile."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lockgate.engines.arrow import ArrowEngine
from lockgate.errors import ArgumentError
from lockgate.merging.driver import MergeRequest, merge_rows
from lockgate.merging.result import MergeResult
from lockgate.merging.source import comes_from, load_source
from lockgate.merging.table_source import TableSource
from lockgate.storage.local import LocalStorage
from lockgate.storage.staging import StagingArea
from lockgate.targets.open_folder import DatasetFolder

if TYPE_CHECKING:
    from lockgate.engines.spark import SparkEngine
    from lockgate.engines.spark_source import SparkSource

log = logging.getLogger("lockgate.merge")


def is_spark_frame(source: Any) -> bool:
    return comes_from("pyspark", source) and hasattr(source, "toArrow")


def merge_by_spark(
    source: Any, target: DatasetFolder, storage: LocalStorage, request: MergeRequest, spark: Any
) -> MergeResult:
    """`spark` is a session; None takes the source's own, or the one that is active."""
    from lockgate.engines.spark import SparkEngine
    from lockgate.engines.spark_source import of_table

    with ExitStack() as stack:
        if is_spark_frame(source):
            session = source.sparkSession
            rows = stack.enter_context(_computed(source, target, storage, request))
        else:
            table = load_source(source)
            session = spark if spark is not None else _needed_session()
            reason = _why_not_carried(table.schema)
            if reason:
                log.info("the merge is done by Arrow: %s", reason)
                return merge_rows(TableSource(table), target, ArrowEngine(storage), request)
            rows = of_table(session, table)
        return merge_rows(rows, target, stack.enter_context(SparkEngine(session, storage)), request)


@contextmanager
def _computed(frame: Any, target: DatasetFolder, storage: LocalStorage, request: MergeRequest) -> Iterator[SparkSource]:
    """The source's rows, computed once: staged in the dataset's folder, unless nothing may be written there."""
    from lockgate.engines.spark_source import held, staged

    if request.dry_run or not (target.exists() or request.strategy.actions.creates):
        with held(frame) as source:
            yield source
        return
    target.refuse_delta()
    area = StagingArea.create(storage, target.root, f"{request.identity}-source")
    try:
        with staged(frame, area.rows) as source:
            yield source
    finally:
        area.discard()


def _why_not_carried(schema: pa.Schema) -> str | None:
    from lockgate.engines.spark_keys import is_carried

    odd = next((f for f in schema if not is_carried(f.type)), None)
    return None if odd is None else f"Spark has no type that holds every {odd.type} of column {odd.name!r}"


@contextmanager
def spark_rows(session: Any, folder: Path, storage: LocalStorage) -> Iterator[tuple[SparkSource, SparkEngine]]:
    """Rows that Spark has staged in `folder`, and the engine that merges them."""
    from lockgate.engines.spark import SparkEngine
    from lockgate.engines.spark_source import of_written

    with SparkEngine(session, storage) as engine:
        yield of_written(session, folder), engine


def active_session() -> Any:
    """The Spark session of this thread, classic or over Connect, or None. Nothing is imported to find out."""
    if "pyspark" not in sys.modules:
        return None
    from lockgate.engines.spark_session import active_session

    return active_session()


def _needed_session() -> Any:
    session = active_session()
    if session is None:
        raise ArgumentError(
            "the Spark engine needs a Spark session, and there is none",
            in_place="nothing was written",
            hint="start one first, or pass it: SparkDatasetIO(spark)",
        )
    return session
