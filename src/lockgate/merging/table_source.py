"""A source that is held in memory as an Arrow table, and the rows that were found for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import pyarrow as pa
import pyarrow.compute as pc

from lockgate.merging.key_index import comparable
from lockgate.merging.protocol import DataFile, FileMatches, Found
from lockgate.merging.pruning import KeyRanges
from lockgate.merging.schema import fit
from lockgate.merging.source_keys import deduplicated, refuse_duplicate_keys, validate_no_null_keys
from lockgate.merging.taking import rows_of, with_room


@dataclass(frozen=True)
class TableSource:
    """The rows as they were given."""

    table: pa.Table

    @property
    def schema(self) -> pa.Schema:
        return self.table.schema

    @property
    def rows(self) -> int:
        return int(self.table.num_rows)

    def checked(self, key_columns: tuple[str, ...]) -> TableSource:
        validate_no_null_keys(self.table, key_columns)
        refuse_duplicate_keys(self.table, key_columns)
        return self

    def deduplicated(self, key_columns: tuple[str, ...], order_by: Sequence[str]) -> TableSource:
        validate_no_null_keys(self.table, key_columns)
        return TableSource(deduplicated(self.table, key_columns, order_by))

    def fitted(self, schema: pa.Schema, key_columns: tuple[str, ...], partition_columns: tuple[str, ...]) -> SourceRows:
        return SourceRows(with_room(fit(self.table, schema)).combine_chunks(), key_columns, partition_columns)


@dataclass(frozen=True, slots=True)
class SourceRows:
    """The source made ready: columns and types of the dataset, keys checked, one row a key."""

    table: pa.Table  # all columns of the dataset, partition columns included
    key_columns: tuple[str, ...]
    partition_columns: tuple[str, ...] = ()

    @property
    def keys(self) -> pa.Table:
        return self.table.select(list(self.key_columns))

    def key_bounds(self) -> KeyRanges:
        return KeyRanges(self.keys)

    def shown_moves(self, matches: Sequence[FileMatches], most: int) -> list[str]:
        shown: list[str] = []
        for found in matches:
            own = cast(Matches, found)
            if own.moving and len(shown) < most:
                rows = self.table.take(own.source_rows.filter(own.leaving).slice(0, most - len(shown)))
                shown += shown_moves(rows, found.file, self.key_columns, self.partition_columns)
        return shown


def shown_moves(
    rows: pa.Table, file: DataFile, key_columns: Sequence[str], partition_columns: Sequence[str]
) -> list[str]:
    """Source rows that do not belong where their key is, as a message names them."""
    said = []
    for row in rows.select([*key_columns, *(c for c in partition_columns if c not in key_columns)]).to_pylist():
        key = ", ".join(f"{k}={row[k]!r}" for k in key_columns)
        to = ", ".join(f"{p}={row[p]!r}" for p in partition_columns)
        said.append(f"{key} from {file.name.rpartition('/')[0]} to {to}")
    return said


@dataclass(frozen=True)
class Matches:
    """Rows of one file whose key is in the source: row number in the file, in order, and row number in the source."""

    file: DataFile
    rows: pa.Array  # int64, ascending
    source_rows: pa.Array  # int64
    changed: pa.Array | None = None  # bool: whether the rows differ; None where it was not asked
    leaving: pa.Array | None = None  # bool: whether the source row belongs to another partition; None: none does

    @property
    def count(self) -> int:
        return len(self.rows)

    @property
    def moving(self) -> int:
        return int(self.leaving.true_count) if self.leaving is not None else 0

    @property
    def replaced(self) -> int:
        return int(self.replacing.true_count)

    @property
    def replacing(self) -> pa.Array:
        """Of each row, whether it is replaced where it is."""
        staying = self.staying
        return staying if self.changed is None else pc.and_(staying, self.changed)

    @property
    def staying(self) -> pa.Array:
        if self.leaving is None:
            return pa.repeat(pa.scalar(True), len(self.rows))
        return pc.invert(self.leaving)

    def to_table(self) -> pa.Table:
        """All but the file, for another process."""
        columns = {"row": self.rows, "source_row": self.source_rows, "changed": self.changed, "leaving": self.leaving}
        return pa.table({name: column for name, column in columns.items() if column is not None})


def matches_of(file: DataFile, table: pa.Table) -> Matches:
    """The matches that were made into this table."""
    columns = {name: table.column(name).combine_chunks() for name in table.column_names}
    return Matches(file, columns["row"], columns["source_row"], columns.get("changed"), columns.get("leaving"))


@dataclass(frozen=True)
class RowChange:
    """The rows of one file that change, by number, ascending."""

    rows: pa.Array  # to replace
    source_rows: pa.Array  # by these rows of the source
    dropped: pa.Array  # to leave out
    kept: pa.Array | None  # matched, and equal to their source row; None where that was not asked

    @classmethod
    def of(cls, found: FileMatches | None) -> RowChange:
        if found is None:
            nothing = pa.array([], pa.int64())
            return cls(nothing, nothing, nothing, None)
        own = cast(Matches, found)
        return cls(
            rows=own.rows.filter(own.replacing),
            source_rows=own.source_rows.filter(own.replacing),
            dropped=own.rows.filter(own.leaving) if own.leaving is not None else own.rows.slice(0, 0),
            kept=None if own.changed is None else own.rows.filter(pc.and_not(own.staying, own.changed)),
        )


def found_rows(matches: Sequence[Matches], new_rows: pa.Array | None, source: SourceRows) -> Found:
    """What was found, with the rows marked that leave their partition."""
    marked = [
        Matches(m.file, m.rows, m.source_rows, m.changed, moved_rows(m.file, source.table.take(m.source_rows), source))
        if _can_move(m.file, source)
        else m
        for m in matches
    ]
    return Found(marked, 0 if new_rows is None else len(new_rows), new_rows)


def _can_move(file: DataFile, source: SourceRows) -> bool:
    return any(c in file.partition and c not in source.key_columns for c in source.partition_columns)


def moved_rows(file: DataFile, rows: pa.Table, source: SourceRows) -> pa.Array:
    """Of source rows that match rows of a file, whether they belong to another partition than the file's."""
    result = pa.repeat(pa.scalar(False), rows.num_rows)
    for name in source.partition_columns:
        if name in source.key_columns or name not in file.partition:
            continue
        column = rows.column(name)
        theirs = comparable(column)
        mine = comparable(pa.repeat(pa.scalar(file.partition[name], column.type), 1))[0]
        same = pc.is_null(theirs) if not mine.is_valid else pc.fill_null(pc.equal(theirs, mine), False)
        result = pc.or_(result, pc.invert(same))
    return result


def unmatched(matches: Sequence[Matches], rows: int) -> pa.Array:
    """The rows of a source of so many rows that no match names."""
    everything = pa.arange(0, rows)
    if not matches:
        return everything
    seen = pa.concat_arrays([m.source_rows for m in matches])
    return everything.filter(pc.inverse_permutation(seen, max_index=rows - 1).is_null())


def added_rows(found: Found, source: SourceRows) -> pa.Table:
    """The source rows that go to new files: the new ones, and those that leave their partition."""
    numbers = [found.new_rows] if found.new_rows is not None else []
    numbers += [
        m.source_rows.filter(m.leaving) for m in cast(Sequence[Matches], found.matches) if m.leaving is not None
    ]
    return rows_of(source.table, pa.concat_arrays(numbers) if numbers else pa.array([], pa.int64()))
