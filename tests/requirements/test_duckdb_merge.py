"""requirements/duckdb-merge.md: one test for each of its scenarios, by its title.

SPEC §5 says otherwise in one place: DuckDB cannot MERGE INTO a Parquet file nor COPY a MERGE, so MERGE runs on a
temporary table of keys and row numbers, and COPY writes the file.
"""

from __future__ import annotations

import gc
import logging
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lockgate import DatasetMergeError, DuckDBDatasetIO, PathValidator
from lockgate.engines.duckdb_version import duckdb_version, parse_version, supports_merge
from requirements.recording import RecordingConnection

Files = Callable[..., str]
Rows = Callable[[], list[dict[str, Any]]]

AUTO = "Using DuckDB MERGE for merge operation (auto-detected)"
EXPLICIT = "Using DuckDB MERGE (explicitly requested)"
FALLBACK = "Using UNION ALL fallback for merge operation (DuckDB < 1.4.0 or MERGE unavailable)"
EXPLICIT_FALLBACK = "Using UNION ALL (explicitly requested)"


def source() -> pa.Table:
    return pa.table({"id": [2, 3], "x": ["new", "new"]})


@pytest.fixture
def target(file: Files) -> str:
    """Two rows; the source matches one, and has one more."""
    return file("a.parquet", {"id": [1, 2], "x": ["old", "old"]})


@pytest.fixture
def said(caplog: pytest.LogCaptureFixture) -> Callable[[], list[str]]:
    caplog.set_level(logging.INFO, logger="lockgate.merge")
    return lambda: [record.getMessage() for record in caplog.records if record.name == "lockgate.merge"]


def answering(version: str) -> Callable[[str], str]:
    """The connection's real answer replaced by that of another DuckDB."""
    return lambda statement: f"SELECT '{version}' AS library_version" if "pragma_version" in statement else statement


def merge(connection: Any, path: Path, strategy: str = "upsert", **options: Any) -> Any:
    options = {"strategy": strategy, "key_columns": ["id"]} | options
    return DuckDBDatasetIO(connection).merge(source(), path, **options)


@pytest.fixture
def spied(connection: Any, monkeypatch: pytest.MonkeyPatch) -> Callable[..., RecordingConnection]:
    """The given connection, and with it those that a merge opens to write: all in one log."""
    connect = duckdb.connect

    def watch(rewriting: Callable[[str], str] = str) -> RecordingConnection:
        spy = RecordingConnection(connection, rewriting)
        monkeypatch.setattr(
            duckdb, "connect", lambda *a, **k: RecordingConnection(connect(*a, **k), rewriting, spy.log)
        )
        return spy

    return watch


def left_behind(connection: Any) -> list[Any]:
    """Tables and views, temporary ones included."""
    tables = connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()
    views = connection.execute("SELECT view_name FROM duckdb_views() WHERE NOT internal").fetchall()
    return [*tables, *views]


@pytest.mark.usefixtures("target")
def test_user_calls_merge_with_duckdb_1_4_0_auto_detect(
    connection: Any, path: Path, rows: Rows, said: Callable[[], list[str]]
) -> None:
    """Requirement: native MERGE statement (DuckDB >= 1.4.0)
    Scenario: User calls merge with DuckDB >= 1.4.0 (auto-detect)"""
    spy = RecordingConnection(connection)
    result = merge(spy, path)
    assert len(spy.log.having("pragma_version()")) == 1
    assert len(spy.log.having("MERGE INTO")) == 1
    assert not spy.log.having("UNION ALL")
    assert AUTO in said()
    assert (result.inserted, result.updated) == (1, 1)
    assert [(r["id"], r["x"]) for r in rows()] == [(1, "old"), (2, "new"), (3, "new")]


@pytest.mark.usefixtures("target")
def test_user_calls_merge_with_duckdb_1_4_0_explicit_request(
    connection: Any, path: Path, said: Callable[[], list[str]]
) -> None:
    """Requirement: native MERGE statement (DuckDB >= 1.4.0)
    Scenario: User calls merge with DuckDB >= 1.4.0 (explicit request)"""
    spy = RecordingConnection(connection)
    result = merge(spy, path, use_merge=True)
    assert len(spy.log.having("pragma_version()")) == 1
    assert spy.log.having("MERGE INTO")
    assert not spy.log.having("UNION ALL")
    assert EXPLICIT in said()
    assert (result.inserted, result.updated) == (1, 1)


