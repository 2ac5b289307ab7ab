"""Local copies of objects, as far as they are needed: at first the footers alone, in files that are otherwise holes.

So engines open files by path, and of a dataset only those are downloaded whole that may hold a key of the source.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Lock
from typing import TypeVar

from lockgate.errors import DatasetMergeError, ObjectChanged, ObjectMissing
from lockgate.storage.local import explained
from lockgate.storage.s3 import S3Object, S3Storage

T = TypeVar("T")

_TAIL = 64 * 2**10  # of a file: most footers are smaller
_END = 8  # the length of the footer, and PAR1
_AT_ONCE = 16


class Mirror:
    """Files in a scratch folder, by the names that their objects have in the dataset."""

    def __init__(self, s3: S3Storage, folder: Path, objects: Mapping[str, S3Object]) -> None:
        self._s3 = s3
        self._folder = folder
        self._objects = objects
        self._paths = {name: folder / f"{number:06d}.parquet" for number, name in enumerate(objects)}
        self._names = {str(path): name for name, path in self._paths.items()}
        self._whole: set[str] = set()
        self._have_footers = False
        self._lock = Lock()
        self.downloaded = 0  # bytes

    def path_of(self, name: str) -> str:
        """Where the file is, whose footer can be read there."""
        with self._lock:
            if not self._have_footers:
                self._each(self._objects, self._bring_footer)
                self._have_footers = True
        return str(self._paths[name])

    def bring(self, paths: Iterable[str]) -> None:
        """Have these files whole."""
        with self._lock:
            names = [self._names[path] for path in paths if path in self._names]
            self._each([n for n in dict.fromkeys(names) if n not in self._whole], self._bring_whole)

    def _each(self, names: Iterable[str], work: Callable[[str], None]) -> None:
        with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="download") as pool:
            try:
                for _ in pool.map(work, names):
                    pass
            except (ObjectChanged, ObjectMissing) as error:
                pool.shutdown(wait=True, cancel_futures=True)
                raise DatasetMergeError(
                    f"{error.message}: another writer has changed it meanwhile", hint="try again"
                ) from error
            except BaseException:
                pool.shutdown(wait=True, cancel_futures=True)
                raise

    def _bring_footer(self, name: str) -> None:
        found, path = self._objects[name], self._paths[name]
        with explained("write", path):
            self._folder.mkdir(parents=True, exist_ok=True)
            path.touch()
        if found.size <= 2 * _TAIL:
            self._bring_whole(name)
            return
        start = found.size - _TAIL
        tail = self._s3.read_range(found.address, start, _TAIL, found.etag)
        length = int.from_bytes(tail[-_END:-4], "little") + _END
        if _TAIL < length <= found.size:
            start = found.size - length
            tail = self._s3.read_range(found.address, start, length, found.etag)
        with explained("write", path), path.open("r+b") as file:
            file.truncate(found.size)
            file.write(b"PAR1")  # as every such file begins; DuckDB looks
            file.seek(start)
            file.write(tail)
        self.downloaded += len(tail)
        self._bring_filters(name, start)

    def _bring_filters(self, name: str, have_from: int) -> None:
        """Bloom filters are looked at before it is known which files are needed. A hole must not be taken for one."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        path, found = self._paths[name], self._objects[name]
        try:
            footer = pq.read_metadata(path)
        except (pa.ArrowException, OSError):  # no Parquet; who reads it says so better
            return
        chunks = [
            group.column(i)
            for group in (footer.row_group(n) for n in range(footer.num_row_groups))
            for i in range(group.num_columns)
        ]
        filters = [c for c in chunks if c.bloom_filter_offset is not None]
        if not filters:
            return
        if any(c.bloom_filter_length is None for c in filters):
            self._bring_whole(name)
            return
        start = min(c.bloom_filter_offset for c in filters)
        stop = min(max(c.bloom_filter_offset + c.bloom_filter_length for c in filters), have_from)
        if stop > start:
            data = self._s3.read_range(found.address, start, stop - start, found.etag)
            with explained("write", path), path.open("r+b") as file:
                file.seek(start)
                file.write(data)
            self.downloaded += len(data)

    def _bring_whole(self, name: str) -> None:
        found, path = self._objects[name], self._paths[name]
        with explained("write", path), path.open("r+b") as file:
            self._s3.download(found.address, found.etag, file.write)
        self.downloaded += found.size
        self._whole.add(name)
