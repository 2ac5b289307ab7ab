"""Which sweeps over every step are part of every test run, and which wait for `make soak`."""

from __future__ import annotations

from typing import Any

import pytest

from support.merge_scenarios import CASES

# An engine has a part only in what comes before the decision, so a few sweeps of the slower one say enough.
_USUAL_OF_DUCKDB = {
    ("upsert by partition", "kill after"),
    ("upsert", "kill before"),
    ("full_merge by partition", "kill before"),
    ("upsert by partition", "EIO"),
    ("full_merge", "ENOSPC"),
}
# The second fault of each pair differs little from the first: one step later, or in another word of the error.
_SECOND = ("kill after", "ENOSPC")


def sweeps(*faults: str) -> list[Any]:
    """Every case with every fault, as parameters (name, engine, fault)."""
    return [
        pytest.param(name, engine, fault, marks=() if _is_usual(name, engine, fault) else pytest.mark.slow)
        for name, engine in CASES
        for fault in faults
    ]


def _is_usual(name: str, engine: str, fault: str) -> bool:
    if engine == "duckdb":
        return (name, fault) in _USUAL_OF_DUCKDB
    return fault not in _SECOND or name.endswith("by partition")
