"""Rows of many files in one order, written as files of consecutive rows; not all of them are in memory at once.

The columns of the order are read first, and alone: they say which row goes where. Then all columns are read once, and
each row is put aside with the others of its new file; at last each new file is put in order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from lockgate.errors import ArgumentError
from lockgate.storage.local import explained

_POSITION = "\0position"  # no column of a table is called so
_BITS = 62  # of a place on the curve, over all columns
_MOST_BITS = 20  # of one column


@dataclass(frozen=True)
class Ordering:
    columns: tuple[str, ...]
    is_zorder: bool

    @classmethod
    def of(
        cls, sort_by: Sequence[str], zorder: Sequence[str], schema: pa.Schema, partition_columns: Sequence[str]
    ) -> Ordering | None:
        """What was asked for; None where it is no order."""
        sort_by = (sort_by,) if isinstance(sort_by, str) else tuple(sort_by)
        zorder = (zorder,) if isinstance(zorder, str) else tuple(zorder)
        if sort_by and zorder:
            raise ArgumentError("give sort_by or zorder, not both", in_place="nothing was written")
        columns = sort_by or zorder
        for column in columns:
            problem = None
            if column not in schema.names:
                problem = f"the table has no column {column!r}; its columns are {', '.join(schema.names)}"
            elif column in partition_columns:
                problem = f"{column!r} is a partition column, which is the same in all rows of a file"
            elif pa.types.is_nested(schema.field(column).type):
                problem = f"rows cannot be put in the order of {column!r}, which is {schema.field(column).type}"
            elif columns.count(column) > 1:
                problem = f"the column {column!r} is named twice"
            if problem:
                raise ArgumentError(problem, in_place="nothing was written")
        return cls(tuple(columns), bool(zorder)) if columns else None

    def positions(self, keys: pa.Table) -> pa.Array:
        """Where each row goes. Rows that are equal stay in their order."""
        if self.is_zorder and len(self.columns) > 1:
            order = pc.sort_indices(_curve(keys))
        else:
            order = pc.sort_indices(keys, sort_keys=[(c, "ascending") for c in self.columns])
        return pc.sort_indices(order).cast(pa.int64())  # of a permutation: its inverse


def in_order(
    rows: ds.Dataset, schema: pa.Schema, ordering: Ordering, count: int, folder: Path
) -> Iterator[pa.RecordBatchReader]:
    """The rows for each of `count` files, one after the other. `folder` takes what does not fit into memory."""
    positions = ordering.positions(rows.to_table(columns=list(ordering.columns)))
    per_file = max(1, -(-len(positions) // count))
    scanned = rows.scanner(columns=schema.names, batch_readahead=2, fragment_readahead=1).to_reader()
    kept = scanned.schema.append(pa.field(_POSITION, pa.int64()))
    paths = [folder / f"rows-{k}.arrow" for k in range(count)]
    with ExitStack() as stack:
        with explained("write to", folder):
            files = [stack.enter_context(pa.OSFile(str(path), "wb")) for path in paths]
            writers = [stack.enter_context(pa.ipc.new_file(file, kept)) for file in files]
        start = 0
        for batch in scanned:
            here = positions.slice(start, batch.num_rows)
            start += batch.num_rows
            _put_aside(pa.Table.from_batches([batch]).append_column(_POSITION, here), per_file, writers, folder)
    for path in paths:
        with explained("read", path), pa.OSFile(str(path), "rb") as file:
            table = pa.ipc.open_file(file).read_all()
        path.unlink()
        yield table.sort_by(_POSITION).drop_columns([_POSITION]).to_reader()


def _put_aside(rows: pa.Table, per_file: int, writers: Sequence[Any], folder: Path) -> None:
    number = pc.divide(rows.column(_POSITION), per_file)
    for k in pc.unique(number).to_pylist():
        with explained("write to", folder):
            writers[k].write_table(rows.filter(pc.equal(number, k)))


def _curve(keys: pa.Table) -> pa.Array:
    """Each row's place on the Z-order curve: the bits of its ranks in the columns, in turn."""
    bits = min(_BITS // keys.num_columns, _MOST_BITS)
    places = []
    for column in keys.columns:
        rank = pc.rank(column, sort_keys="ascending", tiebreaker="dense").cast(pa.int64())
        highest = max(pc.max(rank).as_py() or 1, 1)
        # Scaled, so that every column has the same weight.
        places.append(pc.divide(pc.multiply(pc.subtract(rank, 1), 2**bits), highest))
    curve = pa.repeat(pa.scalar(0, pa.int64()), keys.num_rows)
    for bit in reversed(range(bits)):
        for place in places:
            one = pc.bit_wise_and(pc.shift_right(place, bit), 1)
            curve = pc.bit_wise_or(pc.shift_left(curve, 1), one)
    return curve
