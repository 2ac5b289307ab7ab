from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lockgate
from support.care import SCHEMA, rows


@pytest.fixture(params=["sqlite", "postgres"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A log of its own, in either database."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/log.db"
    return str(request.getfixturevalue("database").url)


@pytest.fixture
def make(address: str, tmp_path: Path) -> Callable[..., lockgate.Table]:
    def make(name: str = "orders", schema: pa.Schema = SCHEMA, **options: Any) -> lockgate.Table:
        return lockgate.create_table(name, schema, location=tmp_path / name, log=address, **options)

    return make


@pytest.fixture
def orders(make: Callable[..., lockgate.Table]) -> lockgate.Table:
    """Partitioned by day; versions 1 to 3 appended one row each, version 4 changed the first."""
    table = make(partition_by=["day"])
    for i in (1, 2, 3):
        table.append(rows((i, f"v{i}", f"d{i % 2}")))
    table.merge(rows((1, "changed", "d1")), strategy="upsert", key_columns="id")
    return table
