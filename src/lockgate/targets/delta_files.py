"""Files on their way into a Delta table: in its folder under their final names, and of no version yet."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path

from lockgate.errors import StorageError
from lockgate.storage.local import LocalStorage

log = logging.getLogger("lockgate.merge")


class PlacedFiles:
    """What was placed for one commit, so that it can go again if the commit certainly failed."""

    def __init__(self, root: Path, storage: LocalStorage) -> None:
        self._root = root
        self._storage = storage
        self._files: list[Path] = []

    def take(self, moves: Mapping[str, Path]) -> None:
        """Bring the staged files to their places and make that durable. They stay staged as well, so that a change
        that could not be committed can be tried again. One that is in its place already was brought there by a
        process that died here."""
        root, storage = self._root, self._storage
        for name, staged in moves.items():
            final = root / name
            storage.make_folders(final.parent)
            if not storage.resolves_inside(final, root):
                raise StorageError(
                    f"a link leads {final.parent} out of the table {root}",
                    in_place="nothing was written",
                    hint="remove the link, then write again",
                )
            self._files.append(final)
            if not final.exists():
                storage.link(staged, final)
        for folder in sorted({file.parent for file in self._files}):
            storage.fsync_folder(folder)

    def keep(self) -> None:
        """Leave the files where they are, come what may: a version may have them."""
        self._files = []

    def take_back(self) -> None:
        """Remove them. Only where it is known that no version has them."""
        for file in self._files:
            try:
                self._storage.remove(file)
            except StorageError as error:  # no reader looks at it
                log.warning("a file that belongs to no version could not be removed: %s", error)
        self._files = []