@pytest.mark.usefixtures("target")
def test_user_calls_merge_with_duckdb_before_1_4_0_auto_detect_fallback(
    connection: Any, path: Path, said: Callable[[], list[str]]
) -> None:
    """Requirement: native MERGE statement (DuckDB >= 1.4.0)
    Scenario: User calls merge with DuckDB < 1.4.0 (auto-detect fallback)"""
    spy = RecordingConnection(connection, answering("v1.3.2"))
    result = merge(spy, path)
    assert spy.log.having("pragma_version()")
    assert not spy.log.having("MERGE INTO")
    (statement,) = spy.log.having("UNION ALL")
    assert "NOT EXISTS" in statement
    assert FALLBACK in said()
    assert (result.inserted, result.updated) == (1, 1)


@pytest.mark.usefixtures("target")
def test_user_calls_merge_with_duckdb_before_1_4_0_explicit_fallback(
    connection: Any, path: Path, said: Callable[[], list[str]]
) -> None:
    """Requirement: native MERGE statement (DuckDB >= 1.4.0)
    Scenario: User calls merge with DuckDB < 1.4.0 (explicit fallback)"""
    spy = RecordingConnection(connection, answering("v1.3.2"))
    result = merge(spy, path, use_merge=False)
    assert not spy.log.having("pragma_version")
    assert not spy.log.having("MERGE INTO")
    assert spy.log.having("UNION ALL")
    assert EXPLICIT_FALLBACK in said()
    assert (result.inserted, result.updated) == (1, 1)


@pytest.mark.usefixtures("target")
def test_merge_insert_strategy_execution(connection: Any, path: Path, rows: Rows) -> None:
    """Requirement: native MERGE statement (DuckDB >= 1.4.0) / Scenario: MERGE INSERT strategy execution"""
    spy = RecordingConnection(connection)
    result = merge(spy, path, "insert")
    (statement,) = spy.log.having("MERGE INTO")
    assert "WHEN NOT MATCHED THEN INSERT BY NAME" in statement
    assert "WHEN MATCHED" not in statement
    assert (result.updated, result.inserted) == (0, 1)
    assert [(r["id"], r["x"]) for r in rows()] == [(1, "old"), (2, "old"), (3, "new")]


@pytest.mark.usefixtures("target")
def test_merge_update_strategy_execution(connection: Any, path: Path, rows: Rows) -> None:
    """Requirement: native MERGE statement (DuckDB >= 1.4.0) / Scenario: MERGE UPDATE strategy execution"""
    spy = RecordingConnection(connection)
    result = merge(spy, path, "update")
    (statement,) = spy.log.having("MERGE INTO")
    assert "WHEN MATCHED THEN UPDATE SET" in statement
    assert "SET *" not in statement, "it is positional"
    assert "INSERT" not in statement
    assert (result.updated, result.inserted) == (1, 0)
    assert [(r["id"], r["x"]) for r in rows()] == [(1, "old"), (2, "new")]


@pytest.mark.usefixtures("target")
def test_merge_upsert_strategy_execution(connection: Any, path: Path, rows: Rows) -> None:
    """Requirement: native MERGE statement (DuckDB >= 1.4.0) / Scenario: MERGE UPSERT strategy execution"""
    spy = RecordingConnection(connection)
    result = merge(spy, path, "upsert")
    (statement,) = spy.log.having("MERGE INTO")
    assert "WHEN MATCHED THEN UPDATE SET" in statement
    assert "WHEN NOT MATCHED THEN INSERT BY NAME" in statement
    assert "RETURNING merge_action" in statement
    assert not spy.log.having("UNION ALL")
    assert (result.updated, result.inserted) == (1, 1)
    assert len(rows()) == 3


