"""Objects on S3, one request at a time. The only place that talks to S3.

Every request that changes something goes through the `_do` of a local storage, so that the storage with which tests
stop, fail and record the steps on a disk does the same with those on S3.
"""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime
from email.utils import parsedate_to_datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

from lockgate.errors import ConfigError, ObjectMissing
from lockgate.storage.local import LocalStorage
from lockgate.storage.s3_address import S3Address
from lockgate.storage.s3_errors import explained
from lockgate.storage.s3_settings import S3Settings

T = TypeVar("T")

_CHUNK = 8 * 2**20


@dataclass(frozen=True)
class S3Object:
    """An object as a request for its head, or a listing, describes it."""

    address: S3Address
    size: int
    etag: str
    metadata: Mapping[str, str] = field(default_factory=dict)  # not in a listing
    age: float = 0.0  # seconds since it was written, by the clock of S3; not in a listing


@dataclass(frozen=True)
class OpenUpload:
    address: S3Address
    identity: str
    begun: datetime


class S3Storage:
    """What a method returns from, S3 has. Requests are tried again with growing pauses, and give up after a while."""

    def __init__(self, settings: S3Settings, steps: LocalStorage | None = None) -> None:
        self.settings = settings
        self._steps = steps or LocalStorage()

    @property
    def _client(self) -> Any:
        # A forked process must not share connections with its parent, and so not its client.
        return _client(self.settings, os.getpid())

    def _change(self, step: str, doing: str, address: S3Address, permission: str, action: Callable[[], T]) -> T:
        with explained(doing, address, permission):
            return self._steps._do(step, Path(address.bucket, address.key), action)

    # looking

    def head(self, address: S3Address) -> S3Object | None:
        """The object, or None if there is none."""
        try:
            with explained("look at", address, "s3:GetObject and s3:ListBucket"):
                found = self._client.head_object(Bucket=address.bucket, Key=address.key)
        except ObjectMissing:
            return None
        return _object(address, found)

    def read(self, address: S3Address) -> tuple[bytes, S3Object] | None:
        """A small object whole, with its head; None if there is none."""
        try:
            with explained("read", address, "s3:GetObject"):
                found = self._client.get_object(Bucket=address.bucket, Key=address.key)
                with closing(found["Body"]) as body:
                    return body.read(), _object(address, found)
        except ObjectMissing:
            return None

    def read_range(self, address: S3Address, start: int, length: int, etag: str) -> bytes:
        """Some bytes of the object, if it is still the one with that ETag."""
        with explained("read", address, "s3:GetObject"):
            wanted = f"bytes={start}-{start + length - 1}"
            found = self._client.get_object(Bucket=address.bucket, Key=address.key, Range=wanted, IfMatch=etag)
            with closing(found["Body"]) as body:
                return bytes(body.read())

    def download(self, address: S3Address, etag: str, take: Callable[[bytes], Any]) -> None:
        """The object a piece at a time, if it is still the one with that ETag."""
        with explained("read", address, "s3:GetObject"):
            found = self._client.get_object(Bucket=address.bucket, Key=address.key, IfMatch=etag)
            with closing(found["Body"]) as body:
                for piece in body.iter_chunks(_CHUNK):
                    take(piece)

    def objects(self, prefix: S3Address) -> Iterator[S3Object]:
        """Every object whose key begins so, in the order of the keys."""
        with explained("list", prefix, "s3:ListBucket"):
            pages = self._client.get_paginator("list_objects_v2")
            for page in pages.paginate(Bucket=prefix.bucket, Prefix=prefix.key):
                for found in page.get("Contents", ()):
                    yield S3Object(S3Address(prefix.bucket, found["Key"]), found["Size"], found["ETag"])

    def uploads(self, prefix: S3Address) -> list[OpenUpload]:
        """The uploads to keys that begin so, which are neither completed nor aborted."""
        with explained("list the open uploads below", prefix, "s3:ListBucketMultipartUploads"):
            pages = self._client.get_paginator("list_multipart_uploads")
            return [
                OpenUpload(S3Address(prefix.bucket, u["Key"]), u["UploadId"], u["Initiated"])
                for page in pages.paginate(Bucket=prefix.bucket, Prefix=prefix.key)
                for u in page.get("Uploads", ())
                if u["Key"].startswith(prefix.key)
            ]

    def parts(self, address: S3Address, upload: str) -> int | None:
        """How many parts an upload has; None if there is no such upload."""
        try:
            with explained("look at an upload to", address, "s3:ListMultipartUploadParts"):
                pages = self._client.get_paginator("list_parts")
                found = pages.paginate(Bucket=address.bucket, Key=address.key, UploadId=upload)
                return sum(len(page.get("Parts", ())) for page in found)
        except ObjectMissing:
            return None

    # changing

    def put(
        self,
        address: S3Address,
        data: bytes,
        *,
        metadata: Mapping[str, str] | None = None,
        if_match: str | None = None,
        new: bool = False,
    ) -> str:
        """Write a small object and return its ETag. `new`: only if there is none; `if_match`: only in place of that
        one; an ObjectChanged says that it is not so."""
        more: dict[str, Any] = {"IfNoneMatch": "*"} if new else {}
        if if_match is not None:
            more["IfMatch"] = if_match

        def put() -> str:
            done = self._client.put_object(
                Bucket=address.bucket,
                Key=address.key,
                Body=data,
                ContentMD5=_md5(data),
                Metadata=dict(metadata or {}),
                **more,
            )
            return str(done["ETag"])

        return self._change("s3 put", "write", address, "s3:PutObject", put)

    def delete(self, address: S3Address, *, if_match: str | None = None) -> None:
        """Remove an object; one that is gone already is fine."""
        more = {} if if_match is None else {"IfMatch": if_match}

        def delete() -> None:
            self._client.delete_object(Bucket=address.bucket, Key=address.key, **more)

        try:
            self._change("s3 delete", "remove", address, "s3:DeleteObject", delete)
        except ObjectMissing:
            return

    def create_upload(self, address: S3Address, metadata: Mapping[str, str]) -> str:
        """Begin an upload that nobody sees until it is completed."""

        def create() -> str:
            begun = self._client.create_multipart_upload(
                Bucket=address.bucket, Key=address.key, Metadata=dict(metadata)
            )
            return str(begun["UploadId"])

        return self._change("s3 create upload", "upload to", address, "s3:PutObject", create)

    def upload_part(self, address: S3Address, upload: str, number: int, data: bytes) -> str:
        def send() -> str:
            sent = self._client.upload_part(
                Bucket=address.bucket,
                Key=address.key,
                UploadId=upload,
                PartNumber=number,
                Body=data,
                ContentMD5=_md5(data),
            )
            return str(sent["ETag"])

        return self._change("s3 upload part", "upload to", address, "s3:PutObject", send)

    def complete(self, address: S3Address, upload: str, etags: Sequence[str], *, new: bool = False) -> None:
        """Make an upload the object of that key, at once. `new`: only if there is none."""
        more: dict[str, Any] = {"IfNoneMatch": "*"} if new else {}
        parts = [{"PartNumber": number, "ETag": etag} for number, etag in enumerate(etags, start=1)]

        def complete() -> None:
            self._client.complete_multipart_upload(
                Bucket=address.bucket, Key=address.key, UploadId=upload, MultipartUpload={"Parts": parts}, **more
            )

        self._change("s3 complete", "complete the upload to", address, "s3:PutObject", complete)

    def abort(self, address: S3Address, upload: str) -> None:
        """End an upload that is not to be completed; one that is gone already is fine."""

        def abort() -> None:
            self._client.abort_multipart_upload(Bucket=address.bucket, Key=address.key, UploadId=upload)

        try:
            self._change("s3 abort", "abort an upload to", address, "s3:AbortMultipartUpload", abort)
        except ObjectMissing:
            return


