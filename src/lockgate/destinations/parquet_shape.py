"""Appended files must look like those that are there: the same columns, types and partition folders."""

from __future__ import annotations

from pathlib import Path, PurePath
from typing import Any

from lockgate.destinations.protocol import StagedRows
from lockgate.errors import StageError
from lockgate.storage.local import LocalStorage
from lockgate.targets.folder import FolderTarget


def refuse_other_shape(root: Path, rows: StagedRows) -> None:
    """Compare with the newest file: a mixed folder is one that half of its readers cannot read."""
    import pyarrow.parquet as pq

    there = FolderTarget(root, LocalStorage()).files()
    if not there or not rows.parts:
        return
    newest = max(there, key=lambda name: (root / name).stat().st_mtime_ns)
    old = _columns(pq.read_schema(root / newest), PurePath(newest))
    new = _columns(pq.read_schema(rows.parts[0]), rows.parts[0].relative_to(rows.root))
    if old == new:
        return
    differences = [f"{c}: {old.get(c, 'missing')} there, {new.get(c, 'missing')} here" for c in sorted(old | new)]
    said = "; ".join(d for c, d in zip(sorted(old | new), differences, strict=True) if old.get(c) != new.get(c))
    raise StageError(
        f"the rows do not fit the files in {root}: {said}",
        in_place="nothing was published; every destination is as it was",
        hint="select and CAST the columns that are there, or use MODE REPLACE to start anew",
    )


def _columns(schema: Any, path: PurePath) -> dict[str, str]:
    """Names and types of a file's columns, and the partition columns its folders stand for."""
    found = {field.name: str(field.type) for field in schema}
    for part in path.parent.parts:
        name, equals, _ = part.partition("=")
        if equals:
            found[name] = "partition"
    return found
