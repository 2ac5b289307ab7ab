"""Publishing: every version becomes a commit file of the table's `_delta_log`, in order, and only once.

What waits are the versions after `published_version`; the commit's own transaction enqueues them by moving
`current_version`. Files are put under their names only where there is none, so publishers need no lock: a file that is
there already holds this very commit, or somebody else's, which is told by its `txnId`.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Sequence

from lockgate.errors import ForeignCommit, LockgateError
from lockgate.txlog import statements
from lockgate.txlog.checkpoints import is_due, write_checkpoint
from lockgate.txlog.commit_lines import lines_of
from lockgate.txlog.committer import no_such_table
from lockgate.txlog.log_files import LogFiles, log_files_at
from lockgate.txlog.metrics import METRICS
from lockgate.txlog.store import Row, Store, TableRow

_LOG = logging.getLogger("lockgate.txlog")
_AT_ONCE = 64  # versions between two syncs of the folder


class Publisher:
    """Publishes the tables of one log; in the background, where that is asked for."""

    def __init__(self, store: Store, *, background: bool, files_at: Callable[[str], LogFiles] = log_files_at) -> None:
        self._store = store
        self._background = background
        self._files_at = files_at
        self._files: dict[str, LogFiles] = {}
        self._locks: dict[str, threading.Lock] = {}
        self._mutex = threading.Condition()
        self._waiting: dict[str, None] = {}
        self._touched: set[str] = set()
        self._thread: threading.Thread | None = None
        self._closing = False

    def require_empty(self, location: str) -> None:
        """Refuse a place where somebody else keeps a Delta table."""
        commits = [name for name in self._at(location).names() if version_of(name) is not None]
        if commits:
            raise ForeignCommit(
                f"{location} is a Delta table already: its _delta_log has {len(commits)} commits",
                in_place="nothing was created, nothing there was changed",
                hint="take it over with `lockgate table import`, or give another location",
            )

    def require_ours(self, row: TableRow) -> TableRow:
        """Refuse a table into whose `_delta_log` somebody else has committed, before anything is committed here.
        Returns the row, newer where it had to be read again."""
        files = self._at(row.location)
        if not files.exists(commit_name(row.published_version + 1)):
            return row
        row = self._row(row.name)  # it may have been published meanwhile
        at = row.published_version + 1
        while (data := files.read(commit_name(at))) is not None:
            known = self._store.rows(statements.VERSION, row.id, at)
            if not known or not _is_ours(data, known[0]):
                raise foreign(row, at, data, "nothing was committed")
            at += 1
        return row

    def publish(self, name: str) -> int:
        """Publish what waits, and return how many versions that were."""
        lock = self._lock_of(name)
        with lock:
            row = self._row(name)
            first, last = row.published_version + 1, row.current_version
            METRICS.publishing(last - first + 1)
            if first > last:
                return 0
            files = self._at(row.location)
            done = row.published_version
            try:
                for version, lines in lines_of(self._store.rows, row.id, first, last):
                    self._put(files, row, version, lines)
                    done = version[0]
                    due = is_due(self._store.rows, row.id, done)
                    if due or done % _AT_ONCE == 0:
                        self._mark(files, row, done)
                    if due:
                        self._checkpoint(files, row, done)
            finally:
                if done > row.published_version:
                    self._mark(files, row, done)
                    METRICS.published(done - first + 1)
            return done - first + 1

    def try_publish(self, name: str) -> bool:
        """Publish; a failure is a warning, because the commit stands, and the next one tries again."""
        try:
            self.publish(name)
        except LockgateError as error:
            _LOG.warning("versions of %s were committed and could not be published yet: %s", name, error.message)
            return False
        return True

    def wake(self, names: Sequence[str]) -> None:
        """Say that these tables have something to publish."""
        with self._mutex:
            self._touched.update(names)
            if not self._background or self._closing:
                return
            self._waiting.update(dict.fromkeys(names))
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="lockgate-publisher", daemon=True)
                self._thread.start()
            self._mutex.notify()

    def close(self) -> None:
        """Finish publishing what was committed here."""
        with self._mutex:
            self._closing = True
            self._mutex.notify()
        if self._thread is not None:
            self._thread.join()
        if self._background:
            for name in sorted(self._touched):
                row = self._row(name)
                if row.publish and row.published_version < row.current_version:
                    self.try_publish(name)
        self._touched.clear()

    def _work(self) -> None:
        while True:
            with self._mutex:
                while not self._waiting and not self._closing:
                    self._mutex.wait()
                if self._closing:
                    return
                name = next(iter(self._waiting))
                del self._waiting[name]
            try:
                row = self._row(name)
            except LockgateError as error:
                _LOG.warning("%s could not be published yet: %s", name, error.message)
                continue
            if row.publish:
                self.try_publish(name)

    def _put(self, files: LogFiles, row: TableRow, version: Row, lines: list[str]) -> None:
        name = commit_name(version[0])
        data = ("\n".join(lines) + "\n").encode()
        if files.put_if_absent(name, data, modified=version[1]):
            return
        there = files.read(name)
        if there is None or not _is_ours(there, version):
            raise foreign(row, version[0], there, "the commit is in the log and is not published")

    def _mark(self, files: LogFiles, row: TableRow, done: int) -> None:
        files.sync()
        self._store.change(statements.PUBLISHED, done, row.id, done)

    def _checkpoint(self, files: LogFiles, row: TableRow, version: int) -> None:
        try:
            write_checkpoint(self._store, files, row.id, version)
        except LockgateError as error:
            _LOG.warning("no checkpoint of %s at version %d: %s", row.name, version, error.message)

    def _row(self, name: str) -> TableRow:
        found = self._store.rows(statements.TABLE_BY_NAME, name)
        if not found:
            raise no_such_table(name)
        return TableRow(*found[0])

    def _at(self, location: str) -> LogFiles:
        if location not in self._files:
            self._files[location] = self._files_at(location)
        return self._files[location]

    def _lock_of(self, name: str) -> threading.Lock:
        with self._mutex:
            return self._locks.setdefault(name, threading.Lock())


def commit_name(version: int) -> str:
    """The name of a version's commit file.

    >>> commit_name(7)
    '00000000000000000007.json'
    """
    return f"{version:020}.json"


def version_of(name: str) -> int | None:
    """The version of a commit file or a checkpoint; None of any other name."""
    number, _, rest = name.partition(".")
    is_commit = rest == "json" or rest.startswith("checkpoint.")
    return int(number) if len(number) == 20 and number.isdigit() and is_commit else None


def foreign(row: TableRow, version: int, data: bytes | None, in_place: str) -> ForeignCommit:
    engine = ""
    try:
        info = json.loads((data or b"").partition(b"\n")[0]).get("commitInfo", {})
        engine = f" ({info.get('operation', 'unknown')} by {info.get('engineInfo', 'an unknown engine')})"
    except (ValueError, AttributeError):
        pass  # not a commit at all; its name alone is enough to tell
    return ForeignCommit(
        f"somebody else wrote version {version} of {row.name} into {row.location}/_delta_log{engine}",
        in_place=in_place,
        hint="keep other writers away from this table; to go on from their version, release it and import it anew",
    )


def _is_ours(data: bytes, version: Row) -> bool:
    try:
        info = json.loads(data.partition(b"\n")[0]).get("commitInfo", {})
    except (ValueError, AttributeError):
        return False
    return isinstance(info, dict) and info.get("txnId") == version[2] and info.get("timestamp") == version[1]
