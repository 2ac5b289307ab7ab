"""The part of a Delta table that an INCREMENTAL table computes again: which files hold rows of it, and what else they
hold, which has to be written again beside the new rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from lockgate.errors import SchemaMismatchError
from lockgate.tables.reading import dataset_of
from lockgate.targets.delta import DeltaTarget
from lockgate.txlog.schema_json import arrow_schema


@dataclass(frozen=True)
class Replaced:
    """The files that a window touches."""

    names: tuple[str, ...] = ()
    rows: int = 0  # of them, in the window
    rows_of_files: int = 0  # all of them
    rest: ds.Dataset | None = None
    outside: pc.Expression | None = None

    def kept(self, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """Their rows that are not in the window."""
        if self.rest is None:
            return
        for batch in self.rest.scanner(columns=schema.names, filter=self.outside).to_batches():
            yield pa.RecordBatch.from_arrays(
                [batch.column(field.name).cast(field.type) for field in schema], schema=schema
            )


def replaced(target: DeltaTarget, window: Sequence[str]) -> Replaced:
    """What the table has of the window now. Files that the log rules out are not opened."""
    snapshot = target.snapshot
    if snapshot is None:
        return Replaced()
    column, *bounds = window
    schema = arrow_schema(snapshot.metadata.schema_string)
    low, high = (_bound(text, schema, column) for text in bounds)
    field = pc.field(column)
    inside = (field >= low) & (field <= high)
    whole = dataset_of(snapshot, schema)
    touched = [f for f in whole.get_fragments(filter=inside) if _dataset([f], whole).count_rows(filter=inside)]
    if not touched:
        return Replaced()
    rest = _dataset(touched, whole)
    return Replaced(
        names=tuple(Path(f.path).relative_to(target.root).as_posix() for f in touched),
        rows=int(rest.count_rows(filter=inside)),
        rows_of_files=int(rest.count_rows()),
        rest=rest,
        outside=~inside | field.is_null(),
    )


def _dataset(fragments: Sequence[ds.Fragment], like: ds.FileSystemDataset) -> ds.FileSystemDataset:
    return ds.FileSystemDataset(fragments, like.schema, like.format, filesystem=like.filesystem)


def _bound(text: str, schema: pa.Schema, column: str) -> pa.Scalar:
    if column not in schema.names:
        raise SchemaMismatchError(
            f"the table has no column {column!r}; its columns are {', '.join(schema.names)}",
            in_place="nothing was written",
        )
    kind = schema.field(column).type
    return pa.scalar(date.fromisoformat(text) if pa.types.is_date(kind) else datetime.fromisoformat(text), kind)
