"""Tables with deletion vectors: what keeps tables well never brings a deleted row back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lockgate
from interop.test_import_features import import_existing, ours, project, with_vectors  # noqa: F401
from lockgate.tables.places import log_address


def test_compacted_files_hold_living_rows_only(with_vectors: Path, project: Any) -> None:  # noqa: F811
    import_existing(project, "t", with_vectors)
    table = lockgate.open_table("t", log=log_address(project))
    before = ours(table)
    done = table.compact()
    assert (done.files_removed, done.files_added) == (3, 1)
    assert done.rows == len(before)
    assert ours(table) == before
    assert table.files().column("rows").to_pylist() == [len(before)]


def test_restore_diff_and_changes_know_deleted_rows(with_vectors: Path, project: Any) -> None:  # noqa: F811
    import_existing(project, "t", with_vectors)
    table = lockgate.open_table("t", log=log_address(project))
    then = {v: ours(table.at(version=v)) for v in range(4)}
    found = table.diff(0, 3, "id")
    assert (found.added.num_rows, found.changed) == (0, 0)
    assert found.removed.num_rows == len(then[0]) - len(then[3])
    changes = table.changes(1, key_columns="id")
    assert set(changes.column("_change_type").to_pylist()) <= {"delete", "insert"}
    table.restore(version=1)
    assert ours(table) == then[1]
    table.vacuum(0, check_retention=False)
    assert ours(table) == then[1]
