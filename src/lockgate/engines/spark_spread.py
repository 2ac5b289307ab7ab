"""The Spark engine for a source that one machine can hold: the work on the files is spread over Spark's tasks.

Each task does with the Arrow engine what that engine would do here. The keys go to every task that looks for them, and
each file that is written again gets the rows that it needs, so nothing is joined or shuffled by Spark.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import islice
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lockgate.engines import spark_spread_worker as worker
from lockgate.engines.arrow import ArrowEngine
from lockgate.engines.arrow_find import SortedKeys
from lockgate.engines.packing import packed, unpacked
from lockgate.engines.spark_errors import explained
from lockgate.engines.spark_tasks import WRITTEN, SparkTasks, seen
from lockgate.engines.spark_worker import FileToRead, FileToWrite
from lockgate.merging.protocol import DataFile, Rewrite, Written
from lockgate.merging.table_source import Matches, SourceRows, matches_of
from lockgate.storage.local import LocalStorage

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


_BYTES_OF_KEYS = 64 * 2**20  # that are sent to every task that looks for them
_BYTES_SENT = 256 * 2**20


class SparkSpreadEngine(ArrowEngine):
    """Use it in a `with` block."""

    name = "spark"

    def __init__(self, session: SparkSession, storage: LocalStorage) -> None:
        super().__init__(storage)
        self._tasks = SparkTasks(session)
        self._stack = ExitStack()

    def __enter__(self) -> SparkSpreadEngine:
        self._stack.enter_context(self._tasks.ready())
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def read_footers(self, paths: Sequence[str]) -> list[pq.FileMetaData]:
        return self._tasks.footers(paths)

    def _matches(self, files: Sequence[DataFile], source: SourceRows) -> list[Matches]:
        if not files or not source.table.num_rows:
            return []
        scans = self._tasks.scans(files)
        found: dict[int, list[pa.Table]] = {}
        for keys in SortedKeys.of(source).in_parts(_BYTES_OF_KEYS):
            with explained("finding keys"):
                tasks = self._tasks.numbered(len(scans))
                for row in tasks.mapInArrow(worker.find(scans, keys), "file int, found binary").collect():
                    found.setdefault(row["file"], []).append(unpacked(row["found"]))
        return [matches_of(files[n], _in_order(found[n])) for n in sorted(found)]

    def _compared(self, matches: Sequence[Matches], source: SourceRows) -> list[Matches]:
        if not matches:
            return []
        files = {number: FileToRead.of(found.file) for number, found in enumerate(matches)}
        work = worker.compare(files, source.key_columns)
        with explained("comparing rows"):
            found = list(self._each_file(dict(enumerate(matches)), source, work, "file int, changed binary"))
        changed = {row["file"]: unpacked(row["changed"])["changed"].combine_chunks() for row in found}
        return [Matches(m.file, m.rows, m.source_rows, changed[number]) for number, m in enumerate(matches)]

    def rewrite(self, jobs: Sequence[Rewrite], source: SourceRows) -> list[Written]:
        done: dict[str, Written] = {}
        # A file that gets no row is a schema and a footer: Spark has nothing to bring.
        alone = [job for job in jobs if job.matches is None]
        for job, written in zip(alone, super().rewrite(alone, source), strict=True):
            done[job.file.name] = written
        wanted = {number: job for number, job in enumerate(jobs) if job.matches is not None}
        if wanted:
            orders = {number: FileToWrite.of(job) for number, job in wanted.items()}
            matches = {number: cast(Matches, job.matches) for number, job in wanted.items()}
            with explained("writing files"):
                for row in self._each_file(matches, source, worker.rewrite(orders), f"file int, {WRITTEN}"):
                    done[jobs[row["file"]].file.name] = seen(row)
        return [done[job.file.name] for job in jobs]

    def _each_file(self, matches: Mapping[int, Matches], source: SourceRows, work: Any, answer: str) -> Iterator[Any]:
        """Do the work on each file, with its matches and the source rows that they name."""
        numbers = iter(matches)
        shares = self._tasks.shares([found.file for found in matches.values()])
        tasks = ([_order(n, matches[n], source) for n in islice(numbers, len(share))] for share in shares)
        for load in _loads(tasks):
            orders = pa.Table.from_pylist([{"orders": task} for task in load], worker.ORDERS)
            frame = self._tasks.session.createDataFrame(orders).repartition(len(load))
            yield from frame.mapInArrow(work, answer).collect()


def _in_order(parts: Sequence[pa.Table]) -> pa.Table:
    return parts[0] if len(parts) == 1 else pa.concat_tables(parts).sort_by("row")


def _order(number: int, found: Matches, source: SourceRows) -> worker.Order:
    rows = found.source_rows.unique()  # one may match many: the keys of a dataset may repeat
    here = Matches(found.file, found.rows, pc.index_in(found.source_rows, rows), found.changed, found.leaving)
    return {"file": number, "matches": packed(here.to_table()), "rows": packed(source.table.take(rows))}


def _loads(tasks: Iterable[list[worker.Order]]) -> Iterator[list[list[worker.Order]]]:
    """As many tasks as are sent at once: if every file has every key, all of them are the source many times over."""
    load: list[list[worker.Order]] = []
    size = 0
    for task in tasks:
        load.append(task)
        size += sum(len(order["matches"]) + len(order["rows"]) for order in task)
        if size >= _BYTES_SENT:
            yield load
            load, size = [], 0
    if load:
        yield load
