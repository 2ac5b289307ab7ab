"""Files that are to be added, as rows of the log: checked and made a column at a time, not file by file.

The checks are those of `validation`. Only where a column as a whole does not pass are its values looked at one by one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from xxhash import xxh3_64_intdigest

from lockgate.txlog import validation
from lockgate.txlog.actions import Action, Add, Remove, json_text
from lockgate.txlog.files import FILES_COLUMNS, files_schema, path_hash
from lockgate.txlog.store import ADD_COLUMNS, MANY

_NEEDED = {"path", "size", "modification_time"}
_DEFAULTS: dict[str, Any] = {"partition_values": "{}", "data_change": True}
_PLAIN_PATH = rf"\A{validation.PLAIN}\z"


def split(actions: Sequence[Action | Mapping[str, Any]]) -> tuple[pa.Table | None, list[Action | Mapping[str, Any]]]:
    """Many plain adds as a table for `rows_of`, and the actions beside them. No table where they are few, or are such
    that `validation` has to look at each."""
    adds = [each for each in actions if type(each) is Add]
    table = _table(adds) if len(adds) >= MANY else None
    if table is None:
        return None, list(actions)
    return table, [each for each in actions if type(each) is not Add]


def _table(adds: Sequence[Add]) -> pa.Table | None:
    if any(
        a.deletion_vector is not None
        or a.base_row_id is not None
        or a.default_row_commit_version is not None
        or a.clustering_provider is not None
        for a in adds
    ):
        return None
    spelled: dict[tuple[tuple[str, str | None], ...], str] = {(): "{}"}
    try:
        values = []
        for a in adds:
            key = tuple(a.partition_values.items())
            if key not in spelled:
                spelled[key] = json_text(dict(key))
            values.append(spelled[key])
        columns = {
            "path": [a.path for a in adds],
            "partition_values": values,
            "size": [a.size for a in adds],
            "modification_time": [a.modification_time for a in adds],
            "data_change": [a.data_change for a in adds],
            "stats": [a.stats for a in adds],
            "tags": [None if a.tags is None else json_text(dict(a.tags)) for a in adds],
        }
        fields = files_schema()
        return pa.table({name: pa.array(each, fields.field(name).type) for name, each in columns.items()})
    except (pa.ArrowException, TypeError, ValueError, OverflowError, AttributeError):
        return None  # something in there is not what it should be: `validation` says what


def rows_of(adds: pa.Table, columns: set[str], table: str) -> pa.Table:
    """The rows of these files: `store.ADD_COLUMNS` behind `ordinal`. `columns` are those that the table is partitioned
    by. Path, size and modification_time have to be there; other columns of `files_schema()` may be left out."""
    count = adds.num_rows
    unknown, missing = set(adds.column_names) - set(FILES_COLUMNS), _NEEDED - set(adds.column_names)
    if unknown or missing:
        said = f"lacks {', '.join(sorted(missing))}" if missing else f"has unknown columns {', '.join(sorted(unknown))}"
        raise validation.refused(f"the table of files to add to {table} {said}", f"columns: {', '.join(FILES_COLUMNS)}")
    rows = {field.name: _column(adds, field, table) for field in files_schema()}
    paths = rows["path"]
    _check_paths(paths, table)
    check_partitions(rows["partition_values"], columns, table)
    _check_stats(rows["stats"], paths, table)
    smallest = pc.min(rows["size"]).as_py()
    if smallest < 0:
        path = paths[pc.index(rows["size"], smallest).as_py()].as_py()
        raise validation.refused(f"the file {path!r} of {table} has the size {smallest}")
    if rows["deletion_vector"].null_count < count:
        raise validation.refused(
            f"files with deletion vectors cannot be added to {table} as Arrow", "give them as Add records"
        )
    if rows["tags"].null_count < count:
        for text in pc.unique(rows["tags"]).to_pylist():
            validation.check_tags_text(text, table)
    hashes = path_hashes(paths)
    if len(np.unique(hashes)) < count:
        raise validation.refused(f"a commit to {table} names a file twice")
    named = {"path_hash": pa.array(hashes), **rows, "extra": pa.nulls(count, pa.string())}
    return pa.table({name: named[name] for name in ADD_COLUMNS[4:]})


def refuse_both(rows: pa.Table, beside: Sequence[Add | Remove], table: str) -> None:
    """Refuse actions beside these rows that name one of their files."""
    known = {path_hash(each.path, each.deletion_vector_id): each.path for each in beside}
    if known:
        twice = pc.is_in(pa.array(known, pa.int64()), rows.column("path_hash")).to_pylist()
        for path, is_twice in zip(known.values(), twice, strict=True):
            if is_twice:
                raise validation.refused(f"a commit to {table} names the file {path!r} twice")


def path_hashes(paths: pa.Array) -> np.ndarray:
    """`files.path_hash` of each."""
    raw = paths.cast(pa.binary()).to_numpy(zero_copy_only=False)
    hashes = np.fromiter(map(xxh3_64_intdigest, raw), np.uint64, len(raw))
    return (hashes ^ np.uint64(2**63)).view(np.int64)


def check_partitions(texts: pa.Array | pa.ChunkedArray, columns: set[str], table: str) -> None:
    """Each different text is looked at once."""
    for text in pc.unique(texts).to_pylist():
        validation.check_partition_text(text, columns, table)


def _column(adds: pa.Table, field: pa.Field, table: str) -> pa.Array:
    if field.name not in adds.column_names:
        return pa.repeat(pa.scalar(_DEFAULTS.get(field.name), field.type), adds.num_rows)
    column = adds.column(field.name)
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    try:
        column = column.cast(field.type).combine_chunks()
        column.validate(full=True)  # that its texts are UTF-8
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise validation.refused(f"the column {field.name} of files to add to {table}: {error}") from error
    if not field.nullable and column.null_count:
        raise validation.refused(f"the column {field.name} of files to add to {table} has NULLs")
    return column


def _check_paths(paths: pa.Array, table: str) -> None:
    odd = pc.or_(
        pc.invert(pc.match_substring_regex(paths, _PLAIN_PATH)),
        pc.greater(pc.binary_length(paths), validation.LONGEST_PATH),
    )
    for path in paths.filter(odd).to_pylist():
        validation.check_path(path, "add", table)


def _check_stats(stats: pa.Array, paths: pa.Array, table: str) -> None:
    fine = pc.and_(pc.starts_with(stats, "{"), pc.ends_with(stats, "}"))
    if pc.all(fine).as_py() is not False and not _has_control(stats):  # all() leaves NULLs out
        return
    for path, text in zip(paths.to_pylist(), stats.to_pylist(), strict=True):
        validation.check_stats(text, path, table)


def _has_control(texts: pa.Array) -> bool:
    _, offsets, data = texts.buffers()
    if data is None:
        return False
    ends = np.frombuffer(offsets, np.int32, len(texts) + 1, texts.offset * 4)
    return bool((np.frombuffer(data, np.uint8)[ends[0] : ends[-1]] < 0x20).any())
