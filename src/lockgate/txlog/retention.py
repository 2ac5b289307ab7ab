"""Which versions of a table can still be read: vacuum says so in the log before it removes a file.

The oldest version whose files are all kept is the `version` of an application transaction in the table's own log. It is
committed before the first file goes, so whoever brings an older version back (`restore`) sees it, or clashes with it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from lockgate.txlog import statements
from lockgate.txlog.actions import Txn, from_json
from lockgate.txlog.files import path_hash

if TYPE_CHECKING:
    from lockgate.txlog.store import Row

VACUUM = "lockgate.vacuum"  # the application of that transaction

# Files of versions that are kept: they live, or left the table after the oldest of them.
NEEDED_PATHS = "SELECT path, deletion_vector FROM dl_add_files WHERE table_id = ? AND removed_version > ?"
# Files that left the table at that version or before.
LEFT_PATHS = "SELECT DISTINCT path, size FROM dl_add_files WHERE table_id = ? AND removed_version <= ?"


def oldest_kept(transactions: Mapping[str, Txn]) -> int:
    """The oldest version of which no file was vacuumed.

    >>> oldest_kept({}), oldest_kept({VACUUM: Txn(VACUUM, 7)})
    (0, 7)
    """
    found = transactions.get(VACUUM)
    return 0 if found is None else found.version


def vacuumed_up_to(rows: Callable[..., list[Row]], table_id: int, version: int) -> int:
    """The oldest kept version as that version of the table has it."""
    for committed, line in rows(statements.TXNS_OF, table_id, path_hash(VACUUM)):
        action = from_json(line)
        if committed <= version and isinstance(action, Txn) and action.app_id == VACUUM:
            return action.version
    return 0


def needed_files(rows: Callable[..., list[Row]], table_id: int, oldest: int) -> set[str]:
    """The paths, as the log spells them, of the files that versions from `oldest` on have."""
    return {row[0] for row in rows(NEEDED_PATHS, table_id, oldest)}


def left_files(rows: Callable[..., list[Row]], table_id: int, oldest: int) -> dict[str, int]:
    """The paths and sizes of the files that left the table with version `oldest` or before."""
    return {row[0]: row[1] for row in rows(LEFT_PATHS, table_id, oldest)}


def oldest_version(rows: Callable[..., list[Row]], table_id: int) -> int:
    """The oldest version that the log still has."""
    found = rows(statements.OLDEST, table_id)[0][0]
    return 0 if found is None else int(found)
