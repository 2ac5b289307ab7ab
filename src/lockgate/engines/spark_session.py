"""The session that a program has already, and its options."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def active_session() -> Any:
    """The session of this thread, classic or over Connect, or None."""
    from pyspark.sql import SparkSession

    return SparkSession.getActiveSession()


def is_local(session: SparkSession) -> bool:
    """Whether its workers are processes of this machine, in this very environment. A server of Spark Connect may have
    a local master too, and another Python than ours."""
    if type(session).__module__.startswith("pyspark.sql.connect"):
        return False
    return (session.conf.get("spark.master", None) or "").startswith("local")


@contextmanager
def settings(session: SparkSession, wanted: dict[str, str]) -> Iterator[None]:
    """Options of a session for the time of a block, as they were again after it."""
    before = {name: session.conf.get(name, None) for name in wanted}
    for name, value in wanted.items():
        session.conf.set(name, value)
    try:
        yield
    finally:
        for name, old in before.items():
            if old is None:
                session.conf.unset(name)
            else:
                session.conf.set(name, old)
