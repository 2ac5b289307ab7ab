"""This package, handed to Spark's workers: they run parts of it, and need not have it installed."""

from __future__ import annotations

import tempfile
import zipfile
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakSet

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_given: WeakSet[SparkSession] = WeakSet()


def give_package(session: SparkSession) -> None:
    """Once a session. A local one runs its workers in this very environment."""
    if session in _given or _is_local(session):
        return
    session.addArtifacts(str(_archive()), pyfile=True)
    _given.add(session)


def _is_local(session: SparkSession) -> bool:
    """A server of Spark Connect may have a local master too, and another Python than ours."""
    if type(session).__module__.startswith("pyspark.sql.connect"):
        return False
    return (session.conf.get("spark.master", None) or "").startswith("local")


@cache
def _archive() -> Path:
    root = Path(__file__).parents[1]
    archive = Path(tempfile.mkdtemp(prefix="lockgate-package-")) / "lockgate.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as out:
        for file in sorted(root.rglob("*")):
            if file.is_file() and "__pycache__" not in file.parts:
                out.write(file, Path("lockgate") / file.relative_to(root))
    return archive
