"""This package, handed to Spark's workers: they run parts of it, and need not have it installed."""

from __future__ import annotations

import tempfile
import zipfile
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakSet

from lockgate.engines.spark_session import is_local

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_given: WeakSet[SparkSession] = WeakSet()


def give_package(session: SparkSession) -> None:
    """Once a session. A local one runs its workers in this very environment."""
    if session in _given or is_local(session):
        return
    session.addArtifacts(str(_archive()), pyfile=True)
    _given.add(session)


@cache
def _archive() -> Path:
    root = Path(__file__).parents[1]
    archive = Path(tempfile.mkdtemp(prefix="lockgate-package-")) / "lockgate.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as out:
        for file in sorted(root.rglob("*")):
            if file.is_file() and "__pycache__" not in file.parts:
                out.write(file, Path("lockgate") / file.relative_to(root))
    return archive
