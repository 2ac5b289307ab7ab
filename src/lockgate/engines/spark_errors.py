"""What Spark raises, as our errors."""

from __future__ import annotations

import re
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
            f"Spark failed at {doing}: {_reason(str(error))}",
            hint="Spark's own log says more",
        ) from error


def _reason(text: str) -> str:
    """The first line; of an exception in Python, its last."""
    lines = [line for line in text.splitlines() if line.strip()]
    if not lines:
        return "it gave no reason"
    if "Python worker" not in lines[0]:
        return lines[0].strip()
    raised = re.findall(r"^(\w[\w.]*(?:Error|Exception|Exit|Interrupt): .*)$", text, re.MULTILINE)
    return str(raised[0]) if raised else lines[-1].strip()
