"""Publishing into a table: COPY, swap and COMMIT as one transaction, and what becomes of it put on record."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from lockgate.config import Profile
from lockgate.destinations.postgres_columns import Column, columns_for
from lockgate.destinations.postgres_commit import CommitRecord, Intent, server_identity, settle
from lockgate.destinations.postgres_errors import advice, told
from lockgate.destinations.postgres_inspection import find_table, new_table
from lockgate.destinations.postgres_number import lasting_number
from lockgate.destinations.postgres_options import Wanted
from lockgate.destinations.postgres_parsing import unreadable
from lockgate.destinations.postgres_rows import staged_schema
from lockgate.destinations.postgres_session import ServerError, Session, session, version_of
from lockgate.destinations.postgres_staging import ParallelFill, StagingTable
from lockgate.destinations.postgres_swap import Counts, Swap, duplicate_keys
from lockgate.destinations.protocol import Outcome
from lockgate.errors import LockgateError, PublishError
from lockgate.storage.local import LocalStorage

_TRIES = 4
# Another transaction was in the way: a serialization failure, a deadlock, a table made at the same moment.
_AGAIN = ("40001", "40P01", "42P07")
_SAME_ROW_TWICE = "21000"
_NOTHING = "nothing was written"
_ENGINE = "postgres"


@dataclass(frozen=True)
class Publication:
    """One export's staged rows and the table they go to."""

    wanted: Wanted
    profile: Profile
    storage: LocalStorage
    area: Path
    parts: Sequence[Path]

    @property
    def record(self) -> CommitRecord:
        return CommitRecord(self.area)

    def settled(self, *, patience: float | None = None) -> Outcome | None:
        """What an earlier try has done; None: nothing, so that it may be done again."""
        intent = self.record.read()
        if intent is None:
            return None
        if not intent.done:
            waits = self.wanted.settle_timeout if patience is None else patience
            if settle(intent, self.profile, self.wanted.connection, waits) == "aborted":
                self.record.forget(self.storage)
                return None
            self.record.mark_done(self.storage, intent)
        return intent.outcome

    def publish(self) -> Outcome:
        done = self.settled()
        if done is not None:
            return done
        for left in reversed(range(_TRIES)):
            try:
                return self._try()
            except ServerError as error:
                if error.sqlstate not in _AGAIN or not left:
                    raise self._failed(error) from error
        raise AssertionError("the last try returns or raises")

    def _try(self) -> Outcome:
        fill: ParallelFill | None = None
        try:
            with session(self.profile, self.wanted.connection) as opened:
                table = StagingTable.of(self.wanted)
                if table.schema is not None:
                    columns, _ = self._columns(opened)
                    fill = ParallelFill(table, self.profile, self.wanted, columns, self._numbered)
                    fill.run(self.parts)
                identity = server_identity(opened)
                with self._transaction(opened):
                    counts = self._write(opened, table)
                    if counts is None:
                        nothing = Intent("", identity, Outcome(0, 0, 0, engine=_ENGINE), done=True)
                        self.record.write(self.storage, nothing)
                        return nothing.outcome
                    outcome = Outcome(counts.inserted, counts.updated, counts.deleted, engine=_ENGINE)
                    number = lasting_number(opened, version_of(opened), self.profile, self.wanted.connection)
                    intent = Intent(number, identity, outcome)
                    self.record.write(self.storage, intent)
                return self._commit(opened, intent)
        except BaseException:
            if fill is not None:
                fill.clean_up()
            raise

    @contextmanager
    def _transaction(self, opened: Session) -> Iterator[None]:
        """All but its COMMIT. What fails inside is rolled back, and no record of it stays."""
        opened.run("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE")
        try:
            self._settings(opened)
            yield
        except BaseException:
            with suppress(ServerError):
                opened.run("ROLLBACK")
            self.record.forget(self.storage)
            raise

    def _settings(self, opened: Session) -> None:
        """For this transaction alone, so that a pooled connection is given back as it was."""
        given = {
            "TimeZone": "UTC",
            "row_security": "off",  # a policy that hides rows is an error, not a REPLACE of some of them
            "lock_timeout": f"{self.wanted.lock_timeout}s" if self.wanted.lock_timeout else None,
            "statement_timeout": f"{self.wanted.statement_timeout}s" if self.wanted.statement_timeout else None,
        }
        for name, value in given.items():
            if value is not None:
                opened.rows("SELECT pg_catalog.set_config($1::text, $2::text, true) AS v", name, value)
        # What is reported as written survives a crash of the server.
        opened.rows(
            "SELECT pg_catalog.set_config('synchronous_commit', 'on', true) AS v "
            "WHERE pg_catalog.current_setting('synchronous_commit') = 'off'"
        )

    def _columns(self, opened: Session) -> tuple[list[Column], bool]:
        table = find_table(opened, self.wanted)
        return columns_for(staged_schema(self.parts), table, self.wanted.keys, self.wanted.mode), table is not None

    def _write(self, opened: Session, staging: StagingTable) -> Counts | None:
        """None: there is no table, and an UPDATE makes none."""
        table = find_table(opened, self.wanted)
        schema = staged_schema(self.parts)
        if table is None:
            if self.wanted.mode == "UPDATE":
                return None
            opened.run(new_table(opened, self.wanted, schema))
            table = find_table(opened, self.wanted)
            assert table is not None, "it was made just now"
        columns = columns_for(schema, table, self.wanted.keys, self.wanted.mode)
        if staging.schema is None:
            staging.make(opened, columns, numbered=self._numbered)
            staging.fill(opened, self.parts, columns, numbered=self._numbered)
        if self.wanted.keyed:
            opened.run(f"ANALYZE {staging.sql}")  # else the server guesses how many rows are to be joined
        swap = Swap(opened, table, staging.sql, columns, self.wanted, version_of(opened))
        counts = self._swapped(opened, swap)
        if staging.schema is not None:
            staging.drop(opened)
        return counts

    def _swapped(self, opened: Session, swap: Swap) -> Counts:
        """Swap; what is refused is looked up in the staging table, which is still there."""
        opened.run("SAVEPOINT swap")
        try:
            return swap.carry_out()
        except ServerError as error:
            if error.lost:
                raise
            opened.run("ROLLBACK TO SAVEPOINT swap")
            if error.sqlstate == _SAME_ROW_TWICE:
                swap.refuse_duplicates()
                raise duplicate_keys(error.message) from error
            if (
                error.sqlstate
                and error.sqlstate.startswith("22")
                and (found := unreadable(opened, swap.staged, swap.columns))
            ):
                raise ServerError(f"{found}: {error.message}", error.sqlstate, error.fields) from error
            raise

    @property
    def _numbered(self) -> bool:
        return self.wanted.mode == "DEDUPLICATE"

    def _commit(self, opened: Session, intent: Intent) -> Outcome:
        try:
            opened.run("COMMIT")
        except ServerError:
            opened.close()
            # The error alone proves nothing: the server may have committed and died before it said so.
            done = self.settled()
            if done is None:
                raise
            return done
        self.record.mark_done(self.storage, intent)
        return intent.outcome

    def _failed(self, error: ServerError) -> LockgateError:
        return PublishError(
            f"{self.wanted.connection}: {self.wanted.shown}: {told(error)}", in_place=_NOTHING, hint=advice(error)
        )
