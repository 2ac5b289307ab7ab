"""Which engine does the merge of a keyed export, and why. Light: a plan says it before anything is read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

# Rows of so many bytes, in a dataset of so many, are merged by one machine before a cluster has begun.
SMALL, SMALL_DATASET = 64 * 2**20, 2**30

_SPELLED = {"arrow": "Arrow", "duckdb": "DuckDB", "spark": "Spark"}


def asked_engine(options: Mapping[str, Any]) -> str:
    return str(options.get("engine", "auto")).lower()


def engine_in_words(options: Mapping[str, Any]) -> str:
    """What is known before the rows are.

    >>> engine_in_words({"engine": "DUCKDB"})
    'by DuckDB, which its options ask for'
    """
    asked = asked_engine(options)
    if asked in _SPELLED:
        return f"by {_SPELLED[asked]}, which its options ask for"
    return (
        f"by Arrow if there are less than {SMALL >> 20} MB of rows, "
        f"and Spark runs on this machine or the dataset has less than {SMALL_DATASET >> 30} GB; else by Spark"
    )


def chosen_engine(rows: int, dataset: Callable[[], int], *, spark_is_here: bool) -> tuple[str, str]:
    """By the bytes of the staged rows and of the dataset: the engine, and the reason."""
    if rows >= SMALL:
        return "spark", f"the rows to merge are many: {rows:,} bytes"
    if spark_is_here:
        return "arrow", f"the rows to merge are few, {rows:,} bytes, and Spark runs on this machine"
    size = dataset()
    if size < SMALL_DATASET:
        return "arrow", f"the rows to merge are few, {rows:,} bytes, and so are the dataset's: {size:,} bytes"
    return "spark", f"the dataset is large: {size:,} bytes"