def test_multi_column_key_handling_with_merge(connection: Any, path: Path, file: Files, rows: Rows) -> None:
    """Requirement: native MERGE statement (DuckDB >= 1.4.0) / Scenario: Multi-column key handling with MERGE"""
    columns = {"id": [1, 1], 'the "category"': ["A", "B"], "x": ["old", "old"]}
    file("a.parquet", columns)
    fresh = pa.table({"x": ["new", "new"], 'the "category"': ["B", "C"], "id": [1, 1]})
    spy = RecordingConnection(connection)
    result = DuckDBDatasetIO(spy).merge(fresh, path, "upsert", ["id", 'the "category"'])
    (statement,) = spy.log.having("MERGE INTO")
    condition = re.search(r"ON \((.*?)\)", statement)
    assert condition is not None
    assert condition[1].count(" = ") == 2
    assert " AND " in condition[1]
    assert (result.updated, result.inserted) == (1, 1)
    assert [(r['the "category"'], r["x"]) for r in rows()] == [("A", "old"), ("B", "new"), ("C", "new")]


@pytest.mark.usefixtures("target")
def test_returning_clause_audit_trail(connection: Any, path: Path) -> None:
    """Requirement: native MERGE statement (DuckDB >= 1.4.0) / Scenario: RETURNING clause audit trail"""
    for strategy in ("insert", "update", "upsert", "full_merge", "deduplicate"):
        spy = RecordingConnection(connection)
        merge(spy, path, strategy)
        (statement,) = spy.log.having("MERGE INTO")
        assert "RETURNING merge_action" in statement


VERSIONS = {"1.4.0": (1, 4, 0), "1.4.1": (1, 4, 1), "10.2.3": (10, 2, 3), "v2.0.0": (2, 0, 0), "v1.3.2": (1, 3, 2)}


@pytest.mark.parametrize("text", VERSIONS)
def test_duckdb_version_detection_succeeds(connection: Any, text: str) -> None:
    """Requirement: System SHALL detect DuckDB version for MERGE support
    Scenario: DuckDB version detection succeeds"""
    assert parse_version(text) == VERSIONS[text]
    spy = RecordingConnection(connection, answering(text))
    assert duckdb_version(spy) == VERSIONS[text]
    assert duckdb_version(spy) == VERSIONS[text]
    assert len(spy.log.having("pragma_version()")) == 1, "asked once a connection"
    assert duckdb_version(connection) == tuple(int(n) for n in duckdb.__version__.split(".")[:3])


@pytest.mark.usefixtures("target")
def test_duckdb_version_is_asked_once_for_several_merges(connection: Any, path: Path) -> None:
    """Requirement: System SHALL detect DuckDB version for MERGE support
    Scenario: DuckDB version detection succeeds (4. Cache version result per connection)"""
    spy = RecordingConnection(connection)
    io = DuckDBDatasetIO(spy)
    for _ in range(3):
        io.merge(source(), path, "upsert", ["id"])
    assert len(spy.log.having("pragma_version()")) == 1


def test_a_connection_that_is_gone_is_forgotten() -> None:
    """Requirement: System SHALL detect DuckDB version for MERGE support (a later connection is asked anew)"""
    with duckdb.connect() as first:
        spy = RecordingConnection(first, answering("v1.3.2"))
        assert duckdb_version(spy) == (1, 3, 2)
    del spy
    gc.collect()
    with duckdb.connect() as second:
        assert duckdb_version(RecordingConnection(second, answering("v1.4.0"))) == (1, 4, 0)


NONSENSE = {
    "the query fails": "SELECT * FROM there_is_no_such_function()",
    "it is no statement": "SELEKT",
    "no row": "SELECT 'v1.4.0' WHERE false",
    "no version": "SELECT 'development'",
    "two numbers": "SELECT 'v1.4'",
    "NULL": "SELECT NULL",
    "two rows": "SELECT 'v1.4.0' FROM range(2)",
}


