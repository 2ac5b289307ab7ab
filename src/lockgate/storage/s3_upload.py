"""An object on its way to S3, a part at a time, several at once; in memory are a few parts, whatever its size."""

from __future__ import annotations

import io
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lockgate.errors import StorageError
from lockgate.storage.local import explained
from lockgate.storage.s3 import S3Storage
from lockgate.storage.s3_address import S3Address

AT_ONCE = 4
_MOST_PARTS = 10_000
_DOUBLES_AFTER = 1_000  # parts: with 8 MiB at first, five TiB fit, which is the most that S3 takes


@dataclass(frozen=True)
class Uploaded:
    """An upload with all its parts, that only has to be completed."""

    address: S3Address
    identity: str
    etags: tuple[str, ...]
    size: int

    def to_json(self) -> dict[str, Any]:
        return {
            "bucket": self.address.bucket,
            "key": self.address.key,
            "upload": self.identity,
            "etags": list(self.etags),
            "size": self.size,
        }

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Uploaded:
        address = S3Address(record["bucket"], record["key"])
        return cls(address, record["upload"], tuple(record["etags"]), record["size"])


class Upload(io.RawIOBase):
    """A file to write to. What was written becomes an `Uploaded` by `finish`."""

    def __init__(self, s3: S3Storage, address: S3Address, identity: str) -> None:
        super().__init__()
        self._s3 = s3
        self._address = address
        self._identity = identity
        self._waiting = bytearray()
        self._sent: list[Future[str]] = []
        self._size = 0
        self._pool = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="upload")

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        piece = memoryview(data).cast("B")
        self._size += len(piece)
        while len(piece):
            room = self._part_size() - len(self._waiting)
            self._waiting += piece[:room]
            piece = piece[room:]
            if len(self._waiting) >= self._part_size():
                self._send()
        return int(memoryview(data).nbytes)

    def _part_size(self) -> int:
        return (self._s3.settings.part_size << 20) << (len(self._sent) // _DOUBLES_AFTER)

    def _send(self) -> None:
        number = len(self._sent) + 1
        if number > _MOST_PARTS:
            raise StorageError(f"{self._address} is larger than an object on S3 can be", hint="write several objects")
        if len(self._sent) >= AT_ONCE:  # before one more is held in memory
            self._sent[-AT_ONCE].result()
        data, self._waiting = bytes(self._waiting), bytearray()
        self._sent.append(self._pool.submit(self._s3.upload_part, self._address, self._identity, number, data))

    def finish(self) -> Uploaded:
        """Send what is left, and wait until S3 has all of it. An empty object has one empty part."""
        if self._waiting or not self._sent:
            self._send()
        etags = tuple(part.result() for part in self._sent)
        return Uploaded(self._address, self._identity, etags, self._size)

    def close(self) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)
        super().close()


def upload_file(s3: S3Storage, address: S3Address, identity: str, file: Path) -> Uploaded:
    """Send a local file to an upload that was begun."""
    with Upload(s3, address, identity) as upload:
        with explained("read", file), file.open("rb") as source:
            while piece := source.read(1 << 20):
                upload.write(piece)
        return upload.finish()
