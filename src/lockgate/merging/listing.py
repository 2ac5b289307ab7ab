"""Which files of a folder are a dataset's data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pyarrow import fs

from lockgate.errors import StorageError
from lockgate.merging.filesystems import arrow_filesystem
from lockgate.storage.local import LocalStorage
from lockgate.targets.folder import FolderTarget, is_hidden


def list_dataset_files(dataset_path: str, filesystem: Any = None) -> list[str]:
    """The Parquet files of a dataset, sorted, each beginning with `dataset_path` as it was given.

    >>> import tempfile
    >>> list_dataset_files(tempfile.mkdtemp())
    []
    """
    return [joined(dataset_path, name) for name in dataset_file_names(dataset_path, filesystem)]


def dataset_file_names(dataset_path: str, filesystem: Any = None) -> list[str]:
    """The data files relative to the dataset. A dataset that is not there has none."""
    remote = arrow_filesystem(filesystem)
    if remote is None:
        return FolderTarget(Path(dataset_path), LocalStorage()).files()
    base = dataset_path
    if hasattr(filesystem, "_strip_protocol"):  # fsspec lists without the protocol that a path may begin with
        base = filesystem._strip_protocol(dataset_path)
    try:
        infos = remote.get_file_info(fs.FileSelector(base, recursive=True, allow_not_found=True))
    except OSError as error:
        raise StorageError(f"cannot list {dataset_path}: {error}") from error
    names = (info.path.removeprefix(base).lstrip("/") for info in infos if info.type == fs.FileType.File)
    return sorted(name for name in names if _is_data(name))


def joined(dataset_path: str, name: str) -> str:
    return f"{dataset_path}{name}" if dataset_path.endswith("/") else f"{dataset_path}/{name}"


def _is_data(name: str) -> bool:
    return name.lower().endswith(".parquet") and not any(is_hidden(part) for part in name.split("/"))
