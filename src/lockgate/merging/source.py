"""Everything a merge accepts as its source, as Arrow data."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds

from lockgate.errors import ConfigError, LockgateError, SourceError
from lockgate.merging.layouts import plain_reader, plain_table
from lockgate.merging.rows import from_rows
from lockgate.merging.source_files import open_path

_IN_PLACE = "nothing was written"


def load_source(source: Any) -> pa.Table:
    """The whole source as a table.

    >>> load_source([{"id": 1}, {"id": 2, "name": "x"}]).to_pylist()
    [{'id': 1, 'name': None}, {'id': 2, 'name': 'x'}]
    """
    if isinstance(source, pa.Table):
        return plain_table(source)
    return open_source(source).read_all()


def open_source(source: Any) -> pa.RecordBatchReader:
    """The source as a stream, which is read while it is used where its kind allows that.

    >>> open_source(pa.table({"id": [1, 2]})).schema.names
    ['id']
    """
    opened = _opened(source)
    return plain_reader(_explained(source, opened) if opened is source else opened)


def _explained(source: Any, reader: pa.RecordBatchReader) -> pa.RecordBatchReader:
    """A stream that somebody else feeds may fail half-way; then it is the source that failed, and nothing else."""

    def batches() -> Iterator[pa.RecordBatch]:
        try:
            yield from reader
        except LockgateError:
            raise
        except Exception as error:
            raise _unreadable(source, error) from error

    return pa.RecordBatchReader.from_batches(reader.schema, batches())


def _opened(source: Any) -> pa.RecordBatchReader:
    if isinstance(source, pa.RecordBatchReader):
        return source
    if isinstance(source, pa.Table):
        return source.to_reader()
    if isinstance(source, pa.RecordBatch):
        return pa.Table.from_batches([source]).to_reader()
    if isinstance(source, ds.Dataset):
        return source.scanner().to_reader()
    if isinstance(source, str | os.PathLike):
        return open_path(source)
    if comes_from("pyspark", source) and hasattr(source, "toArrow"):
        return _collected(source, source.toArrow).to_reader()
    if comes_from("pandas", source) and hasattr(source, "columns"):
        return _collected(source, lambda: _from_pandas(source)).to_reader()
    if hasattr(source, "__arrow_c_stream__"):
        return _streamed(source)
    if isinstance(source, Sequence) and not isinstance(source, bytes) and all(isinstance(row, dict) for row in source):
        return _collected(source, lambda: from_rows(source)).to_reader()
    raise ConfigError(
        f"a {_kind(source)} cannot be the source of a merge",
        hint="give a pyarrow Table or RecordBatchReader, a pandas or polars DataFrame, a DuckDB relation, "
        "a Spark DataFrame, a list of dicts, or the path of a file or folder",
        in_place=_IN_PLACE,
    )


def _from_pandas(frame: Any) -> pa.Table:
    # A numbered index is no data (what is left of a filter, say); one with a name is a column in all but the word.
    named = any(name is not None for name in frame.index.names)
    return pa.Table.from_pandas(frame, preserve_index=named)


def _streamed(source: Any) -> pa.RecordBatchReader:
    try:
        return pa.RecordBatchReader.from_stream(source)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise _unreadable(source, error) from error


def _collected(source: Any, collect: Callable[[], pa.Table]) -> pa.Table:
    try:
        return collect()
    except Exception as error:  # whatever a foreign library raises while it hands over its rows
        raise _unreadable(source, error) from error


def _unreadable(source: Any, error: Exception) -> SourceError:
    return SourceError(
        f"the {_kind(source)} given as the source cannot be read: {error}",
        hint="each column needs one type that Arrow knows, and the whole needs to be a table",
        in_place=_IN_PLACE,
    )


def comes_from(package: str, source: Any) -> bool:
    """Told by the name of its module, so that a package nobody uses is not imported."""
    return any(cls.__module__.split(".")[0] == package for cls in type(source).__mro__)


def _kind(source: Any) -> str:
    cls = type(source)
    return cls.__name__ if cls.__module__ == "builtins" else f"{cls.__module__.split('.')[0]} {cls.__name__}"