def _object(address: S3Address, found: Mapping[str, Any]) -> S3Object:
    headers = found["ResponseMetadata"]["HTTPHeaders"]
    now = parsedate_to_datetime(headers["date"]) if "date" in headers else found["LastModified"]
    return S3Object(
        address,
        found["ContentLength"],
        found["ETag"],
        found.get("Metadata", {}),
        max((now - found["LastModified"]).total_seconds(), 0.0),
    )


def _md5(data: bytes) -> str:
    """For S3 to compare: damage on the way is an error, not an object."""
    return base64.b64encode(hashlib.md5(data, usedforsecurity=False).digest()).decode()


@lru_cache(maxsize=16)
def _client(settings: S3Settings, process: int) -> Any:
    del process
    try:
        import boto3
        from botocore.config import Config
        from botocore.exceptions import BotoCoreError
    except ImportError as error:
        raise ConfigError(
            "s3:// addresses need boto3, which is not installed", hint="pip install 'lockgate[s3]'"
        ) from error
    try:
        session = boto3.session.Session(
            aws_access_key_id=settings.access_key_id,
            aws_secret_access_key=settings.secret_access_key,
            aws_session_token=settings.session_token,
            region_name=settings.region or os.environ.get("AWS_REGION"),
            profile_name=settings.aws_profile,
        )
        config = Config(
            retries={"mode": "standard", "total_max_attempts": settings.attempts},
            connect_timeout=settings.connect_timeout,
            read_timeout=settings.timeout,
            max_pool_connections=32,
            s3={"addressing_style": "path"} if settings.path_style else {},
            # Stores that are not Amazon's know the older check of what is sent, which is made of every part.
            request_checksum_calculation="when_required",
            response_checksum_validation="when_required",
        )
        region = session.region_name or "us-east-1"
        return session.client("s3", endpoint_url=settings.endpoint, region_name=region, config=config)
    except (BotoCoreError, ValueError) as error:
        raise ConfigError(f"S3 cannot be used as it is set: {error}", hint="check the connection's settings") from error
