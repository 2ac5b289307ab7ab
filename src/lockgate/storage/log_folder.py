"""A table's `_delta_log` on this machine, to be read."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from lockgate.errors import DamagedLog, StorageError
from lockgate.storage.local import explained

NAME = "_delta_log"


class LocalLogFolder:
    """The files of `<table>/_delta_log`."""

    def __init__(self, table: Path) -> None:
        self._folder = table / NAME
        self.where = str(self._folder)

    def exists(self) -> bool:
        return self._folder.is_dir()

    def names(self) -> Sequence[tuple[str, int, int]]:
        """Name, size, and time of the last change in milliseconds, of each file."""
        found = []
        with explained("list", self._folder), os.scandir(self._folder) as entries:
            for entry in entries:
                if entry.is_file():
                    status = entry.stat()
                    found.append((entry.name, status.st_size, status.st_mtime_ns // 1_000_000))
        return found

    def read(self, name: str) -> bytes:
        try:
            return (self._folder / name).read_bytes()
        except FileNotFoundError:
            raise DamagedLog(f"{self.where}/{name} is missing", hint="restore it from a copy of the table") from None
        except OSError as error:
            raise StorageError(f"cannot read {self.where}/{name}: {error.strerror or error}") from error