@pytest.mark.parametrize("case", NONSENSE)
@pytest.mark.usefixtures("target")
def test_duckdb_version_detection_fails_gracefully(
    connection: Any, path: Path, rows: Rows, said: Callable[[], list[str]], case: str
) -> None:
    """Requirement: System SHALL detect DuckDB version for MERGE support
    Scenario: DuckDB version detection fails gracefully"""
    spy = RecordingConnection(connection, lambda s: NONSENSE[case] if "pragma_version" in s else s)
    result = merge(spy, path)
    assert any(line.startswith("Could not determine DuckDB version") for line in said())
    assert FALLBACK in said()
    assert not spy.log.having("MERGE INTO")
    assert (result.inserted, result.updated) == (1, 1)
    assert len(rows()) == 3


def test_merge_support_check() -> None:
    """Requirement: System SHALL detect DuckDB version for MERGE support / Scenario: MERGE support check"""
    assert [supports_merge(v) for v in ((1, 4, 0), (1, 4, 1), (1, 10, 0), (2, 0, 0), (10, 2, 0))] == [True] * 5
    assert [supports_merge(v) for v in ((0, 0, 0), (0, 10, 2), (1, 3, 99))] == [False] * 3


def test_explicit_merge_request_with_incompatible_duckdb(connection: Any, path: Path, target: str) -> None:
    """Requirement: System SHALL provide explicit control over MERGE usage
    Scenario: Explicit MERGE request with incompatible DuckDB"""
    before = Path(target).read_bytes()
    with pytest.raises(DatasetMergeError) as refused:
        merge(RecordingConnection(connection, answering("v1.3.2")), path, use_merge=True)
    assert "DuckDB MERGE requested but not available." in refused.value.message
    assert "Required version: >= 1.4.0, Current: 1.3.2" in refused.value.message
    assert "use_merge=False" in refused.value.render()
    assert "upgrade" in refused.value.render()
    assert Path(target).read_bytes() == before


@pytest.mark.usefixtures("target")
def test_explicit_fallback_request(connection: Any, path: Path, said: Callable[[], list[str]]) -> None:
    """Requirement: System SHALL provide explicit control over MERGE usage / Scenario: Explicit fallback request"""
    spy = RecordingConnection(connection)
    merge(spy, path, use_merge=False)
    assert EXPLICIT_FALLBACK in said()
    assert not spy.log.having("pragma_version")
    assert not spy.log.having("MERGE INTO")
    assert spy.log.having("UNION ALL")


@pytest.mark.parametrize(
    ("version", "line", "used"), [("v1.4.0", AUTO, "MERGE INTO"), ("v1.3.9", FALLBACK, "UNION ALL")]
)
@pytest.mark.usefixtures("target")
def test_auto_detect_mode_default(
    connection: Any, path: Path, said: Callable[[], list[str]], version: str, line: str, used: str
) -> None:
    """Requirement: System SHALL provide explicit control over MERGE usage / Scenario: Auto-detect mode (default)"""
    spy = RecordingConnection(connection, answering(version))
    assert merge(spy, path).updated == 1
    assert line in said()
    assert [words for words in ("MERGE INTO", "UNION ALL") if spy.log.having(words)] == [used]


def test_register_pyarrow_table_as_temporary_view(connection: Any, path: Path, file: Files) -> None:
    """Requirement: MERGE implementation SHALL handle PyArrow Table input
    Scenario: Register PyArrow Table as temporary view"""
    odd = 'a "strange" name;'
    file("a.parquet", {"id": [1], odd: ["old"]})
    seen = []
    for _ in range(2):
        spy = RecordingConnection(connection)
        DuckDBDatasetIO(spy).merge(pa.table({"id": [1], odd: ["new"]}), path, "upsert", ["id"])
        seen += [name for name in spy.log.registered if name.startswith("source_view_")]
    assert len(seen) == len(set(seen)) == 2
    assert pq.ParquetFile(path / "a.parquet").read().to_pylist() == [{"id": 1, odd: "new"}]


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("use_merge", [True, False])
@pytest.mark.usefixtures("target")
def test_clean_up_temporary_views_after_merge(connection: Any, path: Path, fails: bool, use_merge: bool) -> None:
    """Requirement: MERGE implementation SHALL handle PyArrow Table input
    Scenario: Clean up temporary views after merge"""
    connection.execute("CREATE TABLE mine AS SELECT 1 AS one")
    connection.execute("CREATE TEMP TABLE mine_for_now AS SELECT 2 AS two")
    connection.register("my_view", source())
    before = left_behind(connection)
    broken = broken_decision if fails else str
    spy = RecordingConnection(connection, broken)
    if fails:
        with pytest.raises(DatasetMergeError):
            merge(spy, path, use_merge=use_merge)
    else:
        merge(spy, path, use_merge=use_merge)
    assert sorted(spy.log.registered) == sorted(spy.log.unregistered)
    assert left_behind(connection) == before
    assert connection.execute("SELECT two FROM mine_for_now").fetchall() == [(2,)], "and the connection is usable"
    assert connection.execute("SELECT count(*) FROM my_view").fetchall() == [(2,)]


