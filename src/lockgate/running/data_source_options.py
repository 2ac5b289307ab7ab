"""The options of `format("lockgate")`, which Spark hands over as texts, as the parameters of a merge or a write."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lockgate.datasets.filesystems import local_root
from lockgate.errors import ArgumentError

_NOTHING = "nothing was written"
_SHORT_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/(?!/)")  # Hadoop's way to write file:///data is file:/data


@dataclass(frozen=True)
class WriteOptions:
    """Where to, and the parameters of `lockgate.merge`, or of `lockgate.write_dataset` where there is no strategy."""

    root: Path
    merges: bool
    parameters: dict[str, Any]


def read_options(options: Mapping[str, str], *, overwrite: bool) -> WriteOptions:
    """Refuse what is unknown or contradicts itself. Values are judged by the function that takes them.

    >>> read_options({"path": "/data", "strategy": "upsert", "keys": "a, b"}, overwrite=False).parameters
    {'strategy': 'upsert', 'key_columns': ['a', 'b']}
    """
    given = {name.lower(): value for name, value in options.items()}
    path = given.pop("path", None)
    unknown = sorted(set(given) - set(_OPTIONS))
    if unknown:
        raise _refused(f"there is no option {', '.join(unknown)}", f"known: {', '.join(_OPTIONS)}")
    merges = "strategy" in given
    if merges and overwrite:
        raise _refused(
            "a merge by a strategy changes what is there, and mode overwrite replaces it",
            'use mode("append") with the strategy, or leave the strategy out',
        )
    if merges and "keys" not in given:
        raise _refused(f"strategy {given['strategy']} needs keys", 'add option("keys", "id")')
    without = [name for name in _OF_MERGES if name in given and not merges]
    if without:
        raise _refused(f"{without[0]} is an option of a merge, and no strategy is given", 'add option("strategy", …)')
    parameters = {_PARAMETERS.get(name, name): _OPTIONS[name](name, value) for name, value in given.items()}
    if not merges:
        parameters["mode"] = "overwrite" if overwrite else "append"
    return WriteOptions(_root(path), merges, parameters)


def _root(path: str | None) -> Path:
    """A relative path is relative to where Spark's driver was started, as it is for Spark's own formats."""
    if not path:
        raise _refused("no path is given", "name the folder of the dataset: save(path)")
    return local_root(_SHORT_URL.sub(r"\1:///", path, count=1) if _SHORT_URL.match(path) else path)


def _text(name: str, value: str) -> str:
    del name
    return value


def _list(name: str, value: str) -> list[str]:
    """Names with commas between them, or a JSON list, for names that have commas themselves."""
    if not value.lstrip().startswith("["):
        return [part.strip() for part in value.split(",")]
    try:
        items = json.loads(value)
    except ValueError:
        items = None
    if not isinstance(items, list) or not all(isinstance(item, str) for item in items):
        raise _refused(f"{name} is not a JSON list of texts: {value}", f'write {name} as "a,b" or as ["a", "b"]')
    return items


def _order(name: str, value: str) -> str | list[str]:
    return _list(name, value) if value.lstrip().startswith("[") else value


def _flag(name: str, value: str) -> bool:
    if value.lower() not in ("true", "false"):
        raise _refused(f"{name} is true or false, not {value!r}")
    return value.lower() == "true"


def _number(name: str, value: str) -> int:
    try:
        return int(value)
    except ValueError:
        raise _refused(f"{name} must be a positive number, not {value!r}") from None


def _seconds(name: str, value: str) -> float:
    try:
        return float(value)
    except ValueError:
        raise _refused(f"{name} must be a number of seconds, not {value!r}") from None


def _engine(name: str, value: str) -> str:
    if value not in ("auto", "arrow", "duckdb"):  # the merge runs beside Spark's driver, without a session
        raise _refused(f"{name} must be auto, arrow or duckdb, not {value!r}")
    return value


_OPTIONS: dict[str, Callable[[str, str], Any]] = {
    "strategy": _text,
    "keys": _list,
    "order_by": _order,
    "partition_by": _list,
    "schema": _text,
    "skip_unchanged": _flag,
    "allow_partition_moves": _flag,
    "compression": _text,
    "max_rows_per_file": _number,
    "row_group_size": _number,
    "engine": _engine,
    "lock_timeout": _seconds,
}
_OF_MERGES = ("keys", "order_by", "skip_unchanged", "allow_partition_moves", "engine")
_PARAMETERS = {"keys": "key_columns"}


def _refused(message: str, hint: str | None = None) -> ArgumentError:
    return ArgumentError(message, hint=hint, in_place=_NOTHING)
