"""A PostgreSQL source as a data source of Spark.

Spark keeps the options of a data source where anybody may read them, so there are none: each source is a class of its
own, made for it, which has what the workers must know, the password too. It reaches them pickled.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from lockgate.engines.spark_worker import telling_each
from lockgate.sources.postgres_filters import conditions
from lockgate.sources.postgres_read import PostgresRead
from lockgate.sources.postgres_types import ReadColumn

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def spark_schema(columns: Sequence[ReadColumn]) -> StructType:
    """The columns as Spark has them."""
    fields = [{"name": c.name, "type": c.spark, "nullable": True, "metadata": {}} for c in columns]
    return StructType.fromJson({"type": "struct", "fields": fields})


def data_source(name: str, read: PostgresRead | None) -> type[DataSource]:
    """The class of one source. Without a `read` it takes the place of one that had a password, and reads nothing."""
    schema = spark_schema(read.columns) if read is not None else StructType()

    class PostgresSource(DataSource):  # type: ignore[misc]
        @classmethod
        def name(cls) -> str:
            return name

        def schema(self) -> StructType:
            return schema

        def reader(self, schema: StructType) -> DataSourceReader:
            assert read is not None, "the run that this source belonged to is over"
            return PostgresReader(read, schema)

    return PostgresSource


def forget(session: SparkSession, name: str) -> None:
    """Leave nothing of a source in a session that lives on."""
    session.dataSource.register(data_source(name, None))


class PostgresReader(DataSourceReader):  # type: ignore[misc]
    """One scan. It is sent to every task."""

    def __init__(self, read: PostgresRead, schema: StructType) -> None:
        self._read = read
        self._schema = schema

    def pushFilters(self, filters: list[Any]) -> Iterable[Any]:
        """The server leaves out what it can; Spark filters again, so that both need not agree on every detail."""
        self._read = self._read.narrowed(conditions(filters, self._read.columns))
        return filters

    def partitions(self) -> Sequence[InputPartition]:
        return [InputPartition(number) for number in range(len(self._read.partitions))]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        from lockgate.sources.postgres_worker import read_partition

        schema = to_arrow_schema(self._schema, timezone="UTC")
        return telling_each(read_partition, self._read, partition.value, schema)