@pytest.mark.usefixtures("target")
def test_a_transaction_of_the_given_connection_is_left_alone(connection: Any, path: Path) -> None:
    """Requirement: MERGE implementation SHALL handle PyArrow Table input (the connection is the caller's)"""
    connection.execute("BEGIN")
    connection.execute("CREATE TABLE mine AS SELECT 1 AS one")
    unread = connection.execute("SELECT * FROM range(5000)")
    assert merge(connection, path).updated == 1
    assert len(unread.fetchall()) == 5000
    connection.execute("ROLLBACK")
    assert left_behind(connection) == []


def test_build_merge_with_parquet_scan_in_into_clause(connection: Any, path: Path, target: str) -> None:
    """Requirement: MERGE implementation SHALL use parquet_scan() for target files
    Scenario: Build MERGE with parquet_scan() in INTO clause

    SPEC §5: MERGE INTO a temporary table of keys and row numbers, which is read from the file by its key columns alone.
    """
    spy = RecordingConnection(connection)
    merge(spy, path)
    (scan,) = [s for s in spy.log.having("read_parquet") if "CREATE TEMP TABLE" in s]
    assert '"id"' in scan
    assert '"x"' not in scan, "other columns are not read to decide"
    (statement,) = spy.log.having("MERGE INTO")
    assert re.search(r"MERGE INTO \w+ AS target USING \w+ AS source ON \(", statement)
    assert target not in statement


GOOD = ["/data/a.parquet", "data/day=2025-01-01/part-0_1.parquet", "C:/data/a.parquet", "a-b_c.d/E9.parquet"]
BAD = {
    "a quote": "/data/it's.parquet",
    "a double quote": '/data/"a".parquet',
    "a semicolon": "/data/a;b.parquet",
    "a comment": "/data/a--b.parquet",
    "a block comment": "/data/a/*b*/c.parquet",
    "an attack": "/data/a'); DROP TABLE x; --",
    "leaving the folder": "/data/../etc/passwd",
    "another way of leaving": "..\\etc",
    "a right-to-left mark": "/data/\u202egpj.parquet",
    "a zero-width space": "/data/a\u200bb.parquet",
    "a fullwidth quote": "/data/a\uff07b.parquet",
    "a line break": "/data/a\nb.parquet",
    "NUL": "/data/a\0b.parquet",
    "nothing": "",
}


@pytest.mark.parametrize("given", GOOD)
def test_validate_and_escape_file_paths_allows(given: str) -> None:
    """Requirement: MERGE implementation SHALL use parquet_scan() for target files
    Scenario: Validate and escape file paths (validation SHALL allow)"""
    PathValidator.validate_path_for_sql(given)
    assert PathValidator.escape_for_sql(given) == given


@pytest.mark.parametrize("case", BAD)
def test_validate_and_escape_file_paths_rejects(case: str) -> None:
    """Requirement: MERGE implementation SHALL use parquet_scan() for target files
    Scenario: Validate and escape file paths (validation SHALL reject)"""
    with pytest.raises(ValueError, match="path"):
        PathValidator.validate_path_for_sql(BAD[case])


