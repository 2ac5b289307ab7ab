"""The local filesystem, one durable step at a time.

Every step that changes the disk goes through `_do`, so that a test can stop, fail or record any of them.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, TypeVar

from lockgate.errors import StorageError

T = TypeVar("T")


class LocalStorage:
    """Files and folders of this machine. What a method returns from is on disk, not in a cache, where it says so."""

    def _do(self, step: str, path: Path, action: Callable[[], T]) -> T:
        """Run one step. The fault-injecting storage of the tests overrides this and nothing else."""
        del step, path
        return action()

    def make_scratch_folder(self, folder: Path) -> None:
        """Make one folder whose loss in a power cut would not matter."""
        with explained("create the folder", folder):
            self._do("mkdir", folder, folder.mkdir)

    def make_folders(self, folder: Path) -> list[Path]:
        """Make `folder` and its missing parents; returns those it made, outermost first. They are durable."""
        missing = []
        probe = folder
        made: list[Path] = []
        with explained("create the folder", folder):
            while not probe.exists():
                missing.append(probe)
                probe = probe.parent
            for each in reversed(missing):
                if self._do("mkdir", each, lambda each=each: _mkdir(each)):  # type: ignore[misc]
                    made.append(each)
                self.fsync_folder(each.parent)
        if not folder.is_dir():
            raise StorageError(f"{folder} is a file where a folder is needed", hint="choose another path")
        return made

    @contextmanager
    def create(self, path: Path) -> Iterator[BinaryIO]:
        """Open a new file for writing; when the block ends well it is on disk, when it fails it is removed."""
        with explained("write", path):
            file = self._do("create", path, lambda: open(path, "xb"))  # noqa: SIM115
            try:
                with file:
                    yield file
                    file.flush()
                    self._do("fsync", path, lambda: os.fsync(file.fileno()))
            except BaseException:
                path.unlink(missing_ok=True)
                raise

    def write(self, path: Path, data: bytes) -> None:
        """Write a small new file durably."""
        with self.create(path) as file:
            file.write(data)

    def write_scratch(self, path: Path, data: bytes) -> None:
        """Write a small file whose loss in a power cut would not matter."""
        with explained("write", path):
            self._do("create", path, lambda: path.write_bytes(data))

    def fsync_file(self, path: Path) -> None:
        with explained("sync", path):
            self._do("fsync", path, lambda: _fsync(path, os.O_RDONLY))

    def fsync_folder(self, path: Path) -> None:
        """Make renames, creations and removals inside `path` durable."""
        with explained("sync the folder", path):
            self._do("fsync_folder", path, lambda: _fsync(path, os.O_RDONLY | os.O_DIRECTORY))

    def replace(self, staged: Path, final: Path) -> None:
        """Swap `staged` in under the name `final`, at once; the caller syncs the folder."""
        with explained("replace", final):
            self._do("replace", final, lambda: os.replace(staged, final))

    def link(self, staged: Path, final: Path) -> None:
        """Give the file a second name, or move it where the filesystem has no links. A name that is there stays; the
        caller syncs the folder."""
        with explained("place", final):
            try:
                self._do("link", final, lambda: os.link(staged, final))
            except FileExistsError:
                return
            except OSError as error:
                if error.errno not in (errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK):
                    raise
                self._do("replace", final, lambda: os.replace(staged, final))

    def move_folder(self, source: Path, target: Path) -> None:
        """Move a folder, by copying where the two are on different filesystems. Not atomic: for staged rows only."""
        with explained("move staged rows to", target):
            self._do("move_folder", target, lambda: shutil.move(source, target))

    def keep_attributes(self, old: Path, new: Path) -> None:
        """Give `new` the permissions and owner of `old`, as a file edited in place would have kept them."""
        with explained("keep the permissions of", old):
            was = old.stat()
            self._do("chmod", new, lambda: os.chmod(new, stat.S_IMODE(was.st_mode)))
            now = new.stat()
            if (was.st_uid, was.st_gid) != (now.st_uid, now.st_gid):
                self._do("chown", new, lambda: _chown(new, was.st_uid, was.st_gid))

    def remove(self, path: Path) -> None:
        """Remove a file; one that is gone already is fine."""
        with explained("remove", path):
            self._do("remove", path, lambda: path.unlink(missing_ok=True))

    def remove_folder_if_empty(self, path: Path) -> bool:
        try:
            self._do("rmdir", path, path.rmdir)
        except OSError as error:
            if error.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOENT):
                return False
            raise StorageError(f"cannot remove the folder {path}: {_reason(error)}") from error
        return True

    def put_if_absent(self, path: Path, data: bytes, *, modified: int | None = None) -> bool:
        """Make a file whole and at once, unless there is one: then False. Its bytes are on disk; the caller syncs the
        folder. `modified`: its time in milliseconds since 1970."""
        staged = path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")
        self.write(staged, data)
        try:
            if modified is not None:
                with explained("set the time of", staged):
                    os.utime(staged, ns=(modified * 1_000_000,) * 2)
            with explained("create", path):
                try:
                    self._do("link", path, lambda: os.link(staged, path))
                except FileExistsError:
                    return False
        finally:
            staged.unlink(missing_ok=True)
        return True

    def put_in_place(self, path: Path, data: bytes) -> None:
        """Make a file, or put it in place of the one that is there, at once and durably."""
        staged = path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")
        self.write(staged, data)
        self.replace(staged, path)
        self.fsync_folder(path.parent)

    def read_if_there(self, path: Path) -> bytes | None:
        """The bytes of a file; None where there is none."""
        with explained("read", path):
            try:
                return path.read_bytes()
            except FileNotFoundError:
                return None

    def names_in(self, folder: Path) -> list[str]:
        """What a folder holds, sorted; nothing where there is no such folder."""
        with explained("list", folder):
            try:
                return sorted(entry.name for entry in folder.iterdir())
            except FileNotFoundError:
                return []

    def require_writable(self, folder: Path, beside: Path) -> None:
        """Refuse a folder in which a file from `beside` could not be swapped in or removed."""
        with explained("change files in", folder):
            if not os.access(folder, os.W_OK | os.X_OK):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
            if folder.stat().st_dev != beside.stat().st_dev:
                raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))

    def resolves_inside(self, path: Path, root: Path) -> bool:
        """Whether `path` is below `root` once links are followed; its last part need not exist."""
        return path.parent.resolve().is_relative_to(root.resolve())

    def remove_tree(self, path: Path) -> None:
        """Remove a folder and all below it; one that is gone already is fine."""
        with explained("remove the folder", path):
            self._do("remove_tree", path, lambda: _remove_tree(path))


@contextmanager
def explained(doing: str, path: Path) -> Iterator[None]:
    """Turn an OSError into one that says what could not be done to which file, and what to do."""
    try:
        yield
    except OSError as error:
        raise StorageError(f"cannot {doing} {path}: {_reason(error)}", hint=_advice(error)) from error


def _reason(error: OSError) -> str:
    return error.strerror or str(error)


def _advice(error: OSError) -> str | None:
    match error.errno:
        case errno.ENOSPC | errno.EDQUOT:
            return "free some space on that disk, then run again"
        case errno.EACCES | errno.EPERM | errno.EROFS:
            return "give this user write permission on that folder, or choose another path"
        case errno.ENOTDIR | errno.EISDIR | errno.EEXIST:
            return "a file is where a folder is needed, or the other way round; choose another path"
        case errno.EXDEV:
            return "staging must be on the same filesystem as the destination"
        case _:
            return None


def _mkdir(path: Path) -> bool:
    try:
        path.mkdir()
    except FileExistsError:
        if not path.is_dir():
            raise
        return False  # another writer made it meanwhile
    return True


def _fsync(path: Path, flags: int) -> None:
    handle = os.open(path, flags | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _chown(path: Path, uid: int, gid: int) -> None:
    try:
        os.chown(path, uid, gid)
    except PermissionError:
        # Only root may give files away; an editor that saves by rename keeps going here too.
        return


def _remove_tree(path: Path) -> None:
    try:
        shutil.rmtree(path)
    except FileNotFoundError:
        return
