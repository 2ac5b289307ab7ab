"""Which folder of this machine, or which prefix of S3, a path and a filesystem mean."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from lockgate.errors import ArgumentError, StorageError
from lockgate.storage.local import explained
from lockgate.storage.s3_address import S3Address, is_s3, parse_address


def local_root(path: str | Path, filesystem: Any = None) -> Path:
    """The dataset's folder. A filesystem that is not local cannot be merged into in this version, and is refused.

    >>> local_root("/data/orders").as_posix()
    '/data/orders'
    """
    text = str(path)
    if not text or "\0" in text or not _is_text(text):
        raise ArgumentError(f"{text!r} is not a path", in_place="nothing was written")
    parts = urlsplit(text)
    if parts.scheme == "file" and "://" in text:
        text = unquote(parts.path)
    elif "://" in text:
        raise _unavailable(parts.scheme)
    if filesystem is not None and not _is_local(filesystem):
        raise _unavailable(str(getattr(filesystem, "type_name", None) or getattr(filesystem, "protocol", filesystem)))
    try:
        with explained("look at", Path(text)):
            root = Path(text).resolve()
            is_file = root.is_file()
    except StorageError as error:
        error.in_place = "nothing was written"
        raise
    if is_file:
        raise ArgumentError(
            f"{text!r} is a file; merges and dataset writes go to a folder of Parquet files",
            in_place="nothing was written",
            hint="name the folder that holds the file",
        )
    return root


def s3_root(path: str | Path, filesystem: Any = None) -> S3Address | None:
    """The prefix of a dataset on S3; None if the path names none.

    >>> s3_root("/data/orders") is None
    True
    """
    text = str(path)
    if not is_s3(text):
        return None
    if filesystem is not None:
        raise ArgumentError(
            "a dataset at an s3:// address is reached by the profile's connection or the AWS variables, not by a "
            "filesystem that is given",
            in_place="nothing was written",
            hint="leave filesystem out; endpoint and credentials come from a connection of the type s3",
        )
    try:
        address = parse_address(text)
    except ValueError as error:
        raise ArgumentError(str(error), in_place="nothing was written") from None
    if address.key.lower().endswith(".parquet"):
        raise ArgumentError(
            f"{text!r} is an object; merges and dataset writes go to a prefix of Parquet objects",
            in_place="nothing was written",
            hint="name the prefix that holds the object",
        )
    return address


def _is_text(path: str) -> bool:
    """Names that are not UTF-8 cannot be put into a journal, nor into an Arrow table of files."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_local(filesystem: Any) -> bool:
    if getattr(filesystem, "type_name", "") == "local":  # pyarrow
        return True
    protocol = getattr(filesystem, "protocol", "")  # fsspec
    return "file" in ((protocol,) if isinstance(protocol, str) else tuple(protocol))


def _unavailable(name: str) -> ArgumentError:
    return ArgumentError(
        f"datasets on {name!r} are not available in this version",
        in_place="nothing was written",
        hint="use a local folder or an s3:// address",
    )