def test_validate_and_escape_file_paths(connection: Any, tmp_path: Path, rows: Rows) -> None:
    """Requirement: MERGE implementation SHALL use parquet_scan() for target files
    Scenario: Validate and escape file paths (no path ever reaches SQL unescaped)"""
    assert PathValidator.escape_for_sql("it's") == "it''s"
    hostile = tmp_path / "dataset" / "x'); DROP TABLE mine; --"
    hostile.mkdir(parents=True)
    pq.write_table(pa.table({"id": [1, 2], "x": ["old", "old"]}), hostile / "a.parquet")
    connection.execute("CREATE TABLE mine AS SELECT 1 AS one")
    spy = RecordingConnection(connection)
    assert merge(spy, hostile).updated == 1
    assert not spy.log.having("DROP TABLE mine")
    assert left_behind(connection) == [("mine",)]
    assert len(rows()) == 3


def test_merge_output_to_staging_file(spied: Callable[..., RecordingConnection], path: Path, target: str) -> None:
    """Requirement: MERGE implementation SHALL preserve atomic file replacement
    Scenario: MERGE output to staging file"""
    pq.write_table(pa.table({"id": list(range(50)), "x": ["old"] * 50}), target)
    inode = Path(target).stat().st_ino
    spy = spied()
    merge(spy, path)
    copies = spy.log.having("COPY (")
    assert copies
    assert not any(f"TO '{target}'" in statement for statement in copies)
    assert Path(target).stat().st_ino != inode, "another file took its place"
    assert not list(path.rglob(".staging*"))


def test_integration_with_incremental_rewrite_workflow(
    spied: Callable[..., RecordingConnection], path: Path, file: Files, rows: Rows
) -> None:
    """Requirement: MERGE implementation SHALL preserve atomic file replacement
    Scenario: Integration with incremental rewrite workflow"""
    names = [file(f"{i}.parquet", {"id": [i, i + 10], "x": ["old", "old"]}) for i in range(4)]
    spy = spied()
    fresh = pa.table({"id": [0, 1, 2, 99], "x": ["new"] * 4})
    result = DuckDBDatasetIO(spy).merge(fresh, path, "upsert", ["id"])
    assert result.rewritten_files == names[:3]
    assert len(spy.log.having("MERGE INTO")) == 1
    assert not spy.log.having("UNION ALL"), "the two are never mixed"
    assert not list(path.rglob(".staging*"))
    assert {r["id"] for r in rows() if r["x"] == "new"} == {0, 1, 2, 99}


def test_a_failure_on_the_second_file_changes_none(
    spied: Callable[..., RecordingConnection], path: Path, file: Files
) -> None:
    """Requirement: MERGE implementation SHALL preserve atomic file replacement
    Scenario: Integration with incremental rewrite workflow (all file replacements happen atomically)"""
    names = [file(f"{i}.parquet", {"id": [i, i + 10], "x": ["old", "old"]}) for i in range(3)]
    before = [Path(name).read_bytes() for name in names]
    copies = iter(range(100))

    def third_copy_fails(statement: str) -> str:
        # the first is the trial without rows
        fails = "COPY (" in statement and next(copies) == 2
        return statement.replace("COPY (", "COPY WRONG (") if fails else statement

    with pytest.raises(DatasetMergeError):
        DuckDBDatasetIO(spied(third_copy_fails)).merge(
            pa.table({"id": [0, 1, 2], "x": ["new"] * 3}), path, "upsert", ["id"]
        )
    assert next(copies) >= 3, "it did come to the third"
    assert [Path(name).read_bytes() for name in names] == before
    assert not list(path.rglob(".staging*"))


CASES = {
    "all inserts": ([7, 8, 9], (0, 3)),
    "all updates": ([1, 2], (2, 0)),
    "mixed": ([2, 3], (1, 1)),
}


@pytest.mark.parametrize("use_merge", [True, False])
@pytest.mark.parametrize("key", [["id"], ["id", "x2"]])
@pytest.mark.parametrize("case", CASES)
def test_count_merge_actions_via_returning(
    connection: Any, path: Path, file: Files, case: str, key: list[str], use_merge: bool
) -> None:
    """Requirement: MERGE implementation SHALL support RETURNING clause for audit
    Scenario: Count MERGE actions via RETURNING"""
    file("a.parquet", {"id": [1, 2], "x2": [10, 20]})
    values, expected = CASES[case]
    fresh = pa.table({"id": values, "x2": [v * 10 for v in values]})
    result = DuckDBDatasetIO(connection).merge(fresh, path, "upsert", key, use_merge=use_merge)
    assert (result.updated, result.inserted) == expected


