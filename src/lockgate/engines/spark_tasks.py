"""What both ways of merging by Spark ask of a session: tasks, footers, and the files that workers wrote."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

from lockgate.engines import spark_worker as worker
from lockgate.engines.arrow_find import bunches
from lockgate.engines.spark_errors import explained
from lockgate.engines.spark_package import give_package
from lockgate.engines.spark_session import settings
from lockgate.engines.spark_worker import FileToRead
from lockgate.errors import StorageError
from lockgate.merging.footers import read_footers
from lockgate.merging.protocol import DataFile, Written

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MOST_TASKS = 10_000
WRITTEN = "path string, rows bigint, size bigint"

_FOOTERS_WORTH_A_JOB = 2_000  # fewer are read here sooner than Spark has begun
_FOOTERS_A_TASK = 200
_LEAST_ROWS_A_TASK, _MOST_ROWS_A_TASK = 250_000, 2_000_000
_ANSWERED_AS = {"spark.sql.execution.arrow.useLargeVarTypes": "false"}  # the types of what workers hand back


class SparkTasks:
    """A session, and the work that is given to its workers."""

    def __init__(self, session: SparkSession) -> None:
        self.session = session

    @contextmanager
    def ready(self) -> Iterator[None]:
        """With our package on the workers."""
        with explained("handing over the package"):
            give_package(self.session)
        with settings(self.session, _ANSWERED_AS):
            yield

    def numbered(self, count: int) -> DataFrame:
        """One row a task, with its number."""
        return self.session.range(0, count, 1, count)

    def scans(self, files: Sequence[DataFile]) -> list[list[tuple[int, FileToRead]]]:
        """The files that each task reads, with their numbers."""
        numbers = iter(range(len(files)))
        return [[(next(numbers), FileToRead.of(file)) for file in bunch] for bunch in self.shares(files)]

    def shares(self, files: Sequence[DataFile]) -> Iterator[list[DataFile]]:
        """The files that each task works on. A task in Python costs a tenth of a second before it does anything."""
        rows = sum(file.rows for file in files)
        share = min(-(-rows // self.parallelism()), _MOST_ROWS_A_TASK)
        return bunches(files, at_least=max(share, _LEAST_ROWS_A_TASK, rows // MOST_TASKS))

    def parallelism(self) -> int:
        """About how many tasks run at once; Spark Connect does not tell, so it is taken from the joins' setting."""
        return max(int(self.session.conf.get("spark.sql.shuffle.partitions", "8") or 8), 1)

    def footers(self, paths: Sequence[str]) -> list[pq.FileMetaData]:
        if len(paths) < _FOOTERS_WORTH_A_JOB:
            return read_footers(paths)
        tasks = [paths[i : i + _FOOTERS_A_TASK] for i in range(0, len(paths), _FOOTERS_A_TASK)]
        with explained("reading footers"):
            found = self.numbered(len(tasks)).mapInArrow(worker.footers(tasks), "task bigint, footer binary").toArrow()
        by_task: dict[int, list[pq.FileMetaData]] = {}
        for task, packed in zip(found["task"].to_pylist(), found["footer"].to_pylist(), strict=True):
            by_task.setdefault(task, []).append(worker.opened_footer(packed))
        return [footer for task in range(len(tasks)) for footer in by_task[task]]


def seen(row: Any) -> Written:
    """A file that a worker says it wrote."""
    path = Path(row["path"])
    if not path.exists():
        raise StorageError(
            f"a worker of Spark wrote {path}, and it cannot be seen from here",
            in_place="nothing was written",
            hint="put the dataset on a filesystem that Spark's workers share with this machine",
        )
    return Written(path, row["rows"], row["size"])
