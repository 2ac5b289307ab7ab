"""Paths that a Delta log names, checked before anything is done with them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from urllib.parse import unquote, urlsplit

from lockgate.errors import DamagedLog

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_BROKEN_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_KNOWN_SCHEMES = ("file", "s3", "s3a")
# A path that can hold nothing surprising; most do, and are done with after one look.
_HARMLESS = re.compile(r"(?!\.\.?(?:/|$))[\w=.,+@~-]+(?:/(?!\.\.?(?:/|$))[\w=.,+@~-]+)*", re.ASCII)


def check_paths(paths: Iterable[str], where: str) -> None:
    """Refuse a path that leaves its table, or that could be read in two ways.

    >>> check_paths(["day=1/a.parquet", "s3://bucket/shallow/clone.parquet"], "t")
    """
    for path in paths:
        if not _HARMLESS.fullmatch(path):
            _check(path, where)


def is_absolute(path: str) -> bool:
    """Whether a path of the log stands for itself, as in a shallow clone, and not for a file below the table.

    >>> is_absolute("s3://lake/orders/a.parquet"), is_absolute("day=1/a.parquet")
    (True, False)
    """
    return path.startswith("/") or _SCHEME.match(path) is not None


def _check(path: str, where: str) -> None:
    if not path:
        raise DamagedLog(f"{where} names a file with an empty path")
    if _BROKEN_ESCAPE.search(path):
        raise DamagedLog(f"{where} names the file {path!r}, which is no URI: a % that encodes nothing")
    try:
        decoded = unquote(path, errors="strict")
    except UnicodeDecodeError:
        raise DamagedLog(f"{where} names the file {path!r}, whose decoded path is not UTF-8") from None
    if any(ord(character) < 32 or ord(character) == 127 for character in decoded):
        raise DamagedLog(f"{where} names the file {path!r}, whose path has a control character")
    if is_absolute(path):
        _check_absolute(path, where)
    if ".." in decoded.split("/"):
        raise DamagedLog(
            f"{where} names the file {path!r}, which leaves the table by '..'",
            hint="a file elsewhere must be named by its absolute path, as a shallow clone does",
        )
    parts = decoded.split("/")
    if not is_absolute(path) and (parts[-1] in ("", ".") or parts[0] == "_delta_log"):
        raise DamagedLog(f"{where} names {path!r}, which is no data file of the table")


def _check_absolute(path: str, where: str) -> None:
    parts = urlsplit(path)
    if parts.scheme and parts.scheme.lower() not in _KNOWN_SCHEMES:
        raise DamagedLog(
            f"{where} names the file {path!r}, and files of {parts.scheme}: cannot be read here",
            hint="only tables whose files lie on local disks or in S3 can be imported",
        )
    if parts.scheme.lower() == "file" and parts.netloc not in ("", "localhost"):
        raise DamagedLog(f"{where} names the file {path!r}, which is on another machine")
    if parts.query or parts.fragment:
        raise DamagedLog(f"{where} names the file {path!r}, whose ? or # is not encoded")
