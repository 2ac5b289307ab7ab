"""Replacing several files of a dataset at once: staged beside the data, then committed through its journal."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from pyarrow import fs

from lockgate.errors import StorageError
from lockgate.storage.local import LocalStorage
from lockgate.storage.staging import StagingArea
from lockgate.targets.folder import FolderTarget, is_hidden
from lockgate.targets.journal import JOURNAL_NAME, Change

_UNCHANGED = "nothing was replaced"


class IncrementalFileManager:
    """Stages files inside a dataset's folder and swaps them in together. In a `with` block it cleans up by itself.

    >>> import tempfile
    >>> base = tempfile.mkdtemp()
    >>> with IncrementalFileManager() as manager:
    ...     staged = Path(manager.create_staging_directory(base)) / "a.parquet"
    ...     _ = staged.write_bytes(b"new")
    ...     manager.atomic_replace_files([str(staged)], [f"{base}/a.parquet"])
    >>> Path(f"{base}/a.parquet").read_bytes()
    b'new'
    """

    def __init__(self, storage: LocalStorage | None = None) -> None:
        self._storage = storage or LocalStorage()
        self._areas: list[StagingArea] = []

    def create_staging_directory(self, base_path: str) -> str:
        """Make `.staging_<uuid>` inside `base_path`, ours until `cleanup_staging_files`."""
        area = StagingArea.create(self._storage, Path(base_path).resolve(), uuid.uuid4().hex)
        self._areas.append(area)
        return str(area.path)

    def atomic_replace_files(
        self, source_files: Sequence[str], target_files: Sequence[str], filesystem: Any = None
    ) -> None:
        """Move every source to its target, all of them or, whatever fails or dies, none.

        Both lists are of paths inside the folder that `create_staging_directory` was called with.
        """
        _require_local(filesystem)
        if len(source_files) != len(target_files):
            raise StorageError(
                f"{len(source_files)} files cannot replace {len(target_files)}: each needs one target",
                in_place=_UNCHANGED,
                hint="give two lists of one length, in one order",
            )
        if not source_files:
            return
        area = self._area_of(source_files[0])
        target = FolderTarget(area.path.parent, self._storage)
        with target.locked():
            moves = _checked_moves(target.root, source_files, target_files)
            self._make_durable(target.root, moves)
            target.commit(Change(uuid.uuid4().hex, area.path.name, tuple(moves)))

    def cleanup_staging_files(self) -> None:
        """Remove what was staged. An area whose files a journal may still need is left to recovery."""
        areas, self._areas = self._areas, []
        for area in areas:
            if (area.path.parent / JOURNAL_NAME).exists():
                area.release()  # whoever opens the dataset next finishes the change, then sweeps
            else:
                area.discard()

    def __enter__(self) -> IncrementalFileManager:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.cleanup_staging_files()

    def _area_of(self, source: str) -> StagingArea:
        """The area whose dataset the file lies in; the newest, where there are several."""
        place = _resolved(source)
        for area in reversed(self._areas):
            if place.is_relative_to(area.path):
                return area
        for area in reversed(self._areas):
            if place.is_relative_to(area.path.parent):
                return area
        raise StorageError(
            f"{source} is in no folder that this manager stages for",
            in_place=_UNCHANGED,
            hint="call create_staging_directory with the dataset's folder, and write the new files there",
        )

    def _make_durable(self, root: Path, moves: list[tuple[str, str]]) -> None:
        for staged, final in moves:
            if (root / final).exists():
                self._storage.keep_attributes(root / final, root / staged)
            self._storage.fsync_file(root / staged)
        folders = {f for staged, _ in moves for f in (root / staged).parents if f != root and f.is_relative_to(root)}
        for folder in sorted(folders, reverse=True):
            self._storage.fsync_folder(folder)


def _checked_moves(root: Path, sources: Sequence[str], targets: Sequence[str]) -> list[tuple[str, str]]:
    """The moves relative to the dataset; refuses all of them if one is not what a journal could finish."""
    staged = [_relative(root, source) for source in sources]
    final = [_relative(root, target) for target in targets]
    for source, name in zip(sources, staged, strict=True):
        if not (root / name).is_file() or (root / name).is_symlink():
            raise StorageError(f"{source} is not there, or not a file", in_place=_UNCHANGED, hint="stage it first")
    for target, name in zip(targets, final, strict=True):
        if any(is_hidden(part) for part in Path(name).parts):
            raise StorageError(
                f"{target} has a hidden name, which readers do not take for data",
                in_place=_UNCHANGED,
                hint="use a name without a leading _ or .",
            )
        if (root / name).is_dir():
            raise StorageError(f"{target} is a folder", in_place=_UNCHANGED, hint="name a file")
    names = [*staged, *final]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise StorageError(
            f"{twice} is named twice; one move would undo another", in_place=_UNCHANGED, hint="name every file once"
        )
    return list(zip(staged, final, strict=True))


def _relative(root: Path, file: str) -> str:
    place = _resolved(file)
    if not place.is_relative_to(root) or place == root:
        raise StorageError(
            f"{file} is outside of {root}", in_place=_UNCHANGED, hint="files are replaced within one dataset only"
        )
    return place.relative_to(root).as_posix()


def _resolved(file: str) -> Path:
    """The absolute path with links in its folders followed, not the file itself."""
    path = Path(file)
    return path.parent.resolve() / path.name


def _require_local(filesystem: Any) -> None:
    protocol = getattr(filesystem, "protocol", ())
    protocols = (protocol,) if isinstance(protocol, str) else protocol
    if filesystem is None or isinstance(filesystem, fs.LocalFileSystem) or "file" in protocols:
        return
    raise StorageError(
        "files can be replaced all at once on a local filesystem only",
        in_place=_UNCHANGED,
        hint="leave `filesystem` out, or use a local one",
    )
