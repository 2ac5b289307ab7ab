"""Staging: Spark writes the rows of an export as Parquet, in parallel, into the export's staging area."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lockgate.destinations.protocol import Layout, StagedRows
from lockgate.errors import SchemaMismatchError, StageError
from lockgate.identifiers import quoted
from lockgate.language.diagnostics import nearest
from lockgate.merging.order import parse_order_by
from lockgate.storage.local import LocalStorage

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructField

_NOT_IN_CSV = ("array", "map", "struct", "binary", "variant", "interval", "geometry", "geography")
_HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"
_NOTHING = "nothing was published; every destination is as it was"


def stage_rows(frame: DataFrame, layout: Layout, target: Path, storage: LocalStorage) -> StagedRows:
    """Compute the query once and leave its rows below `target`, whose parent exists. Its columns must have passed
    `check_columns`."""
    columns = tuple(frame.columns)
    _write(_shaped(frame, layout), layout, target)
    parts = _parts(target)
    if not parts:
        # A partitioned write of no rows leaves no file at all, and with it no schema.
        _write(frame.limit(0), Layout(compression=layout.compression), target / "schema")
        for part in _parts(target / "schema"):
            storage.replace(part, target / part.name)
        parts = _parts(target)
    return StagedRows(target, tuple(parts), columns, frame.schema.json())


def count_rows(frame: DataFrame, layout: Layout) -> int:
    """How many rows would be staged. Every value of them is computed, so that what fails in a run fails here too; they
    go nowhere."""
    from pyspark.sql import functions as F

    if type(frame).__module__.startswith("pyspark.sql.connect"):
        from pyspark.sql.connect.observation import Observation
    else:
        from pyspark.sql import Observation

    seen = Observation()
    counted = _shaped(frame, layout).observe(seen, F.count(F.lit(1)).alias("rows"))
    counted.write.format("noop").mode("overwrite").save()
    return int(seen.get["rows"])


def check_columns(frame: DataFrame, layout: Layout, keys: Sequence[str] = (), order_by: Sequence[str] = ()) -> None:
    """Refuse what the file could not hold, and keys that are not there, before anything is computed."""
    twice = [name for name, n in Counter(c.casefold() for c in frame.columns).items() if n > 1]
    if twice:
        raise StageError(
            f"the query gives two columns the name {twice[0]}", in_place=_NOTHING, hint="rename one with AS"
        )
    if not frame.columns:
        raise StageError("the query has no columns", in_place=_NOTHING)
    _require(frame.columns, keys, "key column")
    _require(frame.columns, [key.column for key in parse_order_by(order_by)], "ORDER BY column")
    if layout.shape == "csv":
        for field in frame.schema.fields:
            kind = field.dataType.simpleString()
            if kind.startswith(_NOT_IN_CSV):
                hint = f"base64({field.name})" if kind == "binary" else f"to_json({field.name})"
                raise StageError(
                    f"CSV cannot hold the column {field.name} of type {kind}",
                    in_place=_NOTHING,
                    hint=f"export {hint} AS {field.name}, or use TYPE PARQUET",
                )
    missing = [c for c in layout.partition_by if c.casefold() not in {n.casefold() for n in frame.columns}]
    if missing:
        raise StageError(
            f"partition_by names {missing[0]}, and the query has {', '.join(frame.columns)}", in_place=_NOTHING
        )
    wanted = {c.casefold() for c in layout.partition_by}
    for field in frame.schema.fields:
        if field.name.casefold() in wanted and field.dataType.simpleString().startswith(_NOT_IN_CSV):
            raise StageError(
                f"the column {field.name} of type {field.dataType.simpleString()} cannot name a partition's folder",
                in_place=_NOTHING,
                hint="partition by a number, a date, a boolean or a text",
            )
    if layout.partition_by and len(layout.partition_by) >= len(frame.columns):
        raise StageError("partition_by names every column, so no column is left for the files", in_place=_NOTHING)


def _require(columns: Sequence[str], names: Sequence[str], called: str) -> None:
    """A merge takes names as they are spelled, upper and lower case told apart, and so does this."""
    missing = [name for name in names if name not in columns]
    if missing:
        shown, known = (", ".join(f'"{name}"' for name in listed) for listed in (missing, columns))
        near = nearest(missing[0], columns)
        raise SchemaMismatchError(
            f"the query has no {called} {shown}; its columns are {known}",
            in_place=_NOTHING,
            hint=f'did you mean "{near}"?' if near else None,
        )


def _shaped(frame: DataFrame, layout: Layout) -> DataFrame:
    from pyspark.sql import functions as F

    if layout.shape == "rows":
        return _partitioned(frame, layout) if layout.partition_by else frame
    options = dict(layout.text_options)
    row = F.struct(*[_cell(field, options.get("nullValue", "")) for field in frame.schema.fields])
    line = F.to_csv(row, options) if layout.shape == "csv" else F.to_json(row, options)
    return frame.select(F.concat(F.coalesce(line, F.lit("")), F.lit("\n")).alias("line"))


def _cell(field: StructField, null_value: str) -> Column:
    """A column as it goes into a line; a text that reads as NULL is refused, since no reader could tell."""
    from pyspark.sql import functions as F

    column = F.col(quoted(field.name))
    if not null_value or not field.dataType.simpleString().startswith(("string", "char", "varchar")):
        return column
    refusal = F.raise_error(F.lit(f"the column {field.name} holds the text {null_value}, which null_value makes NULL"))
    return F.when(column == null_value, refusal.cast("string")).otherwise(column).alias(field.name)


def _partitioned(frame: DataFrame, layout: Layout) -> DataFrame:
    """Bring the rows of a partition together, so that it gets few files, and refuse what a folder name cannot say."""
    from pyspark.sql import functions as F

    def checked(name: str) -> Column:
        column = F.col(quoted(name))
        refusal = F.raise_error(
            F.lit(f"the partition column {name} holds an empty string, or what stands for NULL in a folder's name")
        )
        wrong = column.isin("", _HIVE_NULL)
        return F.when(wrong, refusal.cast("string")).otherwise(column).alias(name)

    wanted = {c.casefold() for c in layout.partition_by}
    fields = frame.schema.fields
    texts = [f.name for f in fields if f.name.casefold() in wanted and f.dataType.simpleString().startswith("string")]
    if texts:
        frame = frame.select([checked(f.name) if f.name in texts else F.col(quoted(f.name)) for f in fields])
    return frame.hint("rebalance", *[F.col(quoted(c)) for c in layout.partition_by])


def _write(frame: DataFrame, layout: Layout, target: Path) -> None:
    writer = frame.write.mode("error").option("compression", layout.compression)
    writer = writer.option("maxRecordsPerFile", layout.max_rows_per_file)
    if layout.partition_by:
        writer = writer.partitionBy(*layout.partition_by)
    writer.parquet(f"file://{target}")
    if not (target / "_SUCCESS").exists():
        raise StageError(
            f"Spark wrote to {target}, but the files cannot be seen from here",
            in_place=_NOTHING,
            hint="put the destination, or the profile's `staging`, on a filesystem shared with Spark's workers",
        )


def _parts(target: Path) -> list[Path]:
    """The files Spark wrote, in the order of the rows: its part numbers carry the order of a sorted result."""
    return sorted(target.rglob("part-*.parquet"))


def bring_home(storage: LocalStorage, rows: StagedRows, home: Path) -> StagedRows:
    """Move rows that were staged elsewhere (the profile's `staging`) into the area beside the destination."""
    storage.move_folder(rows.root, home)
    parts = tuple(home / p.relative_to(rows.root) for p in rows.parts)
    return StagedRows(home, parts, rows.columns, rows.schema)
