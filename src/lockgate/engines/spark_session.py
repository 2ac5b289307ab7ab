"""The session that a program has already."""

from __future__ import annotations

from typing import Any


def active_session() -> Any:
    """The session of this thread, classic or over Connect, or None."""
    from pyspark.sql import SparkSession

    return SparkSession.getActiveSession()
