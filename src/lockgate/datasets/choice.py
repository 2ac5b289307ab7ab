"""Which engine does a merge, and why."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from lockgate.engines.arrow import ArrowEngine
from lockgate.errors import ArgumentError
from lockgate.merging.protocol import DataFile, Engine, EngineChoice
from lockgate.storage.local import LocalStorage

if TYPE_CHECKING:
    import pyarrow as pa

log = logging.getLogger("lockgate.merge")

ENGINES = ("auto", "arrow", "duckdb")


@contextmanager
def chooser(engine: str, storage: LocalStorage, *, use_merge: bool | None, connection: Any) -> Iterator[EngineChoice]:
    """A function that is asked once, when the files are known. What it opened is closed when the block ends."""
    if use_merge is not None and not isinstance(use_merge, bool):
        raise ArgumentError(
            f"Invalid use_merge value: {use_merge!r}\nMust be True, False, or None for auto-detect",
            in_place="nothing was written",
        )
    if engine == "spark":
        raise ArgumentError(
            "the Spark engine is not available in this version", hint="use 'auto', 'arrow' or 'duckdb'",
            in_place="nothing was written",
        )  # fmt: skip
    if engine not in ENGINES:
        raise ArgumentError(
            f"there is no engine {engine!r}", hint=f"known: {', '.join(ENGINES)}", in_place="nothing was written"
        )
    with ExitStack() as stack:

        def choose(files: Sequence[DataFile], schema: pa.Schema) -> Engine:
            if engine == "arrow":
                return ArrowEngine(storage)
            from lockgate.engines.duckdb import DuckDBEngine
            from lockgate.engines.duckdb_types import why_not

            reason = why_not(files, schema) if files else "there are no files to look into yet"
            if engine == "auto" and reason:
                log.info("auto: the Arrow engine, because %s", reason)
                return ArrowEngine(storage)
            if engine == "auto":
                log.info("auto: the DuckDB engine, because it can write these files as they are")
            return stack.enter_context(DuckDBEngine(storage, use_merge=use_merge, connection=connection))

        yield choose
