"""The Spark session of a run: local by default, a master or a Connect server if asked; quiet unless asked."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from lockgate.config import SparkSettings
from lockgate.errors import LockgateError, SparkUnavailable
from lockgate.running.java import find_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# What every run needs from its session; set for the run and put back after it.
RUN_SETTINGS = {
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",  # never INT96
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",  # the proleptic calendar, as every other reader has it
    "spark.sql.parquet.int96RebaseModeInWrite": "CORRECTED",
    "spark.sql.variable.substitute": "false",  # ${...} is ours; what a value holds reaches Spark verbatim
    "spark.sql.sources.partitionOverwriteMode": "STATIC",
    "spark.sql.python.filterPushdown.enabled": "true",  # to our own data sources, which are refused without it
}

_LOG_LIMIT = 16 * 2**20  # bytes of spark.log kept from run to run

# What a session that we start gets unless the profile says otherwise.
OUR_DEFAULTS = {"spark.sql.session.timeZone": "UTC"}

REACH_SECONDS = 10.0  # for a Connect server to answer at all


def open_session(settings: SparkSettings, *, name: str, scratch: Path, debug: bool = False) -> SparkSession:
    """Start or reach Spark. What the JVM prints goes to `scratch/spark.log`; with `debug` it is shown here."""
    log = None if debug else scratch / "spark.log"
    _quiet_python_loggers(not debug)
    try:
        return _connect(settings, name) if settings.remote else _start(settings, name, log, scratch)
    except LockgateError:
        raise
    except ImportError as error:
        raise SparkUnavailable(
            f"Spark Connect needs a package that is not installed: {_first_line(error)}",
            in_place="nothing was run",
            hint="pip install 'lockgate[connect]'",
        ) from error
    except Exception as error:  # whatever py4j, grpc or the JVM raise: the run cannot begin
        reason = _first_line(error).replace(settings.remote or "\0", settings.address)
        raise SparkUnavailable(
            f"cannot start Spark at {settings.address}: {reason}",
            in_place="nothing was run",
            hint=f"see {log}"
            if log and log.exists() and not settings.remote
            else "is the address right and reachable?",
        ) from error


def _connect(settings: SparkSettings, name: str) -> SparkSession:
    from pyspark.sql import SparkSession

    _reach(str(settings.remote), settings.address)
    builder = SparkSession.builder.remote(str(settings.remote)).appName(name)
    for key, value in {**OUR_DEFAULTS, **settings.conf}.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.version  # noqa: B018 - the first call to the server, so that an unreachable one is found here
    return session


def _reach(remote: str, shown: str) -> None:
    """Find out soon whether a server is there: Spark's client by itself tries for ten minutes, and again at exit."""
    import grpc  # type: ignore[import-untyped]
    from pyspark.sql.connect.client import DefaultChannelBuilder

    with DefaultChannelBuilder(remote).toChannel() as channel:
        try:
            grpc.channel_ready_future(channel).result(timeout=REACH_SECONDS)
        except grpc.FutureTimeoutError:
            raise SparkUnavailable(
                f"no Spark Connect server answers at {shown} within {REACH_SECONDS:g} s",
                in_place="nothing was run",
                hint="is the address right, and the server running?",
            ) from None


def _start(settings: SparkSettings, name: str, log: Path | None, scratch: Path) -> SparkSession:
    from pyspark.sql import SparkSession

    os.environ["JAVA_HOME"] = str(find_java().home)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    builder = SparkSession.builder.master(settings.master).appName(name)
    for key, value in {**_defaults(settings.master, scratch), **settings.conf}.items():
        builder = builder.config(key, value)
    with _stderr_to(log):
        return builder.getOrCreate()


def _defaults(master: str, scratch: Path) -> dict[str, str]:
    defaults = {
        **OUR_DEFAULTS,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.warehouse.dir": f"file://{scratch.resolve()}/spark-warehouse",  # else Spark makes one where we stand
    }
    if master.startswith("local"):
        cores = os.cpu_count() or 1
        gigabytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**30
        defaults |= {
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.memory": f"{max(1, min(8, gigabytes // 4))}g",
            "spark.sql.shuffle.partitions": str(max(8, 4 * cores)),
        }
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    return defaults


@contextmanager
def run_settings(session: SparkSession) -> Iterator[None]:
    """Set what a run needs on the session, and put back what was there."""
    before = {key: session.conf.get(key, None) for key in RUN_SETTINGS}
    for key, value in RUN_SETTINGS.items():
        session.conf.set(key, value)
    try:
        yield
    finally:
        for key, old in before.items():
            if old is None:
                quietly(session.conf.unset, key)
            else:
                quietly(session.conf.set, key, old)


def quietly(action: Callable[..., object], *arguments: object) -> None:
    """Clean up in a session that may be gone by now, without hiding why it is gone."""
    try:
        action(*arguments)
    except Exception as error:
        logging.getLogger(__name__).debug("cleaning up the Spark session: %s", error)


@contextmanager
def _stderr_to(log: Path | None) -> Iterator[None]:
    """Let processes started inside inherit a log file as their standard error. The JVM's chatter begins before
    any of its own log settings apply, so this is the only place that catches all of it."""
    if log is None:
        yield
        return
    log.parent.mkdir(parents=True, exist_ok=True)
    if log.exists() and log.stat().st_size > _LOG_LIMIT:
        log.unlink()
    sys.stderr.flush()
    kept = os.dup(2)
    target = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
    try:
        os.dup2(target, 2)
        yield
    finally:
        sys.stderr.flush()
        os.dup2(kept, 2)
        os.close(kept)
        os.close(target)


def _quiet_python_loggers(quiet: bool) -> None:
    """PySpark logs every failed statement with its whole Java trace; our error says it in a few lines."""
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger", "pyspark", "py4j"):
        logging.getLogger(name).setLevel(logging.CRITICAL if quiet else logging.NOTSET)


def _first_line(error: Exception) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
