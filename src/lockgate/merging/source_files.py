"""Files and folders as sources: Parquet, CSV, JSON and Arrow, by the ending of their name."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset as ds
import pyarrow.fs
import pyarrow.json

from lockgate.errors import SourceError
from lockgate.merging.rows import from_rows

_IN_PLACE = "nothing was written"
_JSON_BLOCK = 64 << 20  # bytes; no JSON object may be longer than a block


def open_path(path: str | os.PathLike[str]) -> pa.RecordBatchReader:
    """The rows of a file, or of a folder of Parquet files with the columns that its folder names hold.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "rows.csv"
    >>> _ = file.write_text('id,name\\n1,x\\n')
    >>> open_path(file).read_all().to_pylist()
    [{'id': 1, 'name': 'x'}]
    """
    place = _local(path)
    try:
        reader = _reader_for(place)(place)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise SourceError(
            f"{str(path)!r} cannot be read: {_first_line(error)}", hint=_DAMAGED, in_place=_IN_PLACE
        ) from error
    return pa.RecordBatchReader.from_batches(reader.schema, _guarded(reader, path))


_DAMAGED = "see whether the file is whole, is what its name says, and may be read by you"


def _guarded(reader: pa.RecordBatchReader, path: Any) -> Iterator[pa.RecordBatch]:
    """A damaged page is found only when it is read."""
    try:
        yield from reader
    except (pa.ArrowException, OSError) as error:
        raise SourceError(
            f"{str(path)!r} cannot be read: {_first_line(error)}", hint=_DAMAGED, in_place=_IN_PLACE
        ) from error


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


def _local(path: str | os.PathLike[str]) -> Path:
    text = os.fspath(path)
    if "://" not in text:
        return Path(text)
    url = urlsplit(text)
    if url.scheme == "file" and not url.netloc:
        return Path(url2pathname(url.path))
    raise SourceError(
        f"{text!r} is not a local path",
        hint="open it with pyarrow, DuckDB or Spark and give the table, reader or DataFrame as the source",
        in_place=_IN_PLACE,
    )


def _reader_for(place: Path) -> Callable[[Path], pa.RecordBatchReader]:
    if not place.exists():
        raise SourceError(
            f"there is no file or folder {str(place)!r}", hint="check the path of the source", in_place=_IN_PLACE
        )
    if place.is_dir():
        return _folder
    if place.suffix.lower() not in _READERS:
        raise SourceError(
            f"the name of {str(place)!r} does not say what it holds",
            hint=f"known endings: {', '.join(_READERS)}; or a folder of Parquet files",
            in_place=_IN_PLACE,
        )
    return _READERS[place.suffix.lower()]


def _folder(place: Path) -> pa.RecordBatchReader:
    if (place / "_delta_log").is_dir():  # its files hold removed rows too
        raise SourceError(
            f"{str(place)!r} is a Delta table, not a folder of Parquet files",
            hint="read it as a table, e.g. lockgate.open_table(…).to_arrow(), and give that as the source",
            in_place=_IN_PLACE,
        )
    files = sorted(_data_files(place))
    if not files:
        raise SourceError(
            f"the folder {str(place)!r} holds no Parquet file", hint="check the path of the source", in_place=_IN_PLACE
        )
    return _parquet(files, ds.FileSystemFactoryOptions(str(place), partitioning=ds.HivePartitioning.discover()))


def _data_files(folder: Path) -> Iterator[str]:
    for parent, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not _is_hidden(name)]
        for name in names:
            if name.lower().endswith(".parquet") and not _is_hidden(name):
                yield os.path.join(parent, name)


def _is_hidden(name: str) -> bool:
    """As in Spark: `_x=1` is a partition of a column `_x`, not a hidden folder."""
    return name.startswith(".") or (name.startswith("_") and "=" not in name)


def _parquet(files: list[str], options: ds.FileSystemFactoryOptions) -> pa.RecordBatchReader:
    factory = ds.FileSystemDatasetFactory(pa.fs.LocalFileSystem(), files, ds.ParquetFileFormat(), options)
    # All files are asked for their columns: by default those that the first file lacks would silently be left out.
    schema = factory.inspect(promote_options="permissive", fragments=None)
    return factory.finish(schema).scanner().to_reader()


def _parquet_file(place: Path) -> pa.RecordBatchReader:
    return _parquet([str(place)], ds.FileSystemFactoryOptions())


def _csv(place: Path) -> pa.RecordBatchReader:
    # Read in whole: a stream would settle the types by its first block. An empty field is NULL, "" is empty text.
    convert = pa.csv.ConvertOptions(null_values=[""], strings_can_be_null=True, quoted_strings_can_be_null=False)
    parse = pa.csv.ParseOptions(newlines_in_values=True)
    return pa.csv.read_csv(str(place), parse_options=parse, convert_options=convert).to_reader()


def _json(place: Path) -> pa.RecordBatchReader:
    with place.open("rb") as file:
        is_array = file.read(256).lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"[")
    if not is_array:
        return pa.json.read_json(str(place), pa.json.ReadOptions(block_size=_JSON_BLOCK)).to_reader()
    rows = json.loads(place.read_bytes())
    if not all(isinstance(row, dict) for row in rows):
        raise ValueError("the array holds something else than objects")
    return from_rows(rows).to_reader()


def _arrow(place: Path) -> pa.RecordBatchReader:
    data = place.read_bytes()  # not mapped: the file may be replaced while its rows are in use
    try:
        return pa.ipc.open_file(data).read_all().to_reader()
    except pa.ArrowInvalid:
        return pa.ipc.open_stream(data).read_all().to_reader()


_READERS: dict[str, Callable[[Path], pa.RecordBatchReader]] = {
    ".parquet": _parquet_file,
    ".csv": _csv,
    ".json": _json,
    ".jsonl": _json,
    ".ndjson": _json,
    ".arrow": _arrow,
    ".feather": _arrow,
}
