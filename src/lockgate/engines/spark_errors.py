"""What Spark raises, as our errors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from lockgate.engines.spark_worker import unpacked
from lockgate.errors import DatasetMergeError, LockgateError


@contextmanager
def explained(doing: str) -> Iterator[None]:
    """An error of ours that a worker told is raised again; what else Spark raises becomes one."""
    try:
        yield
    except LockgateError:
        raise
    except Exception as error:
        told = unpacked(str(error))
        if told is not None:
            raise told from error
        raise DatasetMergeError(
            f"Spark failed at {doing}: {_first_line(str(error))}",
            hint="Spark's own log says more",
        ) from error


def _first_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[0] if lines else "it gave no reason"
