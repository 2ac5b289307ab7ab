"""The source types a SOURCE may name, and the parameters each takes. Data only: reading them is run/'s work."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any


@dataclass(frozen=True)
class Parameter:
    kinds: tuple[type, ...]
    required: bool = False


_TEXT = Parameter((str,))
_FLAG = Parameter((bool,))
_NAMES = Parameter((list,))
_NUMBER = Parameter((int,))
_INCREMENTAL: Mapping[str, Parameter] = {
    "cursor": _TEXT,
    "lookback": Parameter((str, int, float)),
}
_COMMON: Mapping[str, Parameter] = {
    "path": Parameter((str, list), required=True),
    **_INCREMENTAL,
    "schema": _TEXT,
    "connection": _TEXT,  # of the type s3, for s3:// addresses
    "spark": Parameter((dict,)),  # options for Spark's reader, passed through as they are
}
_TEXT_FILE: Mapping[str, Parameter] = {
    **_COMMON,
    "encoding": _TEXT,
    "compression": _TEXT,
    "multiline": _FLAG,
    "mode": _TEXT,
    "date_format": _TEXT,
    "timestamp_format": _TEXT,
}

SOURCE_TYPES: Mapping[str, Mapping[str, Parameter]] = {
    "CSV": {
        **_TEXT_FILE,
        "header": _FLAG,
        "delimiter": _TEXT,
        "quote": _TEXT,
        "escape": _TEXT,
        "null_value": _TEXT,
        "infer_schema": _FLAG,
    },
    "DELTA": {
        "table": Parameter((str,), required=True),
        "version": Parameter((int,)),
        "timestamp": _TEXT,
        "changes_from": Parameter((int,)),
        "changes_to": Parameter((int,)),
        "changes_key": Parameter((str, list)),
    },
    "JSON": _TEXT_FILE,
    "PARQUET": {**_COMMON, "merge_schema": _FLAG},
    "POSTGRES": {
        "connection": Parameter((str,), required=True),
        "table": _TEXT,
        "query": _TEXT,
        "columns": _NAMES,
        "as_text": _NAMES,
        "partition_column": _TEXT,
        "partitions": _NUMBER,
        "batch_bytes": _NUMBER,
        **_INCREMENTAL,
    },
    "S3": {**_COMMON, "format": _TEXT},  # and what the format takes
}

# Which of them `SOURCE x FROM "connection"` reads from, by the connection's type.
CONNECTION_TYPES = ("POSTGRES",)

_FORMAT_OF_SUFFIX = {".csv": "CSV", ".json": "JSON", ".jsonl": "JSON", ".parquet": "PARQUET"}


def format_of_source(params: Mapping[str, Any]) -> str | None:
    """The type that the objects of a source of TYPE S3 have: what it says, else what the first path's suffix says.

    >>> format_of_source({"path": "s3://lake/users.csv.gz"})
    'CSV'
    """
    named = params.get("format")
    if named is not None:
        return str(named).upper() if str(named).upper() in ("CSV", "JSON", "PARQUET") else None
    path = params.get("path")
    first = str(path[0] if isinstance(path, list) and path else path)
    suffixes = [suffix.lower() for suffix in PurePosixPath(first).suffixes[-2:]]
    return next((_FORMAT_OF_SUFFIX[s] for s in reversed(suffixes) if s in _FORMAT_OF_SUFFIX), None)
