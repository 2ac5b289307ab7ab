"""The rows of a source by key: none without a key, one row a key, none that would change its partition."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lockgate.errors import DuplicateKeyError, PartitionMoveError, SchemaMismatchError
from lockgate.merging.key_index import KeyIndex, comparable
from lockgate.merging.keys import normalize_keys
from lockgate.merging.layouts import plain_table
from lockgate.merging.lossless import cast_exactly, shown
from lockgate.merging.nulls import null_rows
from lockgate.merging.order import SortKey, parse_order_by
from lockgate.merging.schema import refuse_null_key, require_columns, require_keys

_NAMED = 5  # keys that a message names
_IN_PLACE = "nothing was written"


def validate_no_null_keys(source_table: pa.Table, key_columns: str | Sequence[str]) -> None:
    """Refuse a source with a row that has NULL in a key column.

    >>> validate_no_null_keys(pa.table({"id": [1, None, None]}), ["id"])
    Traceback (most recent call last):
    lockgate.errors.NullKeyError: key column "id" is NULL in 2 of 3 source rows
    """
    keys = normalize_keys(key_columns)
    require_columns(source_table.schema, "source", keys, "key column")
    for key in keys:
        refuse_null_key(key, null_rows(source_table.column(key)), source_table.num_rows)
    require_keys(source_table.schema, "source", keys)  # last: a column of nothing but NULL has no type to blame


def refuse_duplicate_keys(table: pa.Table, key_columns: str | Sequence[str]) -> None:
    """Refuse a source in which two rows have one key: which of them should win is not ours to guess.

    >>> refuse_duplicate_keys(pa.table({"id": [1, 2, 1]}), "id")
    Traceback (most recent call last):
    lockgate.errors.DuplicateKeyError: 1 of 3 source rows repeats a key: id=1
    """
    keys = normalize_keys(key_columns)
    if len(keys) == 1 and _all_differ(table, keys):
        return
    index = _index(table, keys)
    if index.is_unique:
        return
    # Sliced, not taken: no kernel takes rows of every type that can be a key.
    examples = pa.concat_tables([table.select(keys).slice(row, 1) for row in index.duplicated_rows(_NAMED)])
    raise duplicate_keys(examples, keys, table.num_rows - index.distinct, table.num_rows)


def duplicate_keys(examples: pa.Table, keys: Sequence[str], surplus: int, rows: int) -> DuplicateKeyError:
    """The error about so many rows too many; `examples` has a few of the keys."""
    return DuplicateKeyError(
        f"{surplus} of {rows} source rows repeat{'s' if surplus == 1 else ''} a key: "
        f"{'; '.join(_shown_values(examples, keys, range(examples.num_rows)))}",
        hint="leave one row a key, or use strategy='deduplicate' with order_by to say which row stays",
        in_place=_IN_PLACE,
    )


def deduplicated(
    table: pa.Table, key_columns: str | Sequence[str], order_by: str | Sequence[str] | None = None
) -> pa.Table:
    """One row a key, in the order of the source: the first by `order_by` (the later row if two are equal in it),
    without `order_by` the last row.

    >>> rows = pa.table({"id": [1, 2, 1, 1], "day": [1, 1, 9, 3]})
    >>> deduplicated(rows, "id", "day DESC").to_pylist()
    [{'id': 2, 'day': 1}, {'id': 1, 'day': 9}]
    >>> deduplicated(rows, "id").to_pylist()
    [{'id': 2, 'day': 1}, {'id': 1, 'day': 3}]
    """
    keys = normalize_keys(key_columns)
    order = parse_order_by(() if order_by is None else order_by)
    require_columns(table.schema, "source", [key.column for key in order], "order_by column")
    table = plain_table(table)
    index = _index(table, keys)
    if index.is_unique:
        return table
    rows = pa.arange(0, table.num_rows)
    if order:
        by_order = _rows_in_order(table, order)
        places = pa.table({"code": index.codes.take(by_order), "place": rows})
        stay = by_order.take(_one_a_code(places, "place", "min"))
    else:
        stay = _one_a_code(pa.table({"code": index.codes, "row": rows}), "row", "max")
    # A filter keeps the order and the chunks; to take rows of long text may overflow.
    return table.filter(pc.is_in(rows, value_set=stay.cast(pa.int64())))


def validate_partition_column_immutability(
    source_table: pa.Table,
    target_table: pa.Table,
    key_columns: str | Sequence[str],
    partition_columns: str | Sequence[str],
) -> None:
    """Refuse source rows that have the key of a target row and another partition.

    >>> old, new = pa.table({"id": [1], "day": [4]}), pa.table({"id": [1], "day": [5]})
    >>> validate_partition_column_immutability(new, old, ["id"], ["day"])
    Traceback (most recent call last):
    lockgate.errors.PartitionMoveError: partition columns cannot change for existing keys: id=1 from day=4 to day=5
    """
    keys = normalize_keys(key_columns)
    partitions = [partition_columns] if isinstance(partition_columns, str) else list(partition_columns)
    for whose, schema in (("source", source_table.schema), ("target", target_table.schema)):
        require_keys(schema, whose, keys)
        require_columns(schema, whose, partitions, "partition column")
    if set(partitions) <= set(keys):
        return  # another partition is another key
    columns = list(dict.fromkeys([*keys, *partitions]))
    target = plain_table(target_table.select(columns))
    source = pa.table({name: cast_exactly(source_table.column(name), target[name].type, name) for name in columns})
    refuse_duplicate_keys(source, keys)
    found = _index(source, keys).find([target.column(key) for key in keys])
    old_rows = pc.indices_nonzero(pc.is_valid(found))
    new_rows = found.take(old_rows)
    changed = pa.repeat(False, len(old_rows))
    for name in partitions:
        old, new = target.column(name).take(old_rows), source.column(name).take(new_rows)
        changed = pc.or_(changed, pc.invert(_equal(comparable(old), comparable(new))))
    moved = pc.indices_nonzero(changed)
    if len(moved):
        raise _moved(source, target, keys, partitions, old_rows.take(moved), new_rows.take(moved))


def _moved(
    source: pa.Table, target: pa.Table, keys: list[str], partitions: list[str], old: pa.Array, new: pa.Array
) -> PartitionMoveError:
    first_old, first_new = old.slice(0, _NAMED).to_pylist(), new.slice(0, _NAMED).to_pylist()
    moves = zip(
        _shown_values(source, keys, first_new),
        _shown_values(target, partitions, first_old),
        _shown_values(source, partitions, first_new),
        strict=True,
    )
    more = f" and {len(old) - _NAMED} more" if len(old) > _NAMED else ""
    return PartitionMoveError(
        "partition columns cannot change for existing keys: "
        + "; ".join(f"{key} from {before} to {after}" for key, before, after in moves)
        + more,
        hint="leave the partition as it is, add the partition columns to the key, or use allow_partition_moves=True",
        in_place=_IN_PLACE,
    )


def _all_differ(table: pa.Table, keys: list[str]) -> bool:
    """Whether one column holds no value twice: sorting touches less memory than hashing does."""
    require_keys(table.schema, "source", keys)
    column = comparable(table.column(keys[0]))
    ordered = column.take(pc.sort_indices(column))
    same = pc.equal(ordered.slice(1), ordered.slice(0, max(len(ordered) - 1, 0)))
    # NaN does not equal NaN here; the index that counts them as one decides about floats.
    return not pa.types.is_floating(column.type) and not pc.any(same).as_py()


def _index(table: pa.Table, keys: list[str]) -> KeyIndex:
    require_keys(table.schema, "source", keys)
    return KeyIndex(plain_table(table.select(keys)))


def _one_a_code(table: pa.Table, column: str, choice: str) -> pa.ChunkedArray:
    return table.group_by("code").aggregate([(column, choice)])[f"{column}_{choice}"]


def _rows_in_order(table: pa.Table, order: Sequence[SortKey]) -> pa.Array:
    """Row numbers by `order`; of rows that are equal in it the later first. NaN is the largest value, as in Spark."""
    columns: dict[str, Any] = {}
    directions: list[tuple[str, str]] = []

    def add(values: Any, descending: bool) -> None:
        name = str(len(columns))
        columns[name] = values
        directions.append((name, "descending" if descending else "ascending"))

    for key in order:
        values = comparable(table.column(key.column))
        add(pc.is_null(values), key.nulls_first)
        if pa.types.is_floating(values.type):
            add(pc.is_nan(values), key.descending)
        if not pa.types.is_null(values.type):
            add(values, key.descending)
    add(pa.arange(0, table.num_rows), True)
    try:
        return pc.sort_indices(pa.table(columns), sort_keys=directions)
    except (pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        raise _unsortable(table.schema, order) from error


def _unsortable(schema: pa.Schema, order: Sequence[SortKey]) -> SchemaMismatchError:
    types = ", ".join(f'"{key.column}" ({schema.field(key.column).type})' for key in order)
    return SchemaMismatchError(
        f"rows cannot be put in order by {types}",
        hint="order by numbers, text, bytes, booleans, dates or times",
        in_place=_IN_PLACE,
    )


def _equal(left: pa.Array, right: pa.Array) -> pa.Array:
    """Row by row, NULL equal to NULL and NaN to NaN."""
    same = pc.fill_null(pc.equal(left, right), False)
    if pa.types.is_floating(left.type):
        same = pc.or_(same, pc.fill_null(pc.and_(pc.is_nan(left), pc.is_nan(right)), False))
    return pc.or_(same, pc.and_(pc.is_null(left), pc.is_null(right)))


def _shown_values(table: pa.Table, columns: Sequence[str], rows: Iterable[int]) -> list[str]:
    return [", ".join(f"{name}={shown(table.column(name)[row])}" for name in columns) for row in rows]
