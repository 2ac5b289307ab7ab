"""The suite of the engines, on datasets below a prefix of S3."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from support.s3_dataset import S3Dataset
from support.s3_server import Bucket


@pytest.fixture(params=["arrow", "duckdb"])
def implementation(request: pytest.FixtureRequest) -> Mapping[str, Any]:
    return {"engine": request.param}


@pytest.fixture
def root() -> Iterator[Path]:
    parent = Path(tempfile.mkdtemp(prefix="lockgate-contract-", dir="/dev/shm" if Path("/dev/shm").is_dir() else None))
    yield parent / "dataset"
    shutil.rmtree(parent)


@pytest.fixture
def dataset(root: Path, implementation: Mapping[str, Any], bucket: Bucket) -> Iterator[S3Dataset]:
    yield S3Dataset(root, implementation, bucket=bucket)
    assert bucket.open_uploads() == []
    hidden = {key.rpartition("/")[2] for key in bucket.keys("") if "/." in key}
    assert hidden <= {".lockgate_journal"}, "a lock or the record of uploads was left"


@pytest.hookimpl(tryfirst=True)  # before those marked slow are left out
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Each is some twenty requests; the tests of the strategies run always, the others in the long run."""
    seen = set()
    for item in items:
        if "engine_s3" not in str(item.path):
            continue
        function = getattr(item, "function", None)
        name = getattr(item, "originalname", item.name)
        always = name == "test_rows_and_counts_of_each_strategy"
        if not always and (name in seen or function.__module__.endswith(("partitions", "deduplicate"))):
            item.add_marker(pytest.mark.slow)
        seen.add(name)
