"""Addresses of objects, `s3://bucket/key`. Light: `lockgate check` reads them."""

from __future__ import annotations

import re
from dataclasses import dataclass

SCHEME = "s3://"
LONGEST_KEY = 1024  # bytes, as S3 has it
_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,253}[A-Za-z0-9]")


@dataclass(frozen=True)
class S3Address:
    bucket: str
    key: str

    def __str__(self) -> str:
        return f"{SCHEME}{self.bucket}/{self.key}"

    @property
    def name(self) -> str:
        """What stands behind the last slash."""
        return self.key.rpartition("/")[2]

    def beside(self, name: str) -> S3Address:
        """Another object in the same place."""
        folder, slash, _ = self.key.rpartition("/")
        return S3Address(self.bucket, f"{folder}{slash}{name}")

    def inside(self, name: str) -> S3Address:
        """An object below this prefix.

        >>> str(parse_address("s3://lake/daily").inside("a.parquet"))
        's3://lake/daily/a.parquet'
        """
        prefix = self.key.rstrip("/")
        return S3Address(self.bucket, f"{prefix}/{name}" if prefix else name)


def is_s3(text: str) -> bool:
    return text[: len(SCHEME)].lower() == SCHEME


def parse_address(text: str) -> S3Address:
    """The address that a text names; a ValueError says why it names none.

    >>> parse_address("s3://lake/out/daily.csv").key
    'out/daily.csv'
    """
    bucket, _, key = text[len(SCHEME) :].partition("/")
    if not _BUCKET.fullmatch(bucket):
        raise ValueError(f"{text!r} names no bucket: {bucket!r} cannot be the name of one")
    if not _is_text(key) or "\0" in key:
        raise ValueError(f"{text!r} cannot be the address of an object: its key is no text")
    if len(key.encode()) > LONGEST_KEY:
        raise ValueError(f"the key of {text!r} is longer than the {LONGEST_KEY} bytes that S3 takes")
    if {".", ".."} & set(key.split("/")):
        raise ValueError(f"{text!r} has the part '.' or '..', which S3 does not take for folders")
    return S3Address(bucket, key)


def _is_text(key: str) -> bool:
    try:
        key.encode()
    except UnicodeEncodeError:
        return False
    return True
