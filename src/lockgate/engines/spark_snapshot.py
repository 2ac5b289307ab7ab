"""A snapshot of a Delta table as a DataFrame: Spark reads the Parquet files itself, without a jar, and skips those that
a filter on partition columns rules out.

Files whose folders say the partition values that the log says are one scan, which Spark prunes by itself. The others,
such as those of a table that somebody else wrote, are a scan for each partition with the values put in as literals:
Spark removes the branches that a filter rules out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lockgate.errors import SchemaMismatchError, StorageError
from lockgate.identifiers import quoted
from lockgate.merging.partitions import parse_hive_partition_path, typed_value
from lockgate.targets.delta_actions import described_files
from lockgate.targets.described import DescribedFile
from lockgate.txlog.partition_values import partition_text
from lockgate.txlog.schema_json import arrow_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from lockgate.txlog.records import Snapshot

_PATTERN = re.compile(r"([\\\[\]{}*?,])")


def snapshot_frame(session: SparkSession, snapshot: Snapshot) -> DataFrame:
    """The rows of the snapshot, lazily. Only the log is looked at now."""
    from pyspark.sql.types import StructType

    schema = arrow_schema(snapshot.metadata.schema_string)
    wanted = StructType.fromJson(_plain_schema(snapshot.metadata.schema_string))
    columns = tuple(snapshot.metadata.partition_columns)
    root = Path(snapshot.location)
    files = described_files(snapshot.files, schema, columns)
    _refuse_missing(files, root, snapshot)
    if not files:
        return session.createDataFrame([], wanted)
    told = [file for file in files if _folders_tell(file, schema, columns)]
    frames = []
    if told:
        frames.append(_scan(session, told, root, wanted))
    frames += [
        _with_literals(session, group, root, wanted, schema, columns)
        for group in _by_partition([file for file in files if not _folders_tell(file, schema, columns)], columns)
    ]
    rows = reduce(lambda a, b: a.unionByName(b), frames)
    return rows.select([rows[quoted(name)] for name in schema.names])


def _plain_schema(text: str) -> dict[str, Any]:
    """Delta's JSON is Spark's own; what a table says of its columns beside their types is not Spark's business."""
    parsed: dict[str, Any] = json.loads(text)
    for field in parsed["fields"]:
        field["metadata"] = {}
    return parsed


def _folders_tell(file: DescribedFile, schema: pa.Schema, columns: Sequence[str]) -> bool:
    """Whether Spark takes the partition values of the log from the folders above the file."""
    if not columns:
        return True
    texts = parse_hive_partition_path(file.name)
    if list(texts) != list(columns):
        return False
    for column in columns:
        kind, text = schema.field(column).type, texts[column]
        if text is not None and (pa.types.is_timestamp(kind) or pa.types.is_floating(kind)):
            return False  # Spark would read a time by the zone of its session
        try:
            if typed_value(text, kind, column) != file.partition[column]:
                return False
        except SchemaMismatchError:
            return False
    return True


def _by_partition(files: Iterable[DescribedFile], columns: Sequence[str]) -> Iterable[list[DescribedFile]]:
    groups: dict[tuple[str, ...], list[DescribedFile]] = {}
    for file in files:
        groups.setdefault(tuple(repr(file.partition[c]) for c in columns), []).append(file)
    return groups.values()


def _scan(session: SparkSession, files: Sequence[DescribedFile], root: Path, schema: StructType) -> DataFrame:
    reader = session.read.schema(schema).option("basePath", f"file://{root}")  # which is no pattern
    return reader.parquet(*[_address(root / file.name) for file in files])


def _with_literals(
    session: SparkSession,
    files: Sequence[DescribedFile],
    root: Path,
    wanted: StructType,
    schema: pa.Schema,
    columns: Sequence[str],
) -> DataFrame:
    from pyspark.sql import functions as F
    from pyspark.sql.types import StructType

    inside = StructType([field for field in wanted.fields if field.name not in columns])
    # Each file is read as if it stood alone: what its folder is called is not looked at.
    reader = session.read.schema(inside).option("recursiveFileLookup", "true")
    rows = reader.parquet(*[_address(root / file.name) for file in files])
    values = files[0].partition
    # As texts: a text says a date of any year, and a moment in UTC, whatever zone the session has.
    literals = {
        c: F.lit(partition_text(values[c], schema.field(c).type, c)).cast(wanted[c].dataType).alias(c) for c in columns
    }
    return rows.select([literals[n] if n in literals else rows[quoted(n)] for n in wanted.names])


def _address(path: Path) -> str:
    """Spark takes a path for a pattern."""
    return "file://" + _PATTERN.sub(r"\\\1", str(path))


def _refuse_missing(files: Sequence[DescribedFile], root: Path, snapshot: Snapshot) -> None:
    gone = next((file.name for file in files if not (root / file.name).exists()), None)
    if gone is not None:
        raise StorageError(
            f"the file {gone!r} of {snapshot.table} at version {snapshot.version} is gone from {root}",
            hint="restore it from a copy; a version whose files were vacuumed cannot be read",
        )
