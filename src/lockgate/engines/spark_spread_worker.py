"""What a worker of Spark does to the files of the dataset when it is given the keys or the rows it needs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, TypedDict

import pyarrow as pa

from lockgate.engines.arrow import compared
from lockgate.engines.arrow_find import SortedKeys, find_rows
from lockgate.engines.packing import packed, unpacked
from lockgate.engines.spark_worker import FileToRead, FileToWrite, numbers, telling_each, written_again
from lockgate.merging.table_source import SourceRows, matches_of

_ORDER = pa.struct([("file", pa.int32()), ("matches", pa.binary()), ("rows", pa.binary())])
ORDERS = pa.schema([("orders", pa.list_(_ORDER))])  # one row a task


class Order(TypedDict):
    """Work on one file: its matches, and the source rows that they name, packed."""

    file: int
    matches: bytes
    rows: bytes


def find(tasks: Sequence[Sequence[tuple[int, FileToRead]]], keys: SortedKeys) -> Any:
    """The rows of a task's files that have one of the keys, by file."""
    schema = keys.schema
    carried = packed(pa.table([keys.order, *keys.columns], names=[str(i) for i in range(len(schema) + 1)]))

    def found(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        order, *columns = (column.combine_chunks() for column in unpacked(carried).columns)
        here = SortedKeys(schema, columns, order)
        for task in numbers(batches, "id"):
            by_name = {file.name: number for number, file in tasks[task]}
            for matches in find_rows([file.opened() for _, file in tasks[task]], here):
                yield pa.record_batch(
                    {
                        "file": pa.array([by_name[matches.file.name]], pa.int32()),
                        "found": pa.array([packed(matches.to_table())], pa.binary()),
                    }
                )

    return lambda batches: telling_each(found, batches)


def compare(files: Mapping[int, FileToRead], key_columns: tuple[str, ...]) -> Any:
    """Of each matched row of a file, whether it differs from its source row."""

    def changed(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for number, matches, rows in _orders(batches):
            found = compared(matches_of(files[number].opened(), matches), SourceRows(rows, key_columns))
            yield pa.record_batch(
                {
                    "file": pa.array([number], pa.int32()),
                    "changed": pa.array([packed(pa.table({"changed": found.changed}))], pa.binary()),
                }
            )

    return lambda batches: telling_each(changed, batches)


def rewrite(jobs: Mapping[int, FileToWrite]) -> Any:
    """Each file, written again with its replaced rows."""

    def rewritten(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for number, matches, rows in _orders(batches):
            yield written_again(number, jobs[number], matches_of(jobs[number].file.opened(), matches), rows)

    return lambda batches: telling_each(rewritten, batches)


def _orders(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[int, pa.Table, pa.Table]]:
    for batch in batches:
        for order in chain.from_iterable(batch.column("orders").to_pylist()):
            yield order["file"], unpacked(order["matches"]), unpacked(order["rows"])
