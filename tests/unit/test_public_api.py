from __future__ import annotations

import subprocess
import sys

import lockgate
from lockgate import errors


def test_the_public_names_are_pinned() -> None:
    assert sorted(lockgate.__all__) == [
        "ArgumentError", "CheckFailed", "CommitStateUnknown", "ConfigError", "ConservativeMembershipChecker",
        "ConstraintError", "DamagedLog", "DatabaseError", "DatasetBusy", "DatasetMergeError", "DuckDBDatasetIO",
        "DuplicateKeyError", "ForeignCommit", "FunctionError", "IncrementalFileManager", "IncrementalRewritePlan",
        "JavaNotFound", "JournalError", "LockgateError", "LogError", "MergeError", "MergeFileMetadata", "MergeResult",
        "MergeStats", "MergeStrategy", "NullKeyError", "ObjectChanged", "ObjectMissing", "OutcomeUnknown",
        "ParquetFileMetadata",
        "ParquetMetadataAnalyzer", "PartialPublish", "PartitionMoveError", "PartitionPruner", "PathValidator",
        "PipelineError", "PreviousRunUnfinished", "PublishError", "PyArrowDatasetIO", "QueryError", "RecoveryReport",
        "ResumeError", "RunError", "RunResult", "S3Error", "S3Unreachable", "SchemaMismatchError", "SourceError",
        "SparkDatasetIO", "SparkUnavailable", "StageError", "StateError", "StorageError", "Table", "TableCommit",
        "TableExists", "TableNotFound", "TimeoutError", "TxnLogWriter", "UnsupportedFeature", "ValidationError",
        "VersionConflict", "WatermarkMoved", "WriteResult", "__version__", "compute_merge_stats",
        "confirm_affected_files", "create_table", "errors", "function", "list_dataset_files", "merge",
        "normalize_keys", "open_table", "parse_hive_partition_path", "plan_incremental_rewrite", "recover",
        "register", "run", "validate_keys_and_schema", "validate_no_null_keys",
        "validate_partition_column_immutability", "write_dataset",
    ]  # fmt: skip
    assert all(getattr(lockgate, name) is not None for name in lockgate.__all__)


def test_every_error_is_in_the_tree_of_the_docstring_and_importable_from_the_top() -> None:
    classes = [c for c in vars(errors).values() if isinstance(c, type) and issubclass(c, lockgate.LockgateError)]
    assert len(classes) > 15
    for each in classes:
        assert each.__name__ in (errors.__doc__ or "")
        assert each.__name__ in lockgate.__all__


def test_run_is_the_function_even_after_its_package_is_loaded() -> None:
    import lockgate.running.entry

    assert lockgate.run is lockgate.running.entry.run


def loaded_by(code: str) -> set[str]:
    said = subprocess.run(
        [sys.executable, "-c", f"import sys\n{code}\nprint(' '.join(sys.modules))"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return set(said.stdout.splitlines()[-1].split())


HEAVY = {"pyspark", "pyarrow", "duckdb", "pandas", "numpy", "rich", "sqlite3", "boto3", "botocore"}


def test_import_lockgate_is_light() -> None:
    assert not loaded_by("import lockgate") & (HEAVY | {"sqlglot"})


def test_check_loads_nothing_heavy(tmp_path) -> None:
    pipeline = tmp_path / "p.sql"
    pipeline.write_text(
        'SOURCE a TYPE CSV PARAMS {"path": "x.csv"}; LOAD t FROM a;\n'
        'EXPORT t TO "o.csv" TYPE CSV MODE REPLACE; EXPORT t TO "o" TYPE PARQUET MODE REPLACE;\n'
        'EXPORT t TO "s3://lake/o.csv" TYPE S3 MODE REPLACE;'
    )
    code = (
        "from lockgate.cli.app import app\n"
        f"try:\n    app(['check', {str(pipeline)!r}])\nexcept SystemExit as end:\n    assert not end.code, end.code"
    )
    assert not loaded_by(code) & HEAVY
