"""Taking a transaction to its end, and finding out what became of it where the answer was lost."""

from __future__ import annotations

from collections.abc import Sequence

from lockgate.errors import CommitStateUnknown, DatabaseError, LogError, TimeoutError, ValidationError
from lockgate.txlog.appending import append
from lockgate.txlog.committer import Request, apply
from lockgate.txlog.store import CommitUncertain, DuplicateFile, Store


def settle(store: Store, requests: Sequence[Request], *, step_by_step: bool = False) -> None:
    """Commit these requests in one transaction. Each ends with its versions or its error."""
    try:
        if not step_by_step and append(store, requests):
            return
        with store.transaction() as transaction:
            if apply(transaction, requests):
                transaction.commit()
    except CommitUncertain as lost:
        if lost.by_itself:
            _again(store, requests)
        else:
            _look_up(store, [request for request in requests if request.error is None], lost)
    except DuplicateFile as error:
        if len(requests) > 1:
            _one_by_one(store, requests)
        else:
            _forget(requests)
            requests[0].error = _named(store, requests[0], error)
    except LogError as error:
        if len(requests) > 1 and not isinstance(error, TimeoutError):
            _one_by_one(store, requests)
        else:
            _forget(requests)
            for request in requests:
                request.error = request.error or error


def _one_by_one(store: Store, requests: Sequence[Request]) -> None:
    """One of them was refused by the database; the others must not suffer for it."""
    for request in requests:
        if request.error is None:
            _forget([request])
            settle(store, [request])


def _forget(requests: Sequence[Request]) -> None:
    for request in requests:
        request.versions = {}
        request.rebased = 0


def _again(store: Store, requests: Sequence[Request]) -> None:
    """Commit what may have been committed already. The database may come to the lost statement at any time, so asking
    for it proves nothing; but whichever is second finds the first by its txn_id, and changes nothing."""
    settle(store, requests, step_by_step=True)
    for request in requests:
        if isinstance(request.error, (DatabaseError, TimeoutError)):
            request.error = _unknown(store, request, request.error)


def _unknown(store: Store, request: Request, error: LogError) -> CommitStateUnknown:
    tables = ", ".join(request.tables)
    return CommitStateUnknown(
        f"the log {store.address} was lost while it committed {request.txn_id} to {tables}, and cannot be asked what "
        f"became of it: {error.message}",
        txn_id=request.txn_id,
        in_place="the commit went through whole, or not at all; its files were left where they are",
        hint=f"when the log is back, commit again with txn_id={request.txn_id!r}: it commits at most once",
    )


def _look_up(store: Store, requests: Sequence[Request], lost: CommitUncertain) -> None:
    """Ask on a new connection. The tables' locks come first: as long as the lost transaction lives, it holds them."""
    names = sorted({name for request in requests for name in request.tables})
    try:
        with store.transaction() as transaction:
            locked = transaction.lock(names, [request.txn_id for request in requests])
    except (DatabaseError, TimeoutError) as error:
        for request in requests:
            _forget([request])
            request.error = _unknown(store, request, error)
        return
    for request in requests:
        done = locked.done.get(request.txn_id, {})
        found = {name: done[row.id] for name, row in locked.tables.items() if row.id in done}
        if found:
            request.versions = found
        else:
            _forget([request])
            request.error = DatabaseError(
                f"the log {store.address} was lost while it committed to {', '.join(request.tables)}: "
                f"{lost.__cause__ or 'no reply'}",
                in_place="nothing was committed: the log was asked",
                hint="commit again",
            )


def _named(store: Store, request: Request, error: DuplicateFile) -> LogError:
    """Say which file lives already."""
    try:
        with store.transaction() as transaction:
            locked = transaction.lock(request.tables, [])
            for part in request.parts:
                row = locked.tables[part.commit.table]
                hashes = [parts[0] for parts in part.add_parts]
                if part.add_table is not None:
                    hashes += part.add_table.column("path_hash").to_pylist()
                paths = sorted(transaction.live(row.id, hashes).values())
                removed = {each.path for each in part.removes}
                paths = [path for path in paths if path not in removed] or paths
                if paths:
                    more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
                    return ValidationError(
                        f"the file {paths[0]!r}{more} is in {row.name} already",
                        in_place="nothing was committed",
                        hint="a file is added once; write new data under a new name",
                    )
    except LogError as second:
        return second
    failure = ValidationError("a file is added that is in the table already", in_place="nothing was committed")
    failure.__cause__ = error
    return failure
