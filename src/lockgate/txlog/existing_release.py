"""Giving a table back: its `_delta_log` is complete, and the log forgets it."""

from __future__ import annotations

from lockgate.errors import CommitStateUnknown, LogError, TableNotFound
from lockgate.txlog.records import TableRecord
from lockgate.txlog.store import CommitUncertain, TableRow, Transaction
from lockgate.txlog.writer import TxnLogWriter

_TRIES = 5
_FORGET = tuple(
    f"DELETE FROM {table} WHERE table_id = ?"
    for table in (
        "dl_add_files",
        "dl_remove_files",
        "dl_metadata_updates",
        "dl_protocol_updates",
        "dl_txn_actions",
        "dl_domain_metadata",
        "dl_table_versions",
        "dl_tables",
    )
)


def release_table(txn_log: TxnLogWriter, name: str) -> TableRecord:
    """Publish what is pending, then take the table out of the log. Returns what it was."""
    for _ in range(_TRIES):
        record = txn_log.table(name)
        if record.current_version < 0:
            raise LogError(
                f"{name} has no version, so there is no Delta table to release",
                in_place=f"{name} is in the log as before",
            )
        try:
            txn_log.publisher.publish(name)
        except LogError as error:
            waiting = txn_log.table(name)
            error.in_place = (
                f"{name} is in the log as before, at version {waiting.current_version}; published are the versions "
                f"up to {waiting.published_version}"
            )
            raise
        with txn_log.store.transaction() as transaction:
            row = transaction.lock([name], []).tables.get(name)
            if row is None:
                raise TableNotFound(f"the log has no table {name} any more", in_place="nothing was changed")
            if row.published_version == row.current_version:
                _forget(transaction, row)
                return record
    raise LogError(
        f"{name} grew each of the {_TRIES} times that it was to be released",
        in_place=f"{name} is in the log as before",
        hint="stop its writers, then release it",
    )


def _forget(transaction: Transaction, row: TableRow) -> None:
    for statement in _FORGET:
        transaction.run(statement, row.id)
    try:
        transaction.commit()
    except CommitUncertain as error:
        raise CommitStateUnknown(
            f"whether {row.name} was released is not known: the log's database did not answer the commit",
            in_place=f"all versions of it are published at {row.location}",
            hint="`lockgate table list` shows whether it is still there; releasing again is safe",
        ) from error
