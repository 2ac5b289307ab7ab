from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.merge_places import fast_folder


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder of the test's own; a dataset is made inside it, so that what gets out of the dataset shows."""
    with fast_folder() as folder:
        folder.chmod(0o755)  # some tests look at it as another user
        yield folder


@pytest.fixture(params=["arrow", "duckdb"])
def engine(request: pytest.FixtureRequest) -> str:
    return str(request.param)
