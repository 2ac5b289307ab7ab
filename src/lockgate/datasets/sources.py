"""The rows of a merge as its engine takes them, and the engine."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lockgate.datasets.by_spark import is_spark_frame, rows_for_spark
from lockgate.datasets.choice import chosen_engine
from lockgate.merging.protocol import Engine, Source
from lockgate.merging.source import load_source
from lockgate.merging.table_source import TableSource
from lockgate.storage.local import LocalStorage

log = logging.getLogger("lockgate.merge")


@contextmanager
def source_and_engine(
    source: Any,
    engine: str,
    storage: LocalStorage,
    *,
    stages_in: Path | None,
    identity: str,
    use_merge: bool | None = None,
    connection: Any = None,
    spark: Any = None,
) -> Iterator[tuple[Source[Any], Engine[Any]]]:
    """`stages_in` is the folder in which rows that Spark computes may be staged; None: nothing may be written."""
    if engine == "spark" or (engine == "auto" and is_spark_frame(source)):
        if engine == "auto":
            log.info("auto: the Spark engine, because the source is a Spark DataFrame")
        with rows_for_spark(source, storage, stages_in, identity, spark) as both:
            yield both
        return
    with chosen_engine(engine, storage, use_merge=use_merge, connection=connection) as chosen:
        yield TableSource(load_source(source)), chosen
