"""Work in a process of its own, which may be killed.

The processes are forked from a server that has everything imported and no thread running: forking the test run
itself would copy the locks of DuckDB's, Arrow's and Spark's threads in whatever state they are in.
"""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from typing import Any

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(
    [
        "pytest",
        "duckdb",
        "pyarrow.parquet",
        "pyarrow.compute",
        "lockgate.datasets.entry",
        "lockgate.engines.duckdb",
        "lockgate.running.settle",
        "lockgate.running.pipeline",
        "lockgate.destinations.parquet",
        "lockgate.destinations.parquet_keyed",
        "lockgate.destinations.delta_publishing",
        "lockgate.destinations.postgres_publish",
        "adbc_driver_postgresql.dbapi",
        "psycopg",
        "deltalake",
    ]
)
_PATIENCE = 120.0  # seconds after which a process that should have ended is taken for deadlocked


def start(work: Callable[..., None], *given: Any) -> BaseProcess:
    """Start `work`, a function of a module, with these arguments."""
    process = _CONTEXT.Process(target=work, args=given, daemon=True)
    process.start()
    return process


def end_of(process: BaseProcess) -> int:
    """Wait for its end: 0, an exit code, or minus the signal that ended it."""
    process.join(_PATIENCE)
    if process.exitcode is None:
        process.kill()
        process.join()
        raise AssertionError("the process did not end; it is taken for deadlocked")
    code = process.exitcode
    process.close()
    return code


def run(work: Callable[..., None], *given: Any) -> int:
    return end_of(start(work, *given))


def was_killed(code: int) -> bool:
    return code == -signal.SIGKILL


def event() -> Any:
    """Something that processes can set and wait for."""
    return _CONTEXT.Event()


def barrier(count: int) -> Any:
    """Where so many processes wait for each other."""
    return _CONTEXT.Barrier(count)


def queue() -> Any:
    return _CONTEXT.SimpleQueue()


def number(value: int = 0) -> Any:
    """A number that processes share. It has no lock, which a killed process would keep."""
    return _CONTEXT.RawValue("q", value)
