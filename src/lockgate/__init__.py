"""Lockgate: run SQL pipelines on Spark and let their results in only when all of them are ready.

The names below are the public API. They are loaded when first used, so that `import lockgate` is cheap.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from lockgate import errors
from lockgate.errors import (
    CheckFailed,
    ConfigError,
    DatasetBusy,
    FunctionError,
    JavaNotFound,
    JournalError,
    LockgateError,
    PartialPublish,
    PipelineError,
    PreviousRunUnfinished,
    PublishError,
    QueryError,
    ResumeError,
    RunError,
    SourceError,
    SparkUnavailable,
    StageError,
    StateError,
    StorageError,
)
from lockgate.functions import function

if TYPE_CHECKING:
    __version__: str
    from lockgate.running.entry import run
    from lockgate.running.result import RunResult
    from lockgate.targets.folder import RecoveryReport, recover

_HOME = {
    "run": "lockgate.running.entry",
    "RunResult": "lockgate.running.result",
    "recover": "lockgate.targets.folder",
    "RecoveryReport": "lockgate.targets.folder",
}

__all__ = [
    "CheckFailed",
    "ConfigError",
    "DatasetBusy",
    "FunctionError",
    "JavaNotFound",
    "JournalError",
    "LockgateError",
    "PartialPublish",
    "PipelineError",
    "PreviousRunUnfinished",
    "PublishError",
    "QueryError",
    "RecoveryReport",
    "ResumeError",
    "RunError",
    "RunResult",
    "SourceError",
    "SparkUnavailable",
    "StageError",
    "StateError",
    "StorageError",
    "__version__",
    "errors",
    "function",
    "recover",
    "run",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("lockgate")
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'lockgate' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
