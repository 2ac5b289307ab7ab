"""The SQL of the DuckDB engine. MERGE decides on keys and row numbers; COPY writes."""

from __future__ import annotations

from collections.abc import Sequence

from lockgate.engines.path_validator import PathValidator
from lockgate.merging.strategy import Actions


def quoted(name: str) -> str:
    """A name as DuckDB takes it exactly.

    >>> quoted('a"b')
    '"a""b"'
    """
    return '"' + name.replace('"', '""') + '"'


def text(value: str) -> str:
    """A string literal."""
    return "'" + value.replace("'", "''") + "'"


def path_literal(path: str) -> str:
    """A path as a string literal; one that is not plain is refused before it reaches SQL."""
    PathValidator.validate_path_for_sql(path)
    return f"'{PathValidator.escape_for_sql(path)}'"


def same_keys(count: int) -> str:
    """The condition on all key columns, which have the names k0, k1, … in our tables, whatever they are called."""
    return "(" + " AND ".join(f"target.k{i} = source.k{i}" for i in range(count)) + ")"


def scan_keys(table: str, keys: Sequence[tuple[str, str]], inside: Sequence[str | None], source: str) -> str:
    """Keys and row numbers of the files given as $paths, only those that the source may match.

    `keys` are (alias, type) pairs; `inside` the column's name in the files, or None where the folder's name has it.
    """
    columns = ", ".join(
        f"{_read(name, kind) if name is not None else f'CAST(f.{alias} AS {stored_type(kind)})'} AS {alias}"
        for (alias, kind), name in zip(keys, inside, strict=True)
    )
    folders = f"JOIN {table}_files AS f ON f.file = t.file_index" if None in inside else ""
    return f"""
        CREATE TEMP TABLE {table} AS
        SELECT target.*, CAST(NULL AS BIGINT) AS source_row
        FROM (
            SELECT CAST(t.file_index AS BIGINT) AS file, t.file_row_number AS file_row, {columns}
            FROM read_parquet($paths, file_row_number = true,
                              hive_partitioning = false, union_by_name = $by_name) AS t
            {folders}
        ) AS target
        SEMI JOIN {source} AS source ON {same_keys(len(keys))}
    """


def stored_type(kind: str) -> str:
    """The type of a key in our tables. Text is kept as bytes: what is equal must not depend on a collation."""
    return "BLOB" if kind == "VARCHAR" else kind


def _read(name: str, kind: str) -> str:
    """A key column of the files. DuckDB skips row groups by their bounds, which leave NaN out and may cut text short:
    behind an expression it reads them. Which files can hold a key at all is known from their footers already."""
    column = f"t.{quoted(name)}"
    if kind == "VARCHAR":
        return f"encode(CAST({column} AS VARCHAR))"
    if kind in ("FLOAT", "DOUBLE", "BLOB"):
        column = f"CASE WHEN t.file_row_number >= 0 THEN {column} END"
    return f"CAST({column} AS {kind})"


def merge_statement(table: str, source: str, keys: int, actions: Actions) -> str:
    """The strategy as a MERGE. It answers with one row an action: which row of which file, and which source row."""
    matched = "WHEN MATCHED THEN UPDATE SET source_row = source.source_row" if actions.matched == "replace" else ""
    new = "WHEN NOT MATCHED THEN INSERT BY NAME" if actions.new == "insert" else ""
    return f"""
        MERGE INTO {table} AS target
        USING {source} AS source
        ON {same_keys(keys)}
        {matched}
        {new}
        RETURNING merge_action, file, file_row, source_row
    """


def union_statement(table: str, source: str, keys: int, actions: Actions) -> str:
    """The same as a query, for DuckDB before 1.4.0."""
    parts = []
    if actions.matched == "replace":
        parts.append(
            f"SELECT 'UPDATE' AS merge_action, target.file, target.file_row, source.source_row "
            f"FROM {table} AS target JOIN {source} AS source ON {same_keys(keys)}"
        )
    if actions.new == "insert":
        parts.append(
            f"SELECT 'INSERT' AS merge_action, CAST(NULL AS BIGINT) AS file, CAST(NULL AS BIGINT) AS file_row, "
            f"source.source_row FROM {source} AS source "
            f"WHERE NOT EXISTS (SELECT 1 FROM {table} AS target WHERE {same_keys(keys)})"
        )
    return " UNION ALL ".join(parts)


# Should a DuckDB ever hand on rows in another order than the file's, no row may get the replacement of another.
_IN_STEP = "WHEN r.file_row <> t.file_row_number THEN error('the rows of a file came out of their order') "


def copy_statement(
    names: Sequence[str],
    old: str,
    replacements: str,
    staged: str,
    *,
    compression: str,
    row_group_size: int,
    dictionary_entries: int,
    metadata: Sequence[tuple[str, str]] = (),
) -> str:
    """Write a file again, row by row in its order; rows that have a replacement are replaced as a whole."""
    columns = ", ".join(
        f"CASE WHEN r.file_row IS NULL THEN t.{quoted(name)} {_IN_STEP if i == 0 else ''}ELSE r.c{i} END "
        f"AS {quoted(name)}"
        for i, name in enumerate(names)
    )
    pairs = ", ".join(f"{text(key)}: {text(value)}" for key, value in metadata)
    options = [
        "FORMAT parquet",
        "USE_TMP_FILE false",  # it is a staged file already
        f"COMPRESSION {compression}",
        f"ROW_GROUP_SIZE {row_group_size}",
        f"DICTIONARY_SIZE_LIMIT {dictionary_entries}",
        "WRITE_BLOOM_FILTER false",  # a file that had some is not written by COPY
        *([f"KV_METADATA {{{pairs}}}"] if pairs else []),
    ]
    return f"""
        COPY (
            SELECT {columns}
            FROM read_parquet({path_literal(old)}, file_row_number = true, hive_partitioning = false) AS t
            POSITIONAL JOIN {replacements} AS r
        ) TO {path_literal(staged)} ({", ".join(options)})
    """
