"""The Spark engine: Spark joins keys and moves rows, its workers read and write whole files with Arrow.

It uses the public DataFrame API alone, so it runs over Spark Connect too. Workers get this package from us, need
pyarrow, and see the dataset's files under the same paths.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from lockgate.engines import spark_worker as worker
from lockgate.engines.arrow import ArrowEngine
from lockgate.engines.layout import FileLayout
from lockgate.engines.new_files import write_new_files
from lockgate.engines.spark_errors import explained
from lockgate.engines.spark_keys import always_fits, spark_type
from lockgate.engines.spark_source import SparkRows
from lockgate.engines.spark_tasks import MOST_TASKS, WRITTEN, SparkTasks, seen
from lockgate.engines.spark_worker import FileToRead, FileToWrite
from lockgate.merging.protocol import Added, DataFile, Found, NewFiles, Rewrite, Written
from lockgate.merging.strategy import MergeStrategy
from lockgate.merging.table_source import SourceRows
from lockgate.storage.local import LocalStorage

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

log = logging.getLogger("lockgate.merge")

_ROWS_A_NEW_FILE = 2_000_000
_ROWS_TO_BROADCAST = 500_000


@dataclass(frozen=True)
class SparkMatches:
    """How many rows of a file matched. Which they are, Spark knows."""

    file: DataFile
    count: int
    moving: int
    replaced: int


class SparkEngine:
    """Use it in a `with` block: what it asked Spark to keep is let go at its end."""

    name = "spark"

    def __init__(self, session: SparkSession, storage: LocalStorage) -> None:
        self._tasks = SparkTasks(session)
        self._storage = storage
        self._stack = ExitStack()
        self._matches: DataFrame | None = None  # of the last find: file, file_row, place, leaving, changed
        self._numbers: dict[str, int] = {}
        self._compares = False

    def __enter__(self) -> SparkEngine:
        self._stack.enter_context(self._tasks.ready())
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def read_footers(self, paths: Sequence[str]) -> list[pq.FileMetaData]:
        return self._tasks.footers(paths)

    def find(self, files: Sequence[DataFile], source: SparkRows, strategy: MergeStrategy, *, compare: bool) -> Found:
        actions = strategy.actions
        self._numbers = {file.name: number for number, file in enumerate(files)}
        self._compares = compare
        self._matches = None
        self._check_values(source)
        if not files:
            return Found((), source.rows if actions.new == "insert" else 0)
        matches = self._kept(self._joined(files, source, compare and actions.matched == "replace"))
        self._matches = matches
        counted = self._counted(matches, files) if actions.matched == "replace" else []
        for found in counted:
            if found.moving:
                source.moves[found.file.name] = self._moving_rows(source, self._numbers[found.file.name])
        new = 0
        if actions.new == "insert":
            with explained("finding keys"):
                new = source.rows - matches.select("place").distinct().count()
        return Found(counted, new)

    def _check_values(self, source: SparkRows) -> None:
        """Every row is looked at, whatever becomes of it, so that a dry run refuses what the merge would."""
        schema = source.carried.schema
        doubtful = [i for i, wanted in enumerate(schema) if not always_fits(source.given.field(i), wanted)]
        if doubtful:
            names = [schema.field(i).name for i in doubtful]
            columns = source.frame.select(*[f"c{i}" for i in doubtful])
            with explained("the source"):
                columns.mapInArrow(worker.check(source.carried, names), "rows bigint").collect()

    def _joined(self, files: Sequence[DataFile], source: SparkRows, compare: bool) -> DataFrame:
        """Every matched row: its file, its place in it and the place of its source row."""
        from pyspark.sql import functions as F

        keys = [f"k{i}" for i in range(len(source.carried.key_columns))]
        partition = source.carried.partition_columns
        can_move = any(c not in source.carried.key_columns for c in partition)
        names = source.carried.schema.names
        needed = names if compare else [c for c in partition if can_move]
        more = [f"c{names.index(name)}" for name in needed]
        target = self._target_keys(files, source)
        joined = (
            _joinable(source.keyed(*more), source.rows)
            .join(target, keys, "inner")
            .select("file", "file_row", "place", *more)
        )
        if not more:
            return joined.withColumns({"leaving": F.lit(False), "changed": F.lit(True)})
        by_number = {number: FileToRead.of(file) for number, file in enumerate(files)}
        return (
            joined.repartition(min(len(files), MOST_TASKS), "file")
            .groupBy("file")
            .applyInArrow(
                worker.mark(by_number, source.carried, None if compare else needed, compare),
                "file int, file_row bigint, place bigint, leaving boolean, changed boolean",
            )
        )

    def _target_keys(self, files: Sequence[DataFile], source: SparkRows) -> DataFrame:
        schema, key_columns = source.carried.schema, source.carried.key_columns
        scans = self._tasks.scans(files)
        types = ", ".join(f"k{i} {spark_type(schema.field(key).type)}" for i, key in enumerate(key_columns))
        return self._tasks.numbered(len(scans)).mapInArrow(
            worker.scan(scans, schema, key_columns), f"file int, file_row bigint, {types}"
        )

    def _counted(self, matches: DataFrame, files: Sequence[DataFile]) -> list[SparkMatches]:
        from pyspark.sql import functions as F

        stays = F.when(~F.col("leaving") & F.col("changed"), 1).otherwise(0)
        with explained("finding keys"):
            found = (
                matches.groupBy("file")
                .agg(
                    F.count("*").alias("matched"),
                    F.sum(F.col("leaving").cast("int")).alias("moving"),
                    F.sum(stays).alias("replaced"),
                )
                .collect()
            )
        return sorted(
            (SparkMatches(files[r["file"]], r["matched"], r["moving"], r["replaced"]) for r in found),
            key=lambda m: m.file.name,
        )

    def _moving_rows(self, source: SparkRows, number: int) -> Any:
        def rows(most: int) -> pa.Table:
            assert self._matches is not None
            moving = self._matches.filter(f"file = {number} AND leaving").orderBy("file_row").limit(most)
            with explained("finding keys"):
                return source.frame.join(moving.select("place"), "place").orderBy("place").toArrow()

        return rows

    def rewrite(self, jobs: Sequence[Rewrite], source: SparkRows) -> list[Written]:
        done: dict[str, Written] = {}
        alone = [job for job in jobs if job.matches is None]
        if alone:  # no row of the source goes there, so Spark has nothing to bring
            nothing = SourceRows(source.carried.schema.empty_table(), source.carried.key_columns)
            for job, written in zip(alone, ArrowEngine(self._storage).rewrite(alone, nothing), strict=True):
                done[job.file.name] = written
        by_number = {self._numbers[job.file.name]: job for job in jobs if job.matches is not None}
        if by_number:
            done |= self._rewritten(by_number, source)
        return [done[job.file.name] for job in jobs]

    def _rewritten(self, jobs: dict[int, Rewrite], source: SparkRows) -> dict[str, Written]:
        from pyspark.sql import functions as F

        assert self._matches is not None
        orders = {number: FileToWrite.of(job) for number, job in jobs.items()}
        matches = self._matches
        if len(jobs) < len(self._numbers):
            matches = matches.filter(F.col("file").isin(*jobs))
        rows = matches.join(_joinable(source.frame, source.rows), "place").repartition(
            min(len(jobs), MOST_TASKS), "file"
        )
        with explained("writing files"):
            found = (
                rows.groupBy("file")
                .applyInArrow(worker.rewrite(orders, source.carried, self._compares), f"file int, {WRITTEN}")
                .collect()
            )
        return {jobs[r["file"]].file.name: seen(r) for r in found}

    def add(self, found: Found, source: SparkRows, new: NewFiles) -> list[Added]:
        moving = sum(m.moving for m in found.matches)
        if not found.new and not moving:
            return write_new_files(source.carried.schema.empty_table(), new, self._storage)
        rows = self._new_rows(source, found.new, moving)
        tasks = min(-(-(found.new + moving) // _ROWS_A_NEW_FILE), MOST_TASKS)
        if new.partition_columns:
            names = source.carried.schema.names
            by = [f"c{names.index(c)}" for c in new.partition_columns]
            rows = rows.repartition(max(tasks, self._tasks.parallelism()), *by)
        else:
            rows = rows.repartition(tasks)
        sorts = new.like is not None and bool(FileLayout.of(new.like.footer, new.like.path).sorting)
        with explained("writing new files"):
            made = (
                rows.sortWithinPartitions("place")
                .mapInArrow(worker.add(new, source.carried, sorts), f"name string, {WRITTEN}")
                .collect()
            )
        return [Added(r["name"], seen(r)) for r in sorted(made, key=lambda r: r["name"])]

    def _new_rows(self, source: SparkRows, new: int, moving: int) -> DataFrame:
        if self._matches is None:
            return source.frame
        matched = self._matches.select("place").distinct()
        fresh = _joinable(source.frame, source.rows).join(matched, "place", "left_anti")
        if not moving:
            return fresh
        moved = _joinable(source.frame, source.rows).join(self._matches.filter("leaving").select("place"), "place")
        return fresh.unionByName(moved) if new else moved

    def _kept(self, frame: DataFrame) -> DataFrame:
        frame = frame.persist()
        self._stack.callback(frame.unpersist)
        return frame


def _joinable(frame: DataFrame, rows: int) -> DataFrame:
    """Spark takes the size of staged files for the size of their rows in memory, and compressed keys are many times
    smaller. Rows that are too many to be sent to every worker are sorted and merged, which spills where it must."""
    return frame if rows <= _ROWS_TO_BROADCAST else frame.hint("merge")