@pytest.mark.usefixtures("target")
def test_temporary_table_cleanup_after_counting(
    connection: Any, spied: Callable[..., RecordingConnection], path: Path
) -> None:
    """Requirement: MERGE implementation SHALL support RETURNING clause for audit
    Scenario: Temporary table cleanup after counting"""
    spy = spied()
    merge(spy, path)
    made = {found[1] for s in spy.log.statements if (found := re.match(r"CREATE TEMP TABLE (\w+)", s))}
    dropped = {found[1] for s in spy.log.statements if (found := re.match(r"DROP TABLE IF EXISTS (\w+)", s))}
    assert made
    assert made == dropped
    last_drop = max(i for i, s in enumerate(spy.log.statements) if s.startswith("DROP TABLE"))
    copies = [i for i, s in enumerate(spy.log.statements) if s.startswith("COPY (")]
    assert copies
    assert last_drop < min(copies), "before files are written"
    assert left_behind(connection) == []


FAULTS = {
    duckdb.ParserException: lambda s: s.replace("MERGE INTO", "MERGE INTOO"),
    duckdb.InvalidInputException: lambda s: "SELECT error('bad input')" if "MERGE INTO" in s else s,
}


@pytest.mark.parametrize("kind", FAULTS)
def test_merge_syntax_error(
    connection: Any, path: Path, target: str, caplog: pytest.LogCaptureFixture, kind: type[Exception]
) -> None:
    """Requirement: MERGE implementation SHALL provide clear error handling / Scenario: MERGE syntax error"""
    before = Path(target).read_bytes()
    with caplog.at_level(logging.ERROR, logger="lockgate.merge"), pytest.raises(DatasetMergeError) as failed:
        merge(RecordingConnection(connection, FAULTS[kind]), path, use_merge=True)

    error = failed.value
    assert error.message.startswith("MERGE operation failed: ")
    assert isinstance(error.__cause__, kind)
    assert str(error.__cause__) in error.message
    assert error.strategy == "upsert"
    assert error.key_columns == ("id",)
    assert error.files == (target,)
    assert error.in_place == "nothing was written"
    assert Path(target).read_bytes() == before
    (line,) = [r.getMessage() for r in caplog.records if r.levelno == logging.ERROR]
    for word in (kind.__name__, "upsert", target, str(error.__cause__)):
        assert word in line


@pytest.mark.usefixtures("target")
def test_version_detection_error(connection: Any, path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Requirement: MERGE implementation SHALL provide clear error handling / Scenario: Version detection error"""
    spy = RecordingConnection(connection, lambda s: "SELECT nothing" if "pragma_version" in s else s)
    with caplog.at_level(logging.WARNING, logger="lockgate.merge"):
        assert merge(spy, path).updated == 1
    (warning,) = [r for r in caplog.records if r.levelno == logging.WARNING]
    assert warning.getMessage().startswith("Could not determine DuckDB version")
    assert "nothing" in warning.getMessage(), "with the details of the error"
    assert duckdb_version(spy) == (0, 0, 0)


@pytest.mark.parametrize("value", [5, 0, 1, "yes", "", [], 1.0])
def test_invalid_use_merge_parameter(connection: Any, path: Path, target: str, value: object) -> None:
    """Requirement: MERGE implementation SHALL provide clear error handling / Scenario: Invalid use_merge parameter"""
    before = Path(target).read_bytes()
    with pytest.raises(ValueError) as refused:
        merge(connection, path, use_merge=value)
    assert str(refused.value) == f"Invalid use_merge value: {value!r}\nMust be True, False, or None for auto-detect"
    assert Path(target).read_bytes() == before


def broken_decision(statement: str) -> str:
    """A fault in the statement that decides, whichever form it has."""
    return "SELECT nothing" if "MERGE INTO" in statement or "UNION ALL" in statement else statement
