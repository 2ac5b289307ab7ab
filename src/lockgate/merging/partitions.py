"""Hive partitions: values that live in folder names such as `day=2026-01-01/city=New%2FYork`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import unquote, unquote_to_bytes

import pyarrow as pa

from lockgate.errors import SchemaMismatchError
from lockgate.merging import partition_texts
from lockgate.merging.partition_texts import column_texts, value_text

__all__ = [
    "NULL_PARTITION",
    "column_texts",
    "parse_hive_partition_path",
    "partition_folder",
    "typed_value",
    "value_text",
]

NULL_PARTITION = "__HIVE_DEFAULT_PARTITION__"
_ESCAPED = frozenset(map(chr, range(0x20))) | frozenset("\"#%'*/:=?\\{[]^\x7f")


def parse_hive_partition_path(file_path: str, partition_columns: Sequence[str] | None = None) -> dict[str, Any]:
    """The partition values in the folders above a file, as text; with `partition_columns` only these, in that order.

    >>> parse_hive_partition_path("/data/year=2024/month=12/file.parquet")
    {'year': '2024', 'month': '12'}
    """
    found: dict[str, Any] = {}
    if "=" in file_path:
        for folder in file_path.split("/")[:-1]:
            name, equals, text = folder.partition("=")
            if name and equals:
                found[_unescaped(name)] = None if text == NULL_PARTITION else _unescaped(text)
    if partition_columns is None:
        return found
    return {column: found[column] for column in partition_columns if column in found}


def typed_value(text: str | None, type: pa.DataType, column: str) -> Any:
    """A partition's text as a Python value of that Arrow type.

    Nanoseconds that no Python datetime can hold come as the number since the epoch, which Arrow takes as well.

    >>> typed_value("007", pa.int32(), "code")
    7
    """
    if text is None:
        return None
    try:
        return partition_texts.parsed(text, type)
    except (ValueError, ArithmeticError, OverflowError, TypeError, pa.ArrowException) as error:
        raise SchemaMismatchError(
            f"the partition {column}={text} is no {type}",
            in_place="nothing was written",
            hint=f"give the partition column {column} a type that all its folders have, or rename the folder",
        ) from error


def partition_folder(names: Sequence[str], texts: Sequence[str | None]) -> str:
    """The folder of a partition, escaped as Hive and Spark escape it.

    >>> partition_folder(["day", "city"], ["2026-01-01", "New/York"])
    'day=2026-01-01/city=New%2FYork'
    """
    return "/".join(
        f"{_folder_name(name)}={_folder_value(name, text)}" for name, text in zip(names, texts, strict=True)
    )


def _folder_name(name: str) -> str:
    if not name or name.startswith("."):
        raise SchemaMismatchError(
            f"a folder for the partition column {name!r} would be hidden from every reader",
            in_place="nothing was written",
            hint="rename the column",
        )
    return _escaped(name)


def _folder_value(column: str, text: str | None) -> str:
    if text is None:
        return NULL_PARTITION
    if text in ("", NULL_PARTITION):
        raise SchemaMismatchError(
            f"the value {text!r} of the partition column {column} would be read back as NULL",
            in_place="nothing was written",
            hint="use NULL itself, or another value",
        )
    return _escaped(text)


def _escaped(text: str) -> str:
    if _ESCAPED.isdisjoint(text):
        return text
    return "".join(f"%{ord(c):02X}" if c in _ESCAPED else c for c in text)


def _unescaped(text: str) -> str:
    if "%" not in text:
        return text
    try:
        return unquote(text, errors="strict")
    except UnicodeDecodeError:  # not UTF-8, then one character an escape, as Hive reads it
        return unquote_to_bytes(text).decode("latin-1") if text.isascii() else text
