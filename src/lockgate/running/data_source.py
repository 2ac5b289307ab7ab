"""`format("lockgate")`: a Spark DataFrame written to a Parquet dataset by a merge, an append or an overwrite.

Spark calls `writer` on its driver, `write` in each task, then `commit` or `abort` on the driver: each in a Python
process that need not live until the next of them. So the tasks fill a shared staging area, and `commit` makes it its
own before it reads what they reported.
"""

from __future__ import annotations

import logging
import os
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceArrowWriter

from lockgate.datasets.entry import merge, write_dataset
from lockgate.errors import ArgumentError, LockgateError, StageError, StorageError
from lockgate.merging.result import MergeResult, WriteResult
from lockgate.running.arrow_types import arrow_schema
from lockgate.running.data_source_options import WriteOptions, read_options
from lockgate.running.staged_parts import StagedPart, read_parts, write_part
from lockgate.storage import staging
from lockgate.storage.links import temporary_folder
from lockgate.storage.local import LocalStorage
from lockgate.storage.staging import StagingArea
from lockgate.targets.folder import FolderTarget

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

log = logging.getLogger("lockgate.merge")


def register(spark: SparkSession) -> None:
    """Make `format("lockgate")` known to a Spark session, classic or Connect.

    >>> register(spark)  # doctest: +SKIP
    >>> new = frame.write.format("lockgate").mode("append")  # doctest: +SKIP
    >>> new.option("strategy", "upsert").option("keys", "id").save("/lake/orders")  # doctest: +SKIP
    """
    spark.dataSource.register(LockgateDataSource)


class LockgateDataSource(DataSource):  # type: ignore[misc]
    """Parquet datasets, as a place to write to."""

    @classmethod
    def name(cls) -> str:
        return "lockgate"

    def schema(self) -> StructType:
        with _told_plainly():
            raise ArgumentError(
                'format("lockgate") writes only',
                hint="a dataset is a folder of Parquet files: spark.read.parquet(path)",
            )

    def writer(self, schema: StructType, overwrite: bool) -> DatasetWriter:
        """Refuse what can be refused before the tasks begin, and make room for what they will write."""
        with _told_plainly():
            options = read_options(self.options, overwrite=overwrite)
            columns = arrow_schema(schema)
            _rehearse(options, columns)
            storage, identity = LocalStorage(), uuid.uuid4().hex
            FolderTarget(options.root, storage).refuse_delta()
            # This process may end with this call. Its parent, of Spark's driver, lives as long as the driver does.
            shared = staging.share(storage, options.root, identity, keeper=os.getppid())
        return DatasetWriter(options, columns, identity, shared)


class DatasetWriter(DataSourceArrowWriter):  # type: ignore[misc]
    """One write. It is sent to every task, and to the process that commits."""

    def __init__(self, options: WriteOptions, schema: pa.Schema, identity: str, shared: Path) -> None:
        self._options = options
        self._schema = schema
        self._identity = identity
        self._shared = shared

    def write(self, iterator: Iterator[pa.RecordBatch]) -> StagedPart:
        return write_part(iterator, self._schema, self._shared, LocalStorage())

    def commit(self, messages: Sequence[StagedPart | None]) -> None:
        """Publish the rows of the attempts that Spark chose; whatever others have left goes with the area."""
        log.setLevel(logging.INFO)  # of this process, which is Spark's: so that its worker logs have the counts
        with _told_plainly():
            _tell(self._publish(messages), self._options.root)

    def _publish(self, messages: Sequence[StagedPart | None]) -> MergeResult | WriteResult:
        parts = [part for part in messages if part is not None]
        if len(parts) < len(messages) or not self._shared.is_dir():
            raise StageError(
                f"the rows that Spark's tasks staged in {self._shared} are gone", in_place="nothing was written"
            )
        area = StagingArea.adopt(LocalStorage(), self._options.root, self._identity)
        try:
            rows = read_parts(parts, self._schema, area.path)
            if not self._options.merges:
                return _carry_out(self._options, rows, self._options.root)
            table = rows.read_all()
            area.discard()  # before the merge, which must find the folder as it was: `update` makes none
            return _carry_out(self._options, table, self._options.root)
        finally:
            _discard(area)

    def abort(self, messages: Sequence[StagedPart | None]) -> None:
        """Spark also comes here when `commit` has failed, and while tasks of the failed job are still at work."""
        del messages
        staging.abandon(LocalStorage(), self._options.root, self._identity)


def _carry_out(
    options: WriteOptions, source: pa.Table | pa.RecordBatchReader, root: Path | str
) -> MergeResult | WriteResult:
    if options.merges:
        return merge(source, root, **options.parameters)
    return write_dataset(source, root, **options.parameters)


def _rehearse(options: WriteOptions, schema: pa.Schema) -> None:
    """Let the function that will do it judge its parameters, on a table without rows, out of the way."""
    with temporary_folder("lockgate-") as folder:
        _carry_out(options, schema.empty_table(), f"{folder}/rehearsal")


def _tell(result: MergeResult | WriteResult, root: Path) -> None:
    if isinstance(result, WriteResult):
        log.info("%s: %s of %d rows", root, result.mode, result.total_rows)
        return
    log.info(
        "%s: %s of %d rows: %d inserted, %d updated, %d deleted; %d rows now",
        root, result.strategy, result.source_count, result.inserted, result.updated, result.deleted,
        result.target_count_after,
    )  # fmt: skip


def _discard(area: StagingArea) -> None:
    """What cannot be removed now is swept by the next writer, so that is no failure of the write."""
    try:
        area.discard()
    except StorageError as error:
        log.warning("staged files could not be removed, the next write will: %s", error)


@contextmanager
def _told_plainly() -> Iterator[None]:
    """Our errors reach the user inside one of Spark's: with what is in place and what to do, without our stack."""
    try:
        yield
    except LockgateError as error:
        error.add_note(error.render().removeprefix(str(error)).strip())
        os.environ["SPARK_HIDE_TRACEBACK"] = "1"  # Spark's switch; the process ends with the error
        raise
