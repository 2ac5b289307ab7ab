"""Which DuckDB a connection talks to, and so whether it knows MERGE."""

from __future__ import annotations

import logging
import re
from contextlib import closing
from typing import Any
from weakref import WeakKeyDictionary

import duckdb

from lockgate.errors import DatasetMergeError

log = logging.getLogger("lockgate.merge")

Version = tuple[int, int, int]
MERGE_SINCE: Version = (1, 4, 0)
UNKNOWN: Version = (0, 0, 0)

_known: WeakKeyDictionary[Any, Version] = WeakKeyDictionary()


def parse_version(text: str) -> Version:
    """The three numbers of a version.

    >>> parse_version("v2.0.0"), parse_version("10.2.3")
    ((2, 0, 0), (10, 2, 3))
    """
    match = re.match(r"v?(\d+)\.(\d+)\.(\d+)", text.strip())
    if match is None:
        raise ValueError(f"{text!r} is not a version")
    major, minor, patch = (int(part) for part in match.groups())
    return major, minor, patch


def duckdb_version(connection: Any) -> Version:
    """The version behind a connection, asked once. One that cannot be told is taken for one without MERGE."""
    try:
        if connection in _known:
            return _known[connection]
    except TypeError:  # cannot be remembered; ask each time
        return _asked(connection)
    version = _asked(connection)
    _known[connection] = version
    return version


def _asked(connection: Any) -> Version:
    try:
        # On a cursor, so that a result which the caller has not read to its end is left alone.
        with closing(connection.cursor()) as cursor:
            ((text,),) = cursor.execute("SELECT library_version FROM pragma_version()").fetchall()
        return parse_version(str(text))
    except (duckdb.Error, ValueError, TypeError, IndexError) as error:
        log.warning("Could not determine DuckDB version: %s", error)
        return UNKNOWN


def supports_merge(version: Version) -> bool:
    return version >= MERGE_SINCE


def uses_merge(connection: Any, wanted: bool | None) -> bool:
    """Whether to decide by MERGE; says so in the log."""
    if wanted is False:
        log.info("Using UNION ALL (explicitly requested)")
        return False
    version = duckdb_version(connection)
    if wanted and not supports_merge(version):
        shown = ".".join(str(part) for part in version)
        raise DatasetMergeError(
            "DuckDB MERGE requested but not available. "
            f"Required version: >= {'.'.join(map(str, MERGE_SINCE))}, Current: {shown}",
            hint="upgrade duckdb, or pass use_merge=False",
        )
    if wanted:
        log.info("Using DuckDB MERGE (explicitly requested)")
        return True
    if supports_merge(version):
        log.info("Using DuckDB MERGE for merge operation (auto-detected)")
        return True
    log.info("Using UNION ALL fallback for merge operation (DuckDB < 1.4.0 or MERGE unavailable)")
    return False
