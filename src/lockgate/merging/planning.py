"""Planning a merge from metadata, and confirming the plan by a look at the keys alone."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from lockgate.errors import DatasetMergeError, SchemaMismatchError
from lockgate.merging.filesystems import arrow_filesystem
from lockgate.merging.footers import leaf_index, read_footers
from lockgate.merging.given_keys import in_types_of, keys_table
from lockgate.merging.key_index import KeyIndex
from lockgate.merging.listing import dataset_file_names, joined, list_dataset_files
from lockgate.merging.partition_match import SourcePartitions
from lockgate.merging.partitions import parse_hive_partition_path, typed_value
from lockgate.merging.pruning import KeyRanges

__all__ = ["IncrementalRewritePlan", "confirm_affected_files", "list_dataset_files", "plan_incremental_rewrite"]


@dataclass
class IncrementalRewritePlan:
    """What a merge would do to the files of a dataset. `new_files` have no names before they are written."""

    affected_files: list[str]  # may hold a source key
    unaffected_files: list[str]  # surely hold none
    new_files: list[str] = field(default_factory=list)
    affected_rows: int = 0


def plan_incremental_rewrite(
    dataset_path: str,
    source_keys: Sequence[Any] | pa.Table,
    key_columns: Sequence[str],
    filesystem: Any = None,
    partition_schema: pa.Schema | None = None,
) -> IncrementalRewritePlan:
    """Which files of a dataset may hold one of the keys, from folder names and footers alone.

    A table of `source_keys` may carry partition columns beside the keys; then only files of these partitions count.

    >>> import tempfile
    >>> path = tempfile.mkdtemp()
    >>> for name in ("a", "b"):
    ...     pq.write_table(pa.table({"id": [ord(name)]}), f"{path}/{name}.parquet")
    >>> plan = plan_incremental_rewrite(path, [97], ["id"])
    >>> [file.removeprefix(path) for file in plan.affected_files], plan.affected_rows
    (['/a.parquet'], 1)
    """
    source = keys_table(source_keys, key_columns)
    names = dataset_file_names(dataset_path, filesystem)
    partitions = SourcePartitions(source, partition_schema)
    texts = [parse_hive_partition_path(name) for name in names]
    wanted = [i for i in range(len(names)) if partitions.may_hold(texts[i])]
    paths = [joined(dataset_path, name) for name in names]
    footers = read_footers([paths[i] for i in wanted], filesystem=filesystem)
    keys = source.select(list(key_columns))
    if footers:
        keys = in_types_of(keys, footers[0].schema.to_arrow_schema())
    ranges = KeyRanges(keys, filesystem=filesystem)
    affected = {
        i: footer
        for i, footer in zip(wanted, footers, strict=True)
        if ranges.candidate_row_groups(footer, paths[i], _key_partition(texts[i], keys, partition_schema))
    }
    return IncrementalRewritePlan(
        affected_files=[paths[i] for i in affected],
        unaffected_files=[path for i, path in enumerate(paths) if i not in affected],
        affected_rows=sum(int(footer.num_rows) for footer in affected.values()),
    )


def confirm_affected_files(
    candidate_files: list[str],
    key_columns: Sequence[str],
    source_keys: Sequence[Any] | pa.Table,
    filesystem: Any = None,
) -> list[str]:
    """Those of the files that do hold one of the keys. Reads the key columns and nothing else.

    >>> import tempfile
    >>> path = tempfile.mkdtemp() + "/a.parquet"
    >>> pq.write_table(pa.table({"id": [1, 3]}), path)
    >>> confirm_affected_files([path], ["id"], [2])
    []
    """
    keys = keys_table(source_keys, key_columns).select(list(key_columns)).drop_null()
    if not keys.num_rows or not candidate_files:
        return []
    footers = read_footers(candidate_files, filesystem=filesystem)
    remote = arrow_filesystem(filesystem)

    def holds(path: str, footer: pq.FileMetaData) -> bool:
        return _holds_a_key(path, footer, keys, remote)

    with ThreadPoolExecutor(max(2, min(8, os.cpu_count() or 2))) as pool:
        answers = list(pool.map(holds, candidate_files, footers))
    return [path for path, answer in zip(candidate_files, answers, strict=True) if answer]


def _holds_a_key(path: str, footer: pq.FileMetaData, keys: pa.Table, remote: Any) -> bool:
    keys = in_types_of(keys, footer.schema.to_arrow_schema())
    partition = _key_partition(parse_hive_partition_path(path), keys, None)
    in_file = [name for name in keys.column_names if leaf_index(footer.schema, name) is not None]
    if any(name not in in_file and name not in partition for name in keys.column_names):
        return False  # a column that is nowhere is NULL in every row
    partition = {name: value for name, value in partition.items() if name not in in_file}
    groups = KeyRanges(keys, filesystem=remote).candidate_row_groups(footer, path, partition)
    if not groups:
        return False
    index = KeyIndex(keys)
    try:
        with pq.ParquetFile(remote.open_input_file(path) if remote else path, metadata=footer) as file:
            return any(
                _any_found(index, file.read_row_group(group, columns=in_file), keys, partition) for group in groups
            )
    except (OSError, pa.ArrowException) as error:
        raise DatasetMergeError(
            f"cannot read the keys of {path}: {error}",
            key_columns=keys.column_names,
            files=(path,),
            hint="restore the file from a copy, or move it out of the dataset if it is no data of it",
        ) from error


def _any_found(index: KeyIndex, rows: pa.Table, keys: pa.Table, partition: Mapping[str, Any]) -> bool:
    columns = []
    for name in keys.column_names:
        type = keys.schema.field(name).type
        if name in partition:
            columns.append(pa.repeat(pa.scalar(partition[name], type), rows.num_rows))
            continue
        column = rows.column(name)
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        try:
            columns.append(column.cast(type))
        except (pa.ArrowException, ValueError):
            return True  # of another type altogether: not for us to say
    return bool(index.find(columns).null_count < rows.num_rows)


def _key_partition(texts: Mapping[str, Any], keys: pa.Table, schema: pa.Schema | None) -> dict[str, Any]:
    """The typed values of those partition columns that are keys; one whose text is not of the type is left out."""
    if not texts:
        return {}
    typed = {}
    for name in keys.column_names:
        if name in texts:
            known = schema is not None and schema.get_field_index(name) >= 0
            type = schema.field(name).type if schema is not None and known else keys.schema.field(name).type
            try:
                typed[name] = typed_value(texts[name], type, name)
            except SchemaMismatchError:
                continue
    return typed
