"""The files of a `_delta_log`, wherever it is: what publishing needs of a storage."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from lockgate.errors import StorageError
from lockgate.storage.local import LocalStorage


class LogFiles(Protocol):
    """One table's `_delta_log`. Names are those of files in it, without a folder."""

    def exists(self, name: str) -> bool: ...

    def read(self, name: str) -> bytes | None:
        """The file's bytes; None where there is none."""
        ...

    def names(self) -> list[str]:
        """All names, sorted; none where there is no `_delta_log` yet."""
        ...

    def put_if_absent(self, name: str, data: bytes, *, modified: int | None = None) -> bool:
        """Make a file whole and at once, unless there is one: then False. `modified`: its time in milliseconds, where
        the storage can set it. Its name may be lost in a power cut until `sync`."""
        ...

    def replace(self, name: str, data: bytes) -> None:
        """Make a file, or put it in place of the one that is there, at once."""
        ...

    def remove(self, name: str) -> None:
        """Remove a file; one that is gone already is fine."""
        ...

    def sync(self) -> None:
        """Make the names durable."""
        ...


class LocalLogFiles:
    """A `_delta_log` in a folder of this machine."""

    def __init__(self, table: Path, storage: LocalStorage | None = None) -> None:
        self._folder = table / "_delta_log"
        self._storage = storage or LocalStorage()
        self._made = False

    def exists(self, name: str) -> bool:
        return (self._folder / name).exists()

    def read(self, name: str) -> bytes | None:
        return self._storage.read_if_there(self._folder / name)

    def names(self) -> list[str]:
        return self._storage.names_in(self._folder)

    def put_if_absent(self, name: str, data: bytes, *, modified: int | None = None) -> bool:
        self._make_folder()
        return self._storage.put_if_absent(self._folder / name, data, modified=modified)

    def replace(self, name: str, data: bytes) -> None:
        self._make_folder()
        self._storage.put_in_place(self._folder / name, data)

    def remove(self, name: str) -> None:
        self._storage.remove(self._folder / name)

    def sync(self) -> None:
        self._storage.fsync_folder(self._folder)

    def _make_folder(self) -> None:
        if not self._made:
            self._storage.make_folders(self._folder)
            self._made = True


def log_files_at(location: str) -> LogFiles:
    """The `_delta_log` of a table's location."""
    scheme, separator, _ = location.partition("://")
    if not separator:
        return LocalLogFiles(Path(location))
    raise StorageError(
        f"tables cannot be published to {scheme}:// in this version: {location}",
        in_place="what was committed is in the log",
        hint="use a local folder",
    )
