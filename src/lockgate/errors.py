"""Every error Lockgate raises on purpose.

    LockgateError                     exit code 1 unless said otherwise
    ├── PipelineError                 exit 2: the pipeline text is wrong; carries every diagnostic
    ├── ConfigError                   exit 2: lockgate.toml or the command line is wrong
    │   └── ArgumentError             an argument of a function has a value that it cannot have (also a ValueError)
    ├── RunError                      a run could not do its work
    │   ├── JavaNotFound              no Java 17+ and no bundled runtime
    │   ├── SparkUnavailable          the Spark session could not be started or reached
    │   ├── SourceError               a source could not be read
    │   ├── QueryError                Spark refused or failed a statement; has its place in the pipeline
    │   ├── FunctionError             a Python function under functions/ could not be loaded
    │   ├── StageError                the rows of an export could not be staged
    │   ├── CheckFailed               exit 4: a CHECK found rows
    │   ├── PreviousRunUnfinished     exit 3: an interrupted run of this pipeline must be finished first
    │   ├── WatermarkMoved            another run has read the same rows of an incremental source meanwhile
    │   ├── PublishError              nothing was published
    │   ├── PartialPublish            exit 3: some exports are published, `lockgate resume` finishes
    │   │   └── OutcomeUnknown        exit 3: a server did not answer, so a write may have happened or not
    │   └── ResumeError               this run cannot be resumed
    ├── MergeError                    a keyed merge or a dataset write was refused or failed; nothing was changed
    │   ├── NullKeyError              a source row has NULL in a key column (also a ValueError)
    │   ├── DuplicateKeyError         two source rows have one key (also a ValueError)
    │   ├── SchemaMismatchError       columns or types do not fit without loss (also a ValueError)
    │   ├── ConstraintError           a row breaks NOT NULL or a CHECK constraint; has some rows (also a ValueError)
    │   ├── PartitionMoveError        an existing key would change its partition (also a ValueError)
    │   └── DatasetMergeError         an engine failed, or a file cannot be read; has strategy, keys, files
    ├── StorageError                  a file or folder could not be read or written
    │   ├── DatasetBusy               another live writer holds the dataset's lock (also a TimeoutError)
    │   ├── JournalError              a dataset's journal cannot be read or finished
    │   └── S3Error                   S3 refused a request; has its `code`
    │       ├── S3Unreachable         S3 did not answer, or not with anything that settles the request
    │       ├── ObjectMissing         there is no such object or upload
    │       └── ObjectChanged         somebody else's write came first
    ├── LogError                      the log of Delta tables refused or failed
    │   ├── TableNotFound             the log has no table of that name, or no such version of it
    │   ├── TableExists               the name or the location belongs to another table
    │   ├── ValidationError           actions that the table cannot take; nothing was committed (also a ValueError)
    │   ├── VersionConflict           another commit came first; has expected and actual; nothing was committed
    │   ├── DatabaseError             the log's database refused or failed; nothing was committed
    │   ├── TimeoutError              the log's database did not answer in time (also the built-in TimeoutError)
    │   ├── CommitStateUnknown        the database cannot be asked whether a commit went through
    │   ├── ForeignCommit             somebody else wrote a commit into the table's _delta_log
    │   ├── DamagedLog                an existing _delta_log cannot be read, or contradicts itself; nothing was changed
    │   └── UnsupportedFeature        a Delta table uses a feature that is not supported; has feature
    └── StateError                    the project's record of runs cannot be read or written

A message says what happened and to which object; `in_place` says what is true of the data now;
`hint` says what to do.
"""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any, ClassVar, Protocol


class Problem(Protocol):
    """A diagnostic as errors see it: it can print itself."""

    def render(self) -> str: ...


