"""Opening the log of a project, and finding the tables in it."""

from __future__ import annotations

import logging
from contextlib import suppress
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

from lockgate.errors import ArgumentError, LockgateError, StorageError, TableExists, TableNotFound
from lockgate.storage.local import LocalStorage, explained
from lockgate.targets.folder import FolderTarget

if TYPE_CHECKING:
    from lockgate.txlog.records import Snapshot, TableRecord
    from lockgate.txlog.writer import TxnLogWriter

log = logging.getLogger("lockgate.tables")

_NOTHING = "nothing was written"


def opened_log(address: str, storage: LocalStorage | None = None) -> TxnLogWriter:
    """The log at that address, made where it is a file that is not there yet."""
    from lockgate.txlog.writer import TxnLogWriter

    _make_folder(address, storage)
    # Whoever writes publishes before it returns, and says what becomes of that.
    return TxnLogWriter.open(address, publish=False)


def migrated_log(address: str) -> int:
    """Bring the log's own schema up to date; its version. A log that is older is not opened by anything else."""
    from lockgate.txlog.addresses import store_at

    _make_folder(address, None)
    store = store_at(address, root=None, pool_size=1, timeout=30.0)
    try:
        return store.migrate()
    finally:
        store.close()


def _make_folder(address: str, storage: LocalStorage | None) -> None:
    if address.startswith("sqlite:///"):
        (storage or LocalStorage()).make_folders(Path(address.removeprefix("sqlite:///")).parent)


def is_there(address: str) -> bool:
    """Whether there is a log to ask; a database on a server answers for itself."""
    return not address.startswith("sqlite:///") or Path(address.removeprefix("sqlite:///")).exists()


def newest_snapshot(address: str, name: str) -> Snapshot | None:
    """The table as it is, or None if there is no such table. Nothing is made, not even the log."""
    if not is_there(address):
        return None
    with opened_log(address) as txn_log:
        if not txn_log.has_table(name) or txn_log.current_version(name) < 0:
            return None
        return txn_log.snapshot(name)


def place_and_partitions(address: str, name: str) -> tuple[str, tuple[str, ...]] | None:
    """Where a table is and how it is partitioned, without a look at its files; None as above."""
    if not is_there(address):
        return None
    with opened_log(address) as txn_log:
        if not txn_log.has_table(name) or txn_log.current_version(name) < 0:
            return None
        _, metadata = txn_log.metadata(name)
        return txn_log.table(name).location, tuple(metadata.partition_columns)


def needed_table(txn_log: TxnLogWriter, name: str) -> TableRecord:
    """The table of that name, which has a version."""
    records = [record for record in txn_log.tables() if record.current_version >= 0]
    found = next((record for record in records if record.name == name), None)
    if found is not None:
        return found
    names = [record.name for record in records]
    near = get_close_matches(name, names, n=1)
    if near:
        hint = f"did you mean {near[0]}?"
    else:
        hint = f"tables of the log: {', '.join(sorted(names)[:20])}" if names else "`lockgate table create` makes one"
    raise TableNotFound(f"there is no table {name}", in_place=_NOTHING, hint=hint)


def registered(txn_log: TxnLogWriter, name: str, folder: Path) -> TableRecord:
    """The table in the log's list, put there now if need be. It is a table from its first commit on."""
    from lockgate.txlog.locations import require_free

    if not txn_log.has_table(name):
        require_free(txn_log.tables(), name, str(folder))
        refuse_other_files(folder)
        with suppress(TableExists):  # somebody else was faster, or has the folder, which the next line tells
            return txn_log.create_table(name, str(folder))
        if not txn_log.has_table(name):
            return txn_log.create_table(name, str(folder))
    return txn_log.table(name)


def refuse_other_files(folder: Path) -> None:
    """A table's folder is its own: data files in it that are of no version could be taken for leftovers."""
    with explained("look at", folder):
        if folder.exists() and not folder.is_dir():
            raise ArgumentError(
                f"{folder} is a file, and a table is a folder", in_place=_NOTHING, hint="choose another location"
            )
    if FolderTarget(folder, LocalStorage()).files():
        raise StorageError(
            f"{folder} holds Parquet files that are of no table of the log",
            in_place=_NOTHING,
            hint="choose an empty folder, or move the files out of it",
        )


def published(txn_log: TxnLogWriter, name: str) -> None:
    """Publish what is committed. The commit stands whatever comes of it, so a failure is a warning."""
    try:
        txn_log.publish(name)
    except LockgateError as error:
        log.warning(
            "%s is committed, and not published yet, so other readers do not see it: %s; "
            "the next commit or `lockgate table publish %s` does it",
            name,
            error.message,
            name,
        )
