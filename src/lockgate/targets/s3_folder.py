"""Parquet objects below a prefix of S3 as one table: which they are, and how a change to them is committed.

Reading and rewriting happen in a scratch folder of this machine. What is to appear is uploaded there from, to uploads
under the final names, and these are completed once the journal has decided it.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from lockgate.errors import (
    DatasetBusy,
    JournalError,
    LockgateError,
    ObjectChanged,
    ObjectMissing,
    OutcomeUnknown,
    StorageError,
)
from lockgate.storage.links import temporary_folder
from lockgate.storage.s3 import S3Object, S3Storage
from lockgate.storage.s3_address import S3Address
from lockgate.storage.s3_record import MARK
from lockgate.storage.s3_upload import Uploaded, upload_file
from lockgate.targets import s3_journal
from lockgate.targets.described import NOTHING_TO_SAY, ChangeDetails
from lockgate.targets.folder import DEFAULT_LOCK_TIMEOUT, is_hidden
from lockgate.targets.s3_journal import JournalState, S3Change
from lockgate.targets.s3_lock import LEASE, LOCK_NAME, S3Lock
from lockgate.targets.s3_mirror import Mirror

log = logging.getLogger("lockgate.merge")

T = TypeVar("T")

STAGING_PREFIX = ".lockgate_staging_"  # objects in which a writer says what it uploads
_SUMMARY = "_metadata"  # lists the row groups of all files, and so is wrong as soon as one of them changes
_AT_ONCE = 8
_NOTHING = "nothing was written"
_ALL = "the change is in place, all of it"


@dataclass(frozen=True)
class S3Recovery:
    """What opening a dataset after a crash had to do."""

    finished: str | None = None
    completed: int = 0
    removed: int = 0
    uploads_aborted: list[str] = field(default_factory=list)


class S3Folder:
    """A prefix as the target of merges and writes."""

    def __init__(
        self,
        root: S3Address,
        s3: S3Storage,
        *,
        lock_timeout: float = DEFAULT_LOCK_TIMEOUT,
        lease: float = LEASE,
    ) -> None:
        self.address = root
        self.root = Path(root.bucket, root.key)  # as a name; there is no such folder
        self.s3 = s3
        self.lock_timeout = lock_timeout
        self.lease = lease

    def objects(self) -> dict[str, S3Object]:
        """The data files by name: Parquet objects with no hidden part in their name."""
        prefix = self.address.inside("")
        found = {}
        for each in self.s3.objects(prefix):
            name = each.address.key.removeprefix(prefix.key)
            parts = name.split("/")
            if parts[0] == "_delta_log":
                raise StorageError(
                    f"{self.address} is a Delta table, not a plain folder of Parquet files",
                    in_place=_NOTHING,
                    hint="choose another prefix",
                )
            if any(is_hidden(part) for part in parts) or not name.lower().endswith(".parquet"):
                continue
            if "" in parts:
                raise StorageError(
                    f"{each.address} has an empty part in its name, which no folder of a dataset has",
                    in_place=_NOTHING,
                    hint="give the object another key",
                )
            found[name] = each
        return found

    def exists(self) -> bool:
        return bool(self.objects())

    def has_leftovers(self) -> bool:
        """Whether a writer has begun something here and is not done with it. Looks only."""
        left = (each.address.name for each in self.s3.objects(self.address.inside(".lockgate_")))
        return any(name == LOCK_NAME or name.startswith(STAGING_PREFIX) for name in left) or self.is_unfinished()

    def is_unfinished(self) -> bool:
        """Whether a change was decided and is not carried out."""
        return s3_journal.read(self.s3, self.address).change is not None

    @contextmanager
    def opened(self, identity: str, *, dry_run: bool = False) -> Iterator[OpenS3Folder]:
        """Hold the dataset. A dry run changes nothing and finishes nothing, so it refuses one that needs it."""
        with ExitStack() as stack:
            scratch = Path(stack.enter_context(temporary_folder("lockgate-s3-")))
            folder = OpenS3Folder(self, identity, scratch)
            try:
                if dry_run:
                    folder.look()
                else:
                    stack.enter_context(folder.held())
                yield folder
            except LockgateError as error:
                if error.in_place is None:
                    error.in_place = folder.what_is_in_place
                raise
            except KeyboardInterrupt as error:
                error.args = (folder.what_is_in_place,)
                raise


class OpenS3Folder:
    """What a merge sees of the dataset."""

    def __init__(self, target: S3Folder, identity: str, scratch: Path) -> None:
        self._target = target
        self._identity = identity
        self._scratch = scratch
        self._lock = S3Lock(target.s3, target.address, identity, lease=target.lease)
        self._staging: Path | None = None
        self._mirror: Mirror | None = None
        self._objects: dict[str, S3Object] = {}
        self.state = JournalState()
        self.recovery = S3Recovery()
        self.what_is_in_place = _NOTHING

    @property
    def s3(self) -> S3Storage:
        return self._target.s3

    @property
    def address(self) -> S3Address:
        return self._target.address

    # opening

    def look(self) -> None:
        self.state = s3_journal.read(self._target.s3, self._target.address)
        if self.state.change is not None:
            raise StorageError(
                f"a write to {self._target.address} was interrupted after it was decided, and is not finished",
                in_place="nothing was changed",
                hint=f"run `lockgate recover {self._target.address}`, then try again",
            )
        self._list()

    @contextmanager
    def held(self) -> Iterator[None]:
        """The lock, and on the way in what a dead writer has left."""
        with self._lock:
            self._lock.acquire(self._target.lock_timeout)
            self.state = s3_journal.read(self._target.s3, self._target.address)
            change = self.state.change
            if change is not None:
                self._carry_out(change)
            aborted = self._sweep()
            self.recovery = S3Recovery(
                finished=change.identity if change else None,
                completed=len(change.uploads) if change else 0,
                removed=len(change.removes) if change else 0,
                uploads_aborted=aborted,
            )
            self._list()
            yield

    def _list(self) -> None:
        self._objects = self._target.objects()
        self._mirror = Mirror(self._target.s3, self._scratch / "data", self._objects)

    def _sweep(self) -> list[str]:
        """End what writers before us have begun: we hold the lock, so they are dead, or will find that it is lost."""
        s3, root = self._target.s3, self._target.address
        left = [found.address for found in s3.objects(root.inside(STAGING_PREFIX))]
        if not left:
            return []
        self.fence()
        aborted: list[str] = []
        for record in left:
            aborted += self._abort_recorded(record)
            s3.delete(record)
        return aborted

    def fence(self) -> None:
        """From here no writer that read the journal before can decide anything."""
        self.state = self._write(self.state)

    def _abort_recorded(self, record: S3Address) -> list[str]:
        s3, aborted = self._target.s3, []
        for name, upload in _staged(s3, record).items():
            address = self._target.address.inside(name)
            if upload is not None:
                s3.abort(address, upload)
                aborted.append(str(address))
                continue
            for found in s3.uploads(address):  # announced, and perhaps begun; then it has no part
                if found.address == address and s3.parts(address, found.identity) == 0:
                    s3.abort(address, found.identity)
                    aborted.append(str(address))
        return aborted

    # reading

    def files(self) -> list[str]:
        return sorted(self._objects)

    def path_of(self, name: str) -> str:
        return self.mirror.path_of(name)

    @property
    def mirror(self) -> Mirror:
        assert self._mirror is not None, "listed when it was opened"
        return self._mirror

    # writing

    def staging(self) -> Path:
        if self._staging is None:
            self._staging = self._scratch / "staging"
            self._staging.mkdir()
        return self._staging

    def described(self) -> None:
        return None

    def name_when_rewritten(self, name: str, number: int) -> str:
        del number
        return name

    def commit(
        self,
        moves: Mapping[str, Path],
        removes: Iterable[str],
        details: ChangeDetails = NOTHING_TO_SAY,
        note: Mapping[str, Any] | None = None,
    ) -> None:
        """Upload the staged files, decide, and complete the uploads."""
        del details
        self._lock.require()
        s3, record = self._target.s3, self._target.address.inside(f"{STAGING_PREFIX}{self._identity}")
        s3.put(record, json.dumps(dict.fromkeys(moves)).encode())
        try:
            begun = self._each(moves, self._begin)
            s3.put(record, json.dumps(begun).encode())
            uploads = self._each(moves, lambda name: self._upload(name, begun[name], moves[name]))
        except BaseException:
            self._abandon(record)
            raise
        self.commit_uploads(uploads, removes, note, record)

    def commit_uploads(
        self,
        uploads: Mapping[str, Uploaded],
        removes: Iterable[str],
        note: Mapping[str, Any] | None = None,
        record: S3Address | None = None,
    ) -> None:
        """Decide that these uploads become objects under their names, and complete them."""
        summary = self._target.s3.head(self._target.address.inside(_SUMMARY)) is not None
        change = S3Change(
            self._identity, dict(uploads), tuple(removes), (_SUMMARY,) if summary else (), dict(note or {})
        )
        try:
            self._lock.require()
            self.state = self._write(self.state.deciding(change))
        except OutcomeUnknown:
            raise  # nothing of it may be undone
        except BaseException:
            if record is not None:
                self._abandon(record)
            raise
        root = self._target.address
        self.what_is_in_place = (
            f"the change is decided, and in place in part; the next write, or `lockgate recover {root}`, finishes it"
        )
        self._carry_out(change)
        self.what_is_in_place = _ALL
        if record is not None:
            with suppress(StorageError):  # swept by the next writer, who finds nothing to abort
                self._target.s3.delete(record)

    def _begin(self, name: str) -> str:
        return self._target.s3.create_upload(self._target.address.inside(name), {MARK: self._identity})

    def _upload(self, name: str, upload: str, staged: Path) -> Uploaded:
        return upload_file(self._target.s3, self._target.address.inside(name), upload, staged)

    def _abandon(self, record: S3Address) -> None:
        """Nothing was decided: end the uploads. What cannot be ended now is ended by the next writer."""
        try:
            self._abort_recorded(record)
            self._target.s3.delete(record)
        except LockgateError as error:
            log.warning("uploads could not be aborted, the next write will: %s", error.message)

    def _write(self, state: JournalState) -> JournalState:
        try:
            return s3_journal.write(self._target.s3, self._target.address, state, self._identity)
        except (ObjectChanged, ObjectMissing) as error:
            raise DatasetBusy(
                f"another writer has changed {self._target.address} meanwhile",
                in_place=_NOTHING,
                hint="try again",
            ) from error

    def _carry_out(self, change: S3Change) -> None:
        """Do all that is not done yet, and say so in the journal. Others may be at the same change."""
        s3, root = self._target.s3, self._target.address
        for name in change.clears:
            s3.delete(root.inside(name))
        self._each(change.uploads, lambda name: self._complete(change, change.uploads[name]))
        self._each(change.removes, lambda name: s3.delete(root.inside(name)))
        try:
            self.state = s3_journal.write(s3, root, self.state.carried_out(), self._identity)
        except (ObjectChanged, ObjectMissing):
            now = s3_journal.read(s3, root)
            if now.change is not None and now.change.identity == change.identity:
                raise
            self.state = now  # somebody else has carried it out

    def _complete(self, change: S3Change, upload: Uploaded) -> None:
        s3 = self._target.s3
        try:
            s3.complete(upload.address, upload.identity, upload.etags)
        except ObjectMissing as error:
            found = s3.head(upload.address)
            if found is not None and found.metadata.get(MARK) == change.identity:
                return
            now = s3_journal.read(s3, self._target.address)
            if now.change is None or now.change.identity != change.identity:
                return  # carried out by somebody else, and changed again since
            raise JournalError(
                f"the journal of {self._target.address} completes an upload to {upload.address}, which is gone",
                in_place="the journal is kept; the other files of the change are in place",
                hint="somebody aborted it, or a rule of the bucket did: restore the journal's dataset from a copy",
            ) from error

    def _each(self, names: Iterable[str], work: Callable[[str], T]) -> dict[str, T]:
        """The work on several names at once; the first failure is raised when all that has begun has ended."""
        listed = list(names)
        with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="s3") as pool:
            try:
                return dict(zip(listed, pool.map(work, listed), strict=True))
            except BaseException:
                pool.shutdown(wait=True, cancel_futures=True)
                raise


def _staged(s3: S3Storage, record: S3Address) -> dict[str, str | None]:
    """What a writer said it uploads: names, with ids where it came to know them."""
    found = s3.read(record)
    if found is None:
        return {}
    try:
        told = json.loads(found[0])
        return {s3_journal.inside(name): None if upload is None else str(upload) for name, upload in told.items()}
    except (ValueError, AttributeError) as error:
        raise JournalError(
            f"{record}, in which a writer says what it uploads, cannot be used: {error}",
            in_place="nothing was changed",
            hint="remove it, and abort the uploads below the prefix by hand",
        ) from error
