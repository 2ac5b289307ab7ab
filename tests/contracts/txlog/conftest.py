from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from lockgate.txlog.writer import TxnLogWriter
from support.txlogs import Place, place


@pytest.fixture(params=["sqlite", "postgres"])
def somewhere(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """A place for a log, on each database."""
    server = request.getfixturevalue("postgres") if request.param == "postgres" else None
    return place(tmp_path, request.param, server)


@pytest.fixture
def log(somewhere: Place) -> Iterator[TxnLogWriter]:
    """A log with one table at version 0, which is not published."""
    with somewhere.open() as log:
        somewhere.table(log)
        yield log
