"""What is staged inside a dataset folder: whether it is there, whether it is decided, and how it goes."""

from __future__ import annotations

from pathlib import Path

from lockgate.destinations.protocol import Prepared
from lockgate.errors import JournalError, PublishError, StageError
from lockgate.storage.local import LocalStorage
from lockgate.storage.staging import StagingArea
from lockgate.targets.folder import FolderTarget
from lockgate.targets.journal import read as read_journal


def refuse_bad_place(area: StagingArea, root: Path) -> None:
    """Found before anything is published: a Delta table, a damaged journal, an area that could not be swapped in."""
    if area.path.parent != root:
        raise StageError(f"{area.path} is not inside {root}")
    FolderTarget(root, area.storage).refuse_delta()
    read_journal(root)


def require_staged(prepared: Prepared) -> None:
    if not Path(prepared.staging).is_dir():
        raise PublishError(
            f"what was staged for {prepared.destination} is gone: {prepared.staging}",
            hint="run the pipeline again",
        )


def is_pending(prepared: Prepared) -> bool:
    """Whether the folder's journal holds this very change, so that whoever opens the folder next carries it out."""
    try:
        pending = read_journal(Path(prepared.instructions["root"]))
    except JournalError:  # somebody's damaged journal: ours cannot have been written beside it
        return False
    return pending is not None and pending.identity == prepared.instructions["id"]


def discard_staged_folder(prepared: Prepared, storage: LocalStorage) -> None:
    """Remove the area. A change that is decided needs its files, so that one is carried out first."""
    if is_pending(prepared):
        with FolderTarget(Path(prepared.instructions["root"]), storage).locked():
            pass  # opening the folder finishes it
    StagingArea.reopen(storage, Path(prepared.staging)).discard()