class LockgateError(Exception):
    """Base of all errors that Lockgate raises on purpose."""

    exit_code: ClassVar[int] = 1

    def __init__(self, message: str, *, hint: str | None = None, in_place: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.in_place = in_place
        self.result: Any = None  # the RunResult, where the error ended a run

    def render(self) -> str:
        """The error as a user should read it: what, what is in place now, what to do."""
        lines = [self.message]
        if self.in_place:
            lines.append(f"now: {self.in_place}")
        if self.hint:
            lines.append(f"do:  {self.hint}")
        return "\n".join(lines)


class PipelineError(LockgateError):
    """The pipeline's text is wrong. `diagnostics` holds every problem found, not the first alone."""

    exit_code = 2

    def __init__(self, diagnostics: Sequence[Problem]) -> None:
        self.diagnostics = tuple(diagnostics)
        count = len(self.diagnostics)
        super().__init__(f"{count} error{'s' if count != 1 else ''} in the pipeline", in_place="nothing was run")

    def __str__(self) -> str:
        return "\n\n".join(d.render() for d in self.diagnostics)

    def render(self) -> str:
        return str(self)


class ConfigError(LockgateError):
    exit_code = 2


class ArgumentError(ConfigError, ValueError):
    pass


class RunError(LockgateError):
    pass


class JavaNotFound(RunError):
    pass


class SparkUnavailable(RunError):
    pass


class SourceError(RunError):
    source: str | None = None  # its name, where the error came about far from the pipeline


class QueryError(RunError):
    pass


class FunctionError(RunError):
    pass


class StageError(RunError):
    pass


class CheckFailed(RunError):
    exit_code = 4


class PreviousRunUnfinished(RunError):
    exit_code = 3


class WatermarkMoved(RunError):
    pass


class PublishError(RunError):
    pass


class PartialPublish(RunError):
    exit_code = 3


class OutcomeUnknown(PartialPublish):
    """A server was told to make a write visible, and nobody can say now whether it did. What is staged is kept."""


class ResumeError(RunError):
    pass


class MergeError(LockgateError):
    pass


class NullKeyError(MergeError, ValueError):
    pass


class DuplicateKeyError(MergeError, ValueError):
    pass


class SchemaMismatchError(MergeError, ValueError):
    pass


class ConstraintError(MergeError, ValueError):
    """Rows break what their table demands, or it cannot be told. `rows` are up to five of them."""

    def __init__(
        self,
        message: str,
        *,
        hint: str | None = None,
        in_place: str | None = None,
        rows: Sequence[dict[str, Any]] = (),
    ) -> None:
        super().__init__(message, hint=hint, in_place=in_place)
        self.rows = tuple(rows)


class PartitionMoveError(MergeError, ValueError):
    pass


class DatasetMergeError(MergeError):
    """An engine failed in the middle of a merge, or a file of the dataset cannot be read."""

    def __init__(
        self,
        message: str,
        *,
        strategy: str | None = None,
        key_columns: Sequence[str] = (),
        files: Sequence[str] = (),
        hint: str | None = None,
        in_place: str | None = "nothing was written",
    ) -> None:
        super().__init__(message, hint=hint, in_place=in_place)
        self.strategy = strategy
        self.key_columns = tuple(key_columns)
        self.files = tuple(files)


class StorageError(LockgateError):
    pass


class DatasetBusy(StorageError, builtins.TimeoutError):
    pass


class JournalError(StorageError):
    pass


class S3Error(StorageError):
    """S3, or a store that speaks like it, refused a request."""

    def __init__(self, message: str, *, code: str = "", hint: str | None = None, in_place: str | None = None) -> None:
        super().__init__(message, hint=hint, in_place=in_place)
        self.code = code


class S3Unreachable(S3Error):
    pass


class ObjectMissing(S3Error):
    pass


class ObjectChanged(S3Error):
    pass


class LogError(LockgateError):
    pass


class TableNotFound(LogError):
    pass


class TableExists(LogError):
    pass


class ValidationError(LogError, ValueError):
    pass


class VersionConflict(LogError):
    """Another commit came first. `expected` is the version asked for, or None; `actual` the table's current one."""

    def __init__(
        self,
        message: str,
        *,
        expected: int | None = None,
        actual: int | None = None,
        hint: str | None = "read the table again and plan the change on what is there now",
        in_place: str | None = "nothing was committed",
    ) -> None:
        super().__init__(message, hint=hint, in_place=in_place)
        self.expected = expected
        self.actual = actual


class DatabaseError(LogError):
    pass


class TimeoutError(LogError, builtins.TimeoutError):
    pass


class CommitStateUnknown(LogError):
    """A commit whose outcome could not be asked for. `txn_id` settles it: committing again with it is safe."""

    def __init__(
        self, message: str, *, txn_id: str | None = None, hint: str | None = None, in_place: str | None = None
    ) -> None:
        super().__init__(message, hint=hint, in_place=in_place)
        self.txn_id = txn_id


class ForeignCommit(LogError):
    pass


class DamagedLog(LogError):
    """A `_delta_log` cannot be read, or its files contradict each other."""

    def __init__(self, message: str, *, hint: str | None = None, in_place: str | None = "nothing was changed") -> None:
        super().__init__(message, hint=hint, in_place=in_place)


class UnsupportedFeature(LogError):
    """A Delta table uses a feature that Lockgate does not support; it is refused, never ignored."""

    def __init__(
        self, message: str, *, feature: str = "", hint: str | None = None, in_place: str | None = "nothing was changed"
    ) -> None:
        super().__init__(message, hint=hint, in_place=in_place)
        self.feature = feature


class StateError(LockgateError):
    pass
