"""One file written again by one COPY."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq

from lockgate.engines.duckdb_replacements import row_by_row
from lockgate.engines.duckdb_sql import copy_statement
from lockgate.engines.duckdb_types import CODECS, VECTOR_SIZE, kept
from lockgate.engines.layout import FileLayout
from lockgate.merging.protocol import Rewrite, Written
from lockgate.merging.table_source import RowChange
from lockgate.storage.links import SafeNames
from lockgate.storage.local import LocalStorage

log = logging.getLogger("lockgate.merge")


def copy_file(cursor: Any, job: Rewrite, source: pa.Table, storage: LocalStorage, links: SafeNames) -> Written | None:
    """Stage the file and make it durable. None where what COPY wrote does not have the old file's layout: then the
    staged file is removed again and somebody else must write it."""
    _copy(cursor, job, source, links, job.staged)
    if not kept(job.file.footer, pq.read_metadata(job.staged)):
        log.info("%s is written by Arrow, to keep its layout: COPY would change it", job.file.name)
        storage.remove(job.staged)
        return None
    storage.keep_attributes(Path(job.file.path), job.staged)
    storage.fsync_file(job.staged)
    return Written(job.staged, job.file.rows, job.staged.stat().st_size)


def _copy(cursor: Any, job: Rewrite, source: pa.Table, links: SafeNames, staged: Path) -> None:
    footer = job.file.footer
    layout = FileLayout.of(footer, job.file.path)
    names = footer.schema.to_arrow_schema().names
    view = f"replacements_{uuid4().hex}"
    cursor.register(view, row_by_row(RowChange.of(job.matches), job.file.rows, source.select(names)))
    try:
        cursor.execute(
            copy_statement(
                names,
                links.of(job.file.path),
                view,
                str(links.inside(staged.parent) / staged.name),
                compression=CODECS[str(layout.compression).upper()],
                row_group_size=_row_group_size(footer, layout),
                dictionary_entries=_dictionary_entries(footer, layout, source),
                metadata=[(k.decode(), v.decode()) for k, v in (footer.metadata or {}).items()],
            )
        )
    finally:
        cursor.unregister(view)


def _row_group_size(footer: pq.FileMetaData, layout: FileLayout) -> int:
    """One row group stays one; several stay of their size."""
    if footer.num_row_groups > 1:
        return layout.row_group_size
    return -(-max(int(footer.num_rows), 1) // VECTOR_SIZE) * VECTOR_SIZE


def _dictionary_entries(footer: pq.FileMetaData, layout: FileLayout, sample: pa.Table) -> int:
    """Up to how many distinct values DuckDB tries a dictionary. By default it tries a fifth of the rows, which takes a
    third of the time of a COPY where nothing comes of it; the old file tells what does."""
    rows = max(layout.row_group_size, 1)
    return max(rows // 20, min(layout.dictionary_entries(footer, sample.slice(0, 1000)), rows // 5), 1)
