"""Lockgate: run SQL pipelines on Spark and let their results in only when all of them are ready.

The names below are the public API. They are loaded when first used, so that `import lockgate` is cheap.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from lockgate import errors
from lockgate.errors import (
    ArgumentError,
    CheckFailed,
    CommitStateUnknown,
    ConfigError,
    ConstraintError,
    DamagedLog,
    DatabaseError,
    DatasetBusy,
    DatasetMergeError,
    DuplicateKeyError,
    ForeignCommit,
    FunctionError,
    JavaNotFound,
    JournalError,
    LockgateError,
    LogError,
    MergeError,
    NullKeyError,
    ObjectChanged,
    ObjectMissing,
    OutcomeUnknown,
    PartialPublish,
    PartitionMoveError,
    PipelineError,
    PreviousRunUnfinished,
    PublishError,
    QueryError,
    ResumeError,
    RunError,
    S3Error,
    S3Unreachable,
    SchemaMismatchError,
    SourceError,
    SparkUnavailable,
    StageError,
    StateError,
    StorageError,
    TableExists,
    TableNotFound,
    TimeoutError,
    UnsupportedFeature,
    ValidationError,
    VersionConflict,
    WatermarkMoved,
)
from lockgate.functions import function

if TYPE_CHECKING:
    __version__: str
    from lockgate.datasets.entry import merge, write_dataset
    from lockgate.datasets.file_manager import IncrementalFileManager
    from lockgate.datasets.io import DuckDBDatasetIO, PyArrowDatasetIO, SparkDatasetIO
    from lockgate.engines.path_validator import PathValidator
    from lockgate.merging.counts import MergeStats, compute_merge_stats
    from lockgate.merging.footers import ParquetFileMetadata, ParquetMetadataAnalyzer
    from lockgate.merging.keys import normalize_keys
    from lockgate.merging.partitions import parse_hive_partition_path
    from lockgate.merging.planning import (
        IncrementalRewritePlan,
        confirm_affected_files,
        list_dataset_files,
        plan_incremental_rewrite,
    )
    from lockgate.merging.pruning import ConservativeMembershipChecker, PartitionPruner
    from lockgate.merging.result import MergeFileMetadata, MergeResult, WriteResult
    from lockgate.merging.schema import validate_keys_and_schema
    from lockgate.merging.source_keys import validate_no_null_keys, validate_partition_column_immutability
    from lockgate.merging.strategy import MergeStrategy
    from lockgate.running.data_source import register
    from lockgate.running.entry import run
    from lockgate.running.result import RunResult
    from lockgate.tables.entry import create_table, open_table
    from lockgate.tables.table import Table
    from lockgate.targets.folder import RecoveryReport, recover
    from lockgate.txlog.commits import TableCommit
    from lockgate.txlog.writer import TxnLogWriter

_HOME = {
    "merge": "lockgate.datasets.entry",
    "write_dataset": "lockgate.datasets.entry",
    "IncrementalFileManager": "lockgate.datasets.file_manager",
    "DuckDBDatasetIO": "lockgate.datasets.io",
    "SparkDatasetIO": "lockgate.datasets.io",
    "PyArrowDatasetIO": "lockgate.datasets.io",
    "PathValidator": "lockgate.engines.path_validator",
    "MergeStats": "lockgate.merging.counts",
    "compute_merge_stats": "lockgate.merging.counts",
    "ParquetFileMetadata": "lockgate.merging.footers",
    "ParquetMetadataAnalyzer": "lockgate.merging.footers",
    "normalize_keys": "lockgate.merging.keys",
    "parse_hive_partition_path": "lockgate.merging.partitions",
    "IncrementalRewritePlan": "lockgate.merging.planning",
    "confirm_affected_files": "lockgate.merging.planning",
    "list_dataset_files": "lockgate.merging.planning",
    "plan_incremental_rewrite": "lockgate.merging.planning",
    "ConservativeMembershipChecker": "lockgate.merging.pruning",
    "PartitionPruner": "lockgate.merging.pruning",
    "MergeFileMetadata": "lockgate.merging.result",
    "MergeResult": "lockgate.merging.result",
    "WriteResult": "lockgate.merging.result",
    "validate_keys_and_schema": "lockgate.merging.schema",
    "validate_no_null_keys": "lockgate.merging.source_keys",
    "validate_partition_column_immutability": "lockgate.merging.source_keys",
    "MergeStrategy": "lockgate.merging.strategy",
    "register": "lockgate.running.data_source",
    "run": "lockgate.running.entry",
    "RunResult": "lockgate.running.result",
    "recover": "lockgate.targets.folder",
    "RecoveryReport": "lockgate.targets.folder",
    "TableCommit": "lockgate.txlog.commits",
    "TxnLogWriter": "lockgate.txlog.writer",
    "Table": "lockgate.tables.table",
    "create_table": "lockgate.tables.entry",
    "open_table": "lockgate.tables.entry",
}

__all__ = [
    "ArgumentError",
    "CheckFailed",
    "CommitStateUnknown",
    "ConfigError",
    "ConservativeMembershipChecker",
    "ConstraintError",
    "DamagedLog",
    "DatabaseError",
    "DatasetBusy",
    "DatasetMergeError",
    "DuckDBDatasetIO",
    "DuplicateKeyError",
    "ForeignCommit",
    "FunctionError",
    "IncrementalFileManager",
    "IncrementalRewritePlan",
    "JavaNotFound",
    "JournalError",
    "LockgateError",
    "LogError",
    "MergeError",
    "MergeFileMetadata",
    "MergeResult",
    "MergeStats",
    "MergeStrategy",
    "NullKeyError",
    "ObjectChanged",
    "ObjectMissing",
    "OutcomeUnknown",
    "ParquetFileMetadata",
    "ParquetMetadataAnalyzer",
    "PartialPublish",
    "PartitionMoveError",
    "PartitionPruner",
    "PathValidator",
    "PipelineError",
    "PreviousRunUnfinished",
    "PublishError",
    "PyArrowDatasetIO",
    "QueryError",
    "RecoveryReport",
    "ResumeError",
    "RunError",
    "RunResult",
    "S3Error",
    "S3Unreachable",
    "SchemaMismatchError",
    "SourceError",
    "SparkDatasetIO",
    "SparkUnavailable",
    "StageError",
    "StateError",
    "StorageError",
    "Table",
    "TableCommit",
    "TableExists",
    "TableNotFound",
    "TimeoutError",
    "TxnLogWriter",
    "UnsupportedFeature",
    "ValidationError",
    "VersionConflict",
    "WatermarkMoved",
    "WriteResult",
    "__version__",
    "compute_merge_stats",
    "confirm_affected_files",
    "create_table",
    "errors",
    "function",
    "list_dataset_files",
    "merge",
    "normalize_keys",
    "open_table",
    "parse_hive_partition_path",
    "plan_incremental_rewrite",
    "recover",
    "register",
    "run",
    "validate_keys_and_schema",
    "validate_no_null_keys",
    "validate_partition_column_immutability",
    "write_dataset",
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
