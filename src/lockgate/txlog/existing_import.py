"""Taking an existing table into the log: its whole history in one transaction, or nothing."""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Callable

from lockgate.errors import CommitStateUnknown, ForeignCommit, TableExists
from lockgate.txlog import statements
from lockgate.txlog.existing_rows import final_row, history_of
from lockgate.txlog.existing_table import ExistingTable, LogFolder, read_existing
from lockgate.txlog.locations import require_free
from lockgate.txlog.store import Changes, CommitUncertain, Transaction
from lockgate.txlog.validation import check_name
from lockgate.txlog.writer import TxnLogWriter

_COMMIT = re.compile(r"([0-9]{20})\.json")
_TRIES = 5


def import_table(
    txn_log: TxnLogWriter,
    name: str,
    location: str,
    folder: LogFolder,
    *,
    ids: Callable[[], str] = lambda: uuid.uuid4().hex,
    clock: Callable[[], float] = time.time,
    progress: Callable[[int], None] | None = None,
) -> ExistingTable:
    """Enter the table that lies at `location` with every version that its log can still give. Others see it whole, or
    not at all. A commit that somebody else makes meanwhile is read too."""
    check_name(name, "the name of a table")
    require_free(txn_log.tables(), name, location)
    table = read_existing(folder, progress=progress)
    for _ in range(_TRIES):
        import_id = f"import-{ids()}"
        with txn_log.store.transaction() as transaction:
            transaction.lock([name], [])
            table_id = _entered(transaction, txn_log, name, location, int(clock() * 1000))
            for each in history_of(table, table_id, import_id):
                transaction.load(each.table, each.columns, each.rows)
            row = final_row(table, table_id, name, location)
            transaction.write(Changes(tables={table_id: row}))
            transaction.rows(statements.PUBLISHED, row.published_version, table_id, row.published_version)
            if _newest(folder) == table.last:
                _commit(transaction, txn_log, name, import_id)
                return table
        table = read_existing(folder, progress=progress)  # another writer committed meanwhile
    raise ForeignCommit(
        f"{folder.where} grew each of the {_TRIES} times that it was read",
        in_place="nothing was imported",
        hint="stop the writers of the table, then import it",
    )


def _entered(transaction: Transaction, txn_log: TxnLogWriter, name: str, location: str, now: int) -> int:
    made = transaction.rows(statements.CREATE_TABLE, name, location, now, True)
    if not made:
        require_free(txn_log.tables(), name, location)
        raise TableExists(
            f"the table {name} or its location {location} was taken meanwhile", in_place="nothing was imported"
        )
    return int(made[0][0])


def _newest(folder: LogFolder) -> int:
    """The newest version in the folder by the names of its files; a checkpoint can outlive its commit."""
    versions = [int(name[:20]) for name, _, _ in folder.names() if _COMMIT.fullmatch(name) or ".checkpoint." in name]
    return max(versions, default=-1)


def _commit(transaction: Transaction, txn_log: TxnLogWriter, name: str, import_id: str) -> None:
    try:
        transaction.commit()
    except CommitUncertain as error:
        for row in txn_log.store.rows(statements.TABLE_BY_NAME, name):
            first = txn_log.store.rows(statements.VERSION, row[0], row[3])
            if first and str(first[0][2]).startswith(import_id):
                return
        raise CommitStateUnknown(
            f"whether {name} was imported is not known: the log's database did not answer the commit",
            in_place="the table's folder is as it was",
            hint="`lockgate table list` shows whether it is there; importing again is safe",
        ) from error
