"""The files that a path of a source stands for, as this machine sees them, and whether they have changed."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Iterator
from pathlib import Path


def list_files(location: str) -> dict[str, str]:
    """The data files of a path, a pattern or a folder as Spark takes them, with what each looks like now."""
    found = {}
    for path in [location] if os.path.exists(location) else sorted(glob.glob(location)):
        for file in _files(Path(path)):
            found[str(file)] = look(str(file))
    return found


def look(path: str) -> str:
    """What changes when a file does: its size and its time. Empty: it is gone."""
    try:
        state = os.stat(path)
    except OSError:
        return ""
    return f"{state.st_size}:{state.st_mtime_ns}"


def changed(files: Iterable[tuple[str, str]]) -> list[str]:
    """Those that do not look as they did."""
    return [path for path, looked in files if look(path) != looked]


def _files(path: Path) -> Iterator[Path]:
    """Spark takes the files of a folder, and below it those of folders that are partitions (`day=1`)."""
    if path.is_file():
        yield path
        return
    for child in sorted(path.iterdir()):
        if child.name.startswith(("_", ".")):
            continue
        if child.is_file() or (child.is_dir() and "=" in child.name):
            yield from _files(child)
