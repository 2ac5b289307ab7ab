"""What differs between two versions of a table. Files that both have are not read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lockgate.merging.keys import normalize_keys
from lockgate.merging.schema import require_columns
from lockgate.tables.file_differences import only_in, with_files
from lockgate.tables.reading import read_arrow
from lockgate.tables.row_differences import common_schema, compare
from lockgate.txlog.reading_features import BOTH

if TYPE_CHECKING:
    from lockgate.txlog.records import Snapshot
    from lockgate.txlog.writer import TxnLogWriter


@dataclass(frozen=True)
class TableDiff:
    """Rows of version `new` that version `old` lacks, and the other way round. `before` and `after` are rows with the
    same key and other values, in the same order."""

    old: int
    new: int
    added: pa.Table
    removed: pa.Table
    before: pa.Table
    after: pa.Table
    files_read: int

    @property
    def changed(self) -> int:
        return int(self.before.num_rows)

    def to_arrow(self) -> pa.Table:
        """All of it as one table, with `_change_type` as change data has it."""
        return labelled(self)


def diff_table(txn_log: TxnLogWriter, name: str, old: int, new: int, key_columns: str | Sequence[str]) -> TableDiff:
    """Memory: the rows of the files that differ."""
    keys = normalize_keys(key_columns)
    before = txn_log.snapshot(name, version=old, understood=BOTH)
    after = txn_log.snapshot(name, version=new, understood=BOTH)
    gone, came = only_in(before, after), only_in(after, before)
    rows_gone, rows_came = _rows(before, gone), _rows(after, came)
    require_columns(common_schema(rows_gone.schema, rows_came.schema), "table", keys, "key column")
    found = compare(rows_gone, rows_came, keys)
    return TableDiff(
        before.version, after.version, found.added, found.removed, found.before, found.after,
        gone.num_rows + came.num_rows,
    )  # fmt: skip


def _rows(snapshot: Snapshot, files: pa.Table) -> pa.Table:
    return read_arrow(with_files(snapshot, files))


def labelled(found: Any) -> pa.Table:
    """Removed and added rows, then changed ones, each with its `_change_type`."""
    return pa.concat_tables(
        [
            _with_type(found.removed, "delete"),
            _with_type(found.added, "insert"),
            _with_type(found.before, "update_preimage"),
            _with_type(found.after, "update_postimage"),
        ]
    )


def _with_type(rows: pa.Table, kind: str) -> pa.Table:
    return rows.append_column("_change_type", pa.repeat(pa.scalar(kind), rows.num_rows))
