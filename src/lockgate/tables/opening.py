"""Opening the log of a project, and finding the tables in it."""

from __future__ import annotations

from contextlib import suppress
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

from lockgate.errors import ArgumentError, StorageError, TableExists, TableNotFound
from lockgate.storage.local import LocalStorage, explained
from lockgate.targets.folder import FolderTarget

if TYPE_CHECKING:
    from lockgate.txlog.reader import TableRecord
    from lockgate.txlog.writer import TxnLogWriter

_NOTHING = "nothing was written"


def opened_log(address: str, storage: LocalStorage | None = None) -> TxnLogWriter:
    """The log at that address, made where it is a file that is not there yet."""
    from lockgate.txlog.writer import TxnLogWriter

    if address.startswith("sqlite:///"):
        (storage or LocalStorage()).make_folders(Path(address.removeprefix("sqlite:///")).parent)
    return TxnLogWriter.open(address)


def table_record(txn_log: TxnLogWriter, name: str) -> TableRecord | None:
    """The table of that name, committed to or not; None if the log does not know it."""
    return next((record for record in txn_log.tables() if record.name == name), None)


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
    """The table in the log's list, put there now if need be. Readers see it from its first commit on."""
    found = table_record(txn_log, name)
    if found is not None:
        return found
    refuse_taken(txn_log, name, folder)
    with suppress(TableExists):  # somebody else was faster
        txn_log.create_table(name, str(folder))
    found = table_record(txn_log, name)
    if found is None:
        raise TableExists(
            f"the folder {folder} has just been taken by another table", in_place=_NOTHING, hint="choose another one"
        )
    return found


def refuse_taken(txn_log: TxnLogWriter, name: str, folder: Path) -> None:
    """Refuse a folder that holds, lies in, or lies around another table, or holds files of somebody else."""
    for record in txn_log.tables():
        other = Path(record.location)
        if record.name == name or not (other == folder or other in folder.parents or folder in other.parents):
            continue
        how = "is the folder" if other == folder else "and the folder"
        raise TableExists(
            f"{folder} {how} of the table {record.name}{'' if other == folder else f', {other}, overlap'}",
            in_place=_NOTHING,
            hint="give the table a location of its own",
        )
    with explained("look at", folder):
        if folder.exists() and not folder.is_dir():
            raise ArgumentError(
                f"{folder} is a file, and a table is a folder", in_place=_NOTHING, hint="choose another location"
            )
        has_log = (folder / "_delta_log").is_dir() and any((folder / "_delta_log").iterdir())
    if has_log:
        raise TableExists(
            f"{folder} is a Delta table already, which the log does not know",
            in_place=_NOTHING,
            hint="choose another location, or bring that table into the log",
        )
    if FolderTarget(folder, LocalStorage()).files():
        raise StorageError(
            f"{folder} holds Parquet files that are of no table of the log",
            in_place=_NOTHING,
            hint="choose an empty folder, or move the files out of it",
        )
