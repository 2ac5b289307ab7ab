"""A merge by the Spark engine: the source is computed once, and kept by Spark or staged beside the data meanwhile."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lockgate.errors import ArgumentError
from lockgate.merging.protocol import Engine, Source
from lockgate.merging.source import comes_from, load_source
from lockgate.merging.table_source import TableSource
from lockgate.storage.local import LocalStorage
from lockgate.storage.staging import StagingArea

if TYPE_CHECKING:
    from lockgate.engines.spark_computed import ComputedRows

log = logging.getLogger("lockgate.merge")


def is_spark_frame(source: Any) -> bool:
    return comes_from("pyspark", source) and hasattr(source, "toArrow")


@contextmanager
def rows_for_spark(
    source: Any, storage: LocalStorage, stages_in: Path | None, identity: str, spark: Any
) -> Iterator[tuple[Source[Any], Engine[Any]]]:
    """The source and a Spark engine. `spark` is a session; None takes the source's own, or the one that is active."""
    from lockgate.engines.spark_spread import SparkSpreadEngine

    if is_spark_frame(source):
        with (
            _computed(source, storage, stages_in, identity) as given,
            _with_engine(given, source.sparkSession, storage) as both,
        ):
            yield both
        return
    session = spark if spark is not None else _needed_session()
    with SparkSpreadEngine(session, storage) as engine:
        yield TableSource(load_source(source)), engine


@contextmanager
def _computed(frame: Any, storage: LocalStorage, stages_in: Path | None, identity: str) -> Iterator[ComputedRows]:
    """The source's rows, computed once: staged in the dataset's folder, unless nothing may be written there."""
    from lockgate.engines.spark_computed import held, staged

    if stages_in is None:
        with held(frame) as source:
            yield source
        return
    area = StagingArea.create(storage, stages_in, f"{identity}-source")
    try:
        with staged(frame, area.rows) as source:
            yield source
    finally:
        area.discard()


@contextmanager
def _with_engine(given: ComputedRows, session: Any, storage: LocalStorage) -> Iterator[tuple[Source[Any], Engine[Any]]]:
    """The source, and the way of merging that suits its size."""
    from lockgate.engines.spark import SparkEngine
    from lockgate.engines.spark_spread import SparkSpreadEngine

    table = given.brought()
    if table is not None:
        log.info("Spark's tasks get what they need of the %s source rows", f"{given.rows:,}")
        with SparkSpreadEngine(session, storage) as spread:
            yield TableSource(table), spread
        return
    log.info("Spark joins the %s source rows with the dataset's keys", f"{given.rows:,}")
    with SparkEngine(session, storage) as engine:
        yield given.source(), engine


@contextmanager
def spark_rows(session: Any, folder: Path, storage: LocalStorage) -> Iterator[tuple[Source[Any], Engine[Any]]]:
    """Rows that Spark has staged in `folder`, and the engine that merges them."""
    from lockgate.engines.spark_computed import written

    with _with_engine(written(session, folder), session, storage) as both:
        yield both


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
