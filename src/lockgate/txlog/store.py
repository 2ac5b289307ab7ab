"""What a database must do to hold the log: one protocol, which the SQLite and the PostgreSQL store keep."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import pyarrow as pa

    from lockgate.txlog.appending import Append

LIVE = 9223372036854775807  # `removed_version` of a file that lives
FEW = 10  # files of a transaction from which on COPY is faster than INSERT: measured
MANY = 500  # adds from which on an Arrow table is faster than records: measured
Row = tuple[Any, ...]


@dataclass(slots=True)
class TableRow:
    """A row of dl_tables."""

    id: int
    name: str
    location: str
    current_version: int
    last_timestamp: int
    metadata_version: int
    protocol_version: int
    publish: bool
    published_version: int

    def as_update(self) -> Row:
        """What `statements.UPDATE_TABLE` takes."""
        return (self.current_version, self.last_timestamp, self.metadata_version, self.protocol_version, self.id)


ADD_COLUMNS = (
    "table_id", "added_version", "removed_version", "ordinal", "path_hash", "size", "modification_time", "data_change",
    "path", "partition_values", "stats", "tags", "deletion_vector", "extra",
)  # fmt: skip


@dataclass(slots=True)
class Changes:
    """The rows that one transaction writes. Tables are given by their rows as they become."""

    tables: dict[int, TableRow] = field(default_factory=dict)
    versions: list[Row] = field(default_factory=list)  # table_id, version, timestamp, txn_id, blind_append, head
    adds: list[Row] = field(default_factory=list)  # ADD_COLUMNS
    # table_id, version, first ordinal, and a table with the other columns of ADD_COLUMNS: for large commits
    add_tables: list[tuple[int, int, int, pa.Table]] = field(default_factory=list)
    removed: list[Row] = field(default_factory=list)  # version, table_id, path_hash
    removes: list[Row] = field(default_factory=list)  # table_id, version, ordinal, deletion_timestamp, path, line
    metadata: list[Row] = field(default_factory=list)  # table_id, version, line
    protocols: list[Row] = field(default_factory=list)  # table_id, version, line
    txns: list[Row] = field(default_factory=list)  # table_id, app_hash, version, line
    domains: list[Row] = field(default_factory=list)  # table_id, domain_hash, version, line
    notes: list[Row] = field(default_factory=list)  # name, version, txn_id, note

    @property
    def has_adds(self) -> bool:
        return bool(self.adds or self.add_tables)

    @property
    def is_large(self) -> bool:
        """Whether its files are too many for single INSERTs."""
        return bool(self.add_tables) or len(self.adds) >= FEW


class DuplicateFile(Exception):
    """A file that is to be added lives already. Raised by `write`; the transaction cannot go on."""


class CommitUncertain(Exception):
    """The database was asked to commit and did not answer. `by_itself`: in one statement, of which nobody knows when
    the database comes to it."""

    def __init__(self, *, by_itself: bool = False) -> None:
        super().__init__()
        self.by_itself = by_itself


class Transaction(Protocol):
    """One write transaction. It ends with `commit`, or is rolled back when its block is left."""

    def lock(self, names: Sequence[str], txn_ids: Sequence[str]) -> Locked:
        """Lock the rows of these tables, in the order of their ids, and tell what is there now."""
        ...

    def rows(self, statement: str, *values: Any) -> list[Row]:
        """What a statement of `statements.py` gives."""
        ...

    def live(self, table_id: int, hashes: Sequence[int]) -> dict[int, str]:
        """The paths of the live files with these hashes."""
        ...

    def run(self, statement: str, *values: Any) -> None:
        """A statement that gives nothing."""
        ...

    def load(self, table: str, columns: Sequence[str], rows: Iterable[Row]) -> None:
        """Put many rows into one of the log's tables, as they come. The tables must have been locked."""
        ...

    def write(self, changes: Changes) -> None:
        """Write it all. May be left to `commit`, which then raises in its place."""
        ...

    def commit(self) -> None:
        """Make it durable. `CommitUncertain` where the answer was lost."""
        ...


@dataclass(slots=True)
class Locked:
    tables: dict[str, TableRow]
    now: int  # milliseconds since 1970, read after the locks were had
    done: dict[str, dict[int, int]]  # txn_id -> table_id -> version, of those that went through before


class Store(Protocol):
    """A database with the log's tables."""

    address: str  # as it may be shown
    appends: bool  # whether `append` saves anything

    def open(self, *, create: bool) -> None:
        """Connect, and refuse a schema that this version does not know. `create`: bring the schema up to date."""
        ...

    def schema_version(self) -> int: ...

    def migrate(self) -> int:
        """Bring the schema up to date; returns its version."""
        ...

    def transaction(self) -> AbstractContextManager[Transaction]: ...

    def append(self, given: Append) -> int | None:
        """Commit all of it in one statement; the version of the first. None where something is not as it expects, and
        nothing was done. `CommitUncertain` where the answer was lost."""
        ...

    def rows(self, statement: str, *values: Any) -> list[Row]:
        """What one reading statement of `statements.py` gives."""
        ...

    def change(self, statement: str, *values: Any) -> list[Row]:
        """Run one short statement in a transaction of its own; what it returns."""
        ...

    def files_at(self, table_id: int, version: int, *, extra: bool = False) -> pa.Table:
        """The live files of a version, with the columns of `files.files_schema()`, and `extra` where asked for."""
        ...

    def close(self) -> None: ...
