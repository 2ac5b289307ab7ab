"""The source types a SOURCE may name, and the parameters each takes. Data only: reading them is run/'s work."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Parameter:
    kinds: tuple[type, ...]
    required: bool = False


_TEXT = Parameter((str,))
_FLAG = Parameter((bool,))
_COMMON: Mapping[str, Parameter] = {
    "path": Parameter((str, list), required=True),
    "schema": _TEXT,
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
}
