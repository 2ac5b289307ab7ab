"""The journal of a Parquet folder: once it is on disk the change is decided, and anybody may finish it.

A change moves staged files to their final names and removes old ones. The record names every move and removal, so
carrying it out twice, or half of it again after a crash, ends in the same place.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from lockgate.errors import JournalError, StorageError
from lockgate.storage.local import LocalStorage, explained

JOURNAL_NAME = ".lockgate_journal"
_FORMAT = 1


@dataclass(frozen=True)
class Change:
    """What one commit does to a folder. All paths are relative to it, with `/` between their parts."""

    identity: str
    staging: str
    moves: tuple[tuple[str, str], ...] = ()  # staged path -> final path
    removes: tuple[str, ...] = ()
    # Size and time of the staged files when the journal was written: a rename keeps both. None where there was none.
    stamps: tuple[tuple[int, int] | None, ...] = field(default=(), compare=False)
    clears: tuple[str, ...] = ()  # removed before anything moves: what is said of files that are about to change


def write(storage: LocalStorage, root: Path, change: Change) -> None:
    """The commit point: when this returns, the change will happen, whatever dies."""
    body = {
        "format": _FORMAT,
        "id": change.identity,
        "staging": change.staging,
        "moves": [list(m) for m in change.moves],
        "stamps": [_stamp(root / staged) for staged, _ in change.moves],
        "removes": list(change.removes),
        "clears": list(change.clears),
    }
    record = {"body": body, "sha256": _digest(body)}
    draft = root / f"{JOURNAL_NAME}.{change.identity}"
    storage.remove(draft)  # a crash right here last time may have left it
    storage.write(draft, json.dumps(record).encode())
    try:
        storage.replace(draft, root / JOURNAL_NAME)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    storage.fsync_folder(root)


def remove_drafts(storage: LocalStorage, root: Path) -> None:
    """Journals that were never decided, left by a crash. The caller holds the folder's lock."""
    for draft in root.glob(f"{JOURNAL_NAME}.*"):
        storage.remove(draft)


def read(root: Path) -> Change | None:
    """The change that was decided but not finished, or None."""
    path = root / JOURNAL_NAME
    with explained("read", path):
        try:
            raw = path.read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None
    try:
        record = json.loads(raw)
        body = record["body"]
        if record["sha256"] != _digest(body):
            raise ValueError("its checksum does not match")
        if body["format"] != _FORMAT:
            raise ValueError(f"its format {body['format']!r} is not one this version knows")
        change = Change(
            identity=str(body["id"]),
            staging=_inside(body["staging"]),
            moves=tuple((_inside(a), _inside(b)) for a, b in body["moves"]),
            removes=tuple(_inside(r) for r in body["removes"]),
            stamps=tuple(None if s is None else (int(s[0]), int(s[1])) for s in body.get("stamps", ())),
            clears=tuple(_inside(c) for c in body.get("clears", ())),
        )
        if len(change.stamps) not in (0, len(change.moves)):
            raise ValueError("its moves and stamps are not as many")
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise JournalError(
            f"the journal {path} cannot be used: {error}",
            in_place="the dataset is as it was found; nothing was changed",
            hint="keep a copy of the folder and restore the journal, or remove it if the dataset is known to be whole",
        ) from error
    return change


def carry_out(storage: LocalStorage, root: Path, change: Change) -> None:
    """Do every move and removal that is not done yet, make them durable, and end the journal."""
    touched = {root}
    for name in (*(n for move in change.moves for n in move), *change.removes, *change.clears):
        if not storage.resolves_inside(root / name, root):
            raise JournalError(
                f"the journal of {root} names {name}, which a link leads out of the folder",
                in_place="the journal is kept; nothing outside the folder was touched",
                hint=f"remove the link, then run `lockgate recover {root}`",
            )
    for name in change.clears:
        storage.remove(root / name)
    stamps = change.stamps or (None,) * len(change.moves)
    for (staged_name, final_name), stamp in zip(change.moves, stamps, strict=True):
        staged, final = root / staged_name, root / final_name
        if staged.exists():
            storage.make_folders(final.parent)
            storage.replace(staged, final)
        elif _stamp(final) is None or (stamp is not None and _stamp(final) != stamp):
            raise JournalError(
                f"the journal of {root} moves {staged_name} to {final_name}, and neither is there as it was staged",
                in_place="the journal is kept; the other files of the change are in place",
                hint=f"bring {staged_name} back from a copy, then run `lockgate recover {root}`",
            )
        touched.add(final.parent)
    for name in change.removes:
        old = root / name
        storage.remove(old)
        touched.add(old.parent)
    for folder in sorted(touched):
        if folder.is_dir():
            storage.fsync_folder(folder)
    _drop_emptied(storage, root, change.removes)
    storage.remove(root / JOURNAL_NAME)
    storage.fsync_folder(root)


def _drop_emptied(storage: LocalStorage, root: Path, removes: tuple[str, ...]) -> None:
    """Partition folders whose last file was removed go too; a folder that holds anything else stays."""
    for parent in sorted({PurePosixPath(r).parent for r in removes}, key=lambda p: -len(p.parts)):
        while parent.parts:
            try:
                if not storage.remove_folder_if_empty(root / parent):
                    break
            except StorageError:  # an empty folder that stays is no reason to keep the journal open
                break
            parent = parent.parent


def _stamp(path: Path) -> tuple[int, int] | None:
    with explained("look at", path):
        try:
            found = path.stat()
            return found.st_size, found.st_mtime_ns
        except (FileNotFoundError, ValueError):  # ValueError: a name that no file can have
            return None


def _digest(body: object) -> str:
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()


def _inside(name: object) -> str:
    """A path that stays inside the dataset; a journal from a hostile hand must not reach out of it."""
    if not isinstance(name, str) or not name:
        raise ValueError(f"{name!r} is not a path")
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or "\0" in name:
        raise ValueError(f"{name!r} leaves the folder")
    return name
