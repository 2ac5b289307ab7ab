"""Appended files must look like those that are there: the same columns, types and partition folders."""

from __future__ import annotations

from pathlib import Path, PurePath

from lockgate.errors import StageError
from lockgate.storage.local import LocalStorage
from lockgate.targets.folder import FolderTarget

_TRIES = 3

FileShape = tuple[dict[str, str], tuple[str, ...]]


def refuse_other_shape(root: Path, staged: Path, name: PurePath) -> None:
    """Compare a staged file, which will be at `name` in the folder, with the newest one there: a mixed folder is one
    that half of its readers cannot read."""
    refuse_difference(root, _newest_shape(root), shape_of_file(staged, name))


def refuse_difference(root: object, old: FileShape | None, new: FileShape) -> None:
    """Say how a new file differs from one that is there."""
    if old is None or old == new:
        return
    columns = sorted({**old[0], **new[0]})
    said = [
        f"{c}: {old[0].get(c, 'missing')} there, {new[0].get(c, 'missing')} here"
        for c in columns
        if old[0].get(c) != new[0].get(c)
    ]
    if old[1] != new[1]:
        said.append(f"partitioned by {', '.join(old[1]) or 'nothing'} there, {', '.join(new[1]) or 'nothing'} here")
    raise StageError(
        f"the rows do not fit the files in {root}: {'; '.join(said)}",
        in_place="nothing was published; every destination is as it was",
        hint="select and CAST the columns that are there, or use MODE REPLACE to start anew",
    )


def _newest_shape(root: Path) -> FileShape | None:
    for _ in range(_TRIES):
        names = FolderTarget(root, LocalStorage()).files()
        if not names:
            return None
        try:
            newest = max(names, key=lambda name: (root / name).stat().st_mtime_ns)
            return shape_of_file(root / newest, PurePath(newest))
        except FileNotFoundError:  # another writer replaced it while we looked
            continue
    return None


def shape_of_file(file: Path, path: PurePath) -> FileShape:
    """Names and types of a file's columns, and the partition columns its folders stand for, in their order."""
    import pyarrow.parquet as pq

    schema = pq.read_schema(file)
    pairs = [part.partition("=") for part in path.parent.parts]
    return {field.name: str(field.type) for field in schema}, tuple(name for name, equals, _ in pairs if equals)
