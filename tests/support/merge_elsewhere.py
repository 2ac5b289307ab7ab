"""A merge whose temporary files go to a folder of any name."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pyarrow as pa

from lockgate.datasets.entry import merge


def merge_with_temporary_files_in(temporary: str, folder: str, engine: str) -> None:
    tempfile.tempdir = temporary
    source = pa.table({"id": [2, 3], "v": ["new", "new"]})
    merge(source, Path(folder), strategy="upsert", key_columns="id", engine=engine)
