"""A given filesystem, fsspec's or Arrow's, as Arrow's; None for this machine's own, which needs none."""

from __future__ import annotations

from typing import Any

from pyarrow import fs


def arrow_filesystem(filesystem: Any) -> fs.FileSystem | None:
    """`filesystem` as Arrow's own, or None where plain local paths will do.

    >>> arrow_filesystem(fs.LocalFileSystem()) is None
    True
    """
    if filesystem is None or isinstance(filesystem, fs.LocalFileSystem):
        return None
    if isinstance(filesystem, fs.FileSystem):
        return filesystem
    return fs.PyFileSystem(fs.FSSpecHandler(filesystem))
