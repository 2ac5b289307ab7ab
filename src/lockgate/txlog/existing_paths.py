"""Paths that a Delta log names, checked before anything is done with them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from urllib.parse import unquote

from lockgate.errors import DamagedLog

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_BROKEN_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
# A path that can hold nothing surprising; most do, and are done with after one look.
_HARMLESS = re.compile(r"(?!_delta_log/)(?:[A-Za-z0-9_=,+@~-][\w=.,+@~-]*/)*[A-Za-z0-9_=,+@~-][\w=.,+@~-]*", re.ASCII)


def check_paths(paths: Iterable[str], where: str) -> None:
    """Refuse a path that leaves its table, or that could be read in two ways.

    >>> check_paths(["day=1/a.parquet", "day=a%20b/50%25.parquet"], "t")
    """
    for path in paths:
        if not _HARMLESS.fullmatch(path):
            _check(path, where)


def _check(path: str, where: str) -> None:
    problem = _problem(path)
    if problem is not None:
        raise DamagedLog(f"{where} names the file {path!r}: {problem}")
    if _SCHEME.match(path) or path.startswith("/"):
        raise DamagedLog(
            f"{where} names the file {path!r}, which is absolute, as in a shallow clone; the table could lose such a "
            "file to whoever owns it",
            hint="make the table whole first (a deep clone of it), then import that",
        )


def _problem(path: str) -> str | None:
    if not path:
        return "its path is empty"
    if _BROKEN_ESCAPE.search(path):
        return "it is no URI, as a % in it encodes nothing"
    try:
        decoded = unquote(path, errors="strict")
    except UnicodeDecodeError:
        return "decoded, it is not UTF-8"
    if any(ord(character) < 32 or ord(character) == 127 for character in decoded):
        return "it has a control character"
    if "?" in path or "#" in path:
        return "a ? or # in it is not encoded"
    parts = decoded.split("/")
    if ".." in parts:
        return "it leaves the table by '..'"
    if parts[-1] in ("", ".") or parts[0] == "_delta_log":
        return "it is no data file of the table"
    return None
