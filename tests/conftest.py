from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

import lockgate
from lockgate.config import SparkSettings
from lockgate.running.result import RunResult

pytest_plugins = ["support.s3_server"]

# How long an example takes is the machine's business: a busy one must not fail a test.
settings.register_profile("lockgate", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("lockgate")

# One session serves the whole test run; small, and quick to plan.
CONF = {
    "spark.sql.shuffle.partitions": "4",
    "spark.driver.memory": "2g",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",  # a quarter less work
    "spark.sql.codegen.wholeStage": "false",  # the tests' data is tiny, compiling for it is not
}


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    from lockgate.running.session import open_session

    settings = SparkSettings(master="local[2]", conf=CONF)
    if remote := os.environ.get("LOCKGATE_TEST_SPARK_REMOTE"):  # set by contracts/engine/test_spark_connect.py
        settings = SparkSettings(remote=remote, conf={"spark.sql.shuffle.partitions": "4"})
    session = open_session(settings, name="lockgate tests", scratch=tmp_path_factory.mktemp("spark"))
    yield session
    session.stop()


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty project folder that is the current folder."""
    monkeypatch.chdir(tmp_path)
    for name in [n for n in os.environ if n.startswith("LOCKGATE_")]:
        monkeypatch.delenv(name)
    return tmp_path


@pytest.fixture
def run_sql(project: Path, spark: Any) -> Callable[..., RunResult]:
    """Run a pipeline given as text, in the current project, on the shared session."""

    def run(text: str, *, name: str = "pipeline.sql", **options: Any) -> RunResult:
        (project / name).write_bytes(text.encode())
        return lockgate.run(name, spark=spark, **options)

    return run


@pytest.fixture
def place() -> Iterator[Path]:
    """An empty folder where to sync takes no time, for tests that sync again and again."""
    from support.merge_places import fast_folder

    with fast_folder() as folder:
        yield folder


@pytest.fixture(scope="session")
def postgres() -> Any:
    """The database that every PostgreSQL server has, for tests that make room for themselves in it."""
    from support.postgres import Database, url_of

    return Database(url_of("postgres"))


@pytest.fixture
def database() -> Iterator[Any]:
    """A PostgreSQL database of its own, on a real server that is started when the first test asks."""
    from support.postgres import new_database

    with new_database() as made:
        yield made
