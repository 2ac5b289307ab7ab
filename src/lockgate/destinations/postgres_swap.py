"""From the staging table into the table, by column name, inside the transaction that commits it. What is counted are
the rows that the server wrote."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lockgate.destinations.postgres_columns import ORDINAL, Column, lacks_required
from lockgate.destinations.postgres_options import Wanted
from lockgate.destinations.postgres_session import Session
from lockgate.destinations.postgres_table import Table
from lockgate.errors import DuplicateKeyError
from lockgate.merging.order import parse_order_by
from lockgate.merging.strategy import MergeStrategy

_NAMED = 5  # keys that a message names
_RETURNS_OLD = 180000  # the first server whose RETURNING can tell an updated row from a new one


@dataclass(frozen=True)
class Counts:
    inserted: int = 0
    updated: int = 0
    deleted: int | None = 0


@dataclass(frozen=True)
class Swap:
    """One export's rows in the staging table `staged`, for `table`."""

    session: Session
    table: Table
    staged: str
    columns: Sequence[Column]
    wanted: Wanted
    version: int  # of the server

    def carry_out(self) -> Counts:
        match self.wanted.mode:
            case "APPEND":
                return Counts(inserted=self._append())
            case "REPLACE":
                return self._replace()
        return self._merge()

    # every row is new

    def _append(self) -> int:
        return self.session.run(self._insert())

    def _replace(self) -> Counts:
        # Of two writers that replace at once one must see what the other has brought, to remove it.
        if self.wanted.truncate:
            self.session.run(f"TRUNCATE {self.table.sql}")
            return Counts(inserted=self._append(), deleted=None)
        self._lock()
        deleted = self.session.run(f"DELETE FROM {self.table.sql}")
        return Counts(inserted=self._append(), deleted=deleted)

    # by key

    def _merge(self) -> Counts:
        actions = MergeStrategy(self.wanted.mode.lower()).actions
        indexed = self._can_use_index
        if actions.others == "remove" or not (indexed or self.wanted.mode == "UPDATE"):
            self._lock()
        if actions.deduplicates:
            self._keep_one_a_key()
        if actions.deduplicates or not (indexed and actions.matched == "replace" and actions.new == "insert"):
            self.refuse_duplicates()  # else the server does, when the second row comes to the same key
        deleted = self._delete_others() if actions.others == "remove" else 0
        if indexed and actions.new == "insert":
            if actions.matched == "keep":
                return Counts(inserted=self.session.run(f"{self._insert()} ON CONFLICT ({self._keys}) DO NOTHING"))
            inserted, updated = self._upsert()
            return Counts(inserted, updated, deleted)
        updated = self._update() if actions.matched == "replace" else 0
        inserted = self._insert_new() if actions.new == "insert" else 0
        return Counts(inserted, updated, deleted)

    @property
    def _can_use_index(self) -> bool:
        """Whether ON CONFLICT does it: by a unique index on the keys, with a value for all that a new row needs."""
        if not self.table.has_unique(self.wanted.keys) or lacks_required(self.columns, self.table):
            return False
        # Older servers cannot tell in a partitioned table which rows are new.
        return self.version >= _RETURNS_OLD or self.table.kind != "p"

    def _lock(self) -> None:
        """Keep other writers out, readers not: nobody may bring a key between our look and our write."""
        self.session.run(f"LOCK TABLE {self.table.sql} IN SHARE ROW EXCLUSIVE MODE")

    def _insert(self) -> str:
        names = ", ".join(c.sql for c in self.columns)
        values = ", ".join(c.value("s") for c in self.columns)
        system = " OVERRIDING SYSTEM VALUE" if any(c.only_the_server_writes for c in self.columns) else ""
        return f"INSERT INTO {self.table.sql} AS t ({names}){system} SELECT {values} FROM {self.staged} AS s"

    def _insert_new(self) -> int:
        return self.session.run(
            f"{self._insert()} WHERE NOT EXISTS (SELECT FROM {self.table.sql} AS o WHERE {self._same('s', 'o')})"
        )

    def _update(self) -> int:
        sets = ", ".join(f"{c.sql} = {c.value('s')}" for c in self._replaced)
        return self.session.run(
            f"UPDATE {self.table.sql} AS t SET {sets} FROM {self.staged} AS s WHERE {self._same('s', 't')}"
        )

    def _delete_others(self) -> int:
        return self.session.run(
            f"DELETE FROM {self.table.sql} AS t WHERE NOT EXISTS "
            f"(SELECT FROM {self.staged} AS s WHERE {self._same('s', 't')})"
        )

    def _upsert(self) -> tuple[int, int]:
        sets = ", ".join(f"{c.sql} = EXCLUDED.{c.sql}" for c in self._replaced)
        new = f"old.{self._key_columns[0].sql} IS NULL" if self.version >= _RETURNS_OLD else "t.xmax = 0"
        counts = self.session.rows(
            f"WITH done AS ({self._insert()} ON CONFLICT ({self._keys}) DO UPDATE SET {sets} RETURNING {new} AS new) "
            "SELECT count(*) FILTER (WHERE new) AS inserted, count(*) FILTER (WHERE NOT new) AS updated FROM done"
        )[0]
        return int(counts["inserted"]), int(counts["updated"])

    @property
    def _replaced(self) -> list[Column]:
        """What a matched row gets. Where the source has nothing but keys, a row still counts as updated."""
        return [c for c in self.columns if c.is_replaced] or [self._key_columns[0]]

    @property
    def _key_columns(self) -> list[Column]:
        by_name = {c.name: c for c in self.columns}
        return [by_name[key] for key in self.wanted.keys]

    @property
    def _keys(self) -> str:
        return ", ".join(c.sql for c in self._key_columns)

    def _same(self, staged: str, table: str) -> str:
        return " AND ".join(f"{table}.{c.sql} = {c.value(staged)}" for c in self._key_columns)

    # the source

    def _keep_one_a_key(self) -> None:
        """The first row by ORDER BY stays, of equal ones the last; so does the last row where there is no order."""
        keys = ", ".join(c.value("s") for c in self._key_columns)
        order = "".join(f"{term}, " for term in self._order())
        self.session.run(
            f"DELETE FROM {self.staged} AS d USING (SELECT s.ctid AS place, row_number() OVER "
            f"(PARTITION BY {keys} ORDER BY {order}s.{ORDINAL} DESC) AS rank FROM {self.staged} AS s) AS r "
            "WHERE d.ctid = r.place AND r.rank > 1"
        )

    def _order(self) -> list[str]:
        by_name = {c.name: c for c in self.columns}
        terms = []
        for key in parse_order_by(self.wanted.order_by):
            column = by_name[key.column]
            # As Spark and Arrow put text in order, whatever the database's language is.
            bytewise = ' COLLATE "C"' if column.fit.staged == "text" and column.fit.cast != "numeric" else ""
            value = column.value("s") if column.fit.cast == "numeric" else f"s.{column.staged_name}{bytewise}"
            direction = "DESC" if key.descending else "ASC"
            terms.append(f"{value} {direction} NULLS {'FIRST' if key.nulls_first else 'LAST'}")
        return terms

    def refuse_duplicates(self) -> None:
        """Two rows that the table takes for one: by a collation, by the spelling of a uuid."""
        shown = ", ".join(f"{c.value('s')}::text AS k{n}" for n, c in enumerate(self._key_columns))
        keys = ", ".join(c.value("s") for c in self._key_columns)
        found = self.session.rows(
            f"SELECT {shown} FROM {self.staged} AS s GROUP BY {keys} HAVING count(*) > 1 LIMIT {_NAMED}"
        )
        if found:
            examples = "; ".join(
                ", ".join(f"{c.name}={row[f'k{n}']}" for n, c in enumerate(self._key_columns)) for row in found
            )
            raise duplicate_keys(examples)


def duplicate_keys(examples: str) -> DuplicateKeyError:
    return DuplicateKeyError(
        f"source rows repeat a key, as the table compares it: {examples}",
        hint="leave one row a key, or use MODE DEDUPLICATE, with ORDER BY to say which row stays",
        in_place="nothing was written",
    )
