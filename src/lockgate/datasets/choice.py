"""Which engine does a merge, and why."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from lockgate.engines.arrow import ArrowEngine
from lockgate.errors import ArgumentError
from lockgate.merging.protocol import Engine
from lockgate.merging.table_source import SourceRows
from lockgate.storage.local import LocalStorage

log = logging.getLogger("lockgate.merge")

ENGINES = ("auto", "arrow", "duckdb", "spark")
_SPELLED = {"arrow": "Arrow", "duckdb": "DuckDB"}


@contextmanager
def chosen_engine(
    engine: str, storage: LocalStorage, *, use_merge: bool | None, connection: Any
) -> Iterator[Engine[SourceRows]]:
    """The engine of that name, for the time of the block."""
    if use_merge is not None and not isinstance(use_merge, bool):
        raise ArgumentError(
            f"Invalid use_merge value: {use_merge!r}\nMust be True, False, or None for auto-detect",
            in_place="nothing was written",
        )
    if engine not in ENGINES:
        raise ArgumentError(
            f"there is no engine {engine!r}", hint=f"known: {', '.join(ENGINES)}", in_place="nothing was written"
        )
    if engine == "auto":
        engine, reason = _chosen(use_merge, connection)
        log.info("auto: the %s engine, because %s", _SPELLED[engine], reason)
    if engine == "arrow":
        yield ArrowEngine(storage)
        return
    from lockgate.engines.duckdb import DuckDBEngine

    with DuckDBEngine(storage, use_merge=use_merge, connection=connection) as duckdb:
        yield duckdb


def _chosen(use_merge: bool | None, connection: Any) -> tuple[str, str]:
    if connection is not None:
        return "duckdb", "a connection to it was given"
    if use_merge is not None:
        return "duckdb", "use_merge is an option of it"
    return "arrow", "it takes less time and memory than DuckDB for the same result"
