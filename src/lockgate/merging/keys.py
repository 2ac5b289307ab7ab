"""The names of the key columns, as a caller may spell them."""

from __future__ import annotations

from collections.abc import Sequence

from lockgate.errors import SchemaMismatchError

_HINT = 'name the column or columns that identify a row: key_columns="id" or key_columns=["id", "day"]'


def normalize_keys(key_columns: str | Sequence[str]) -> list[str]:
    """The key columns as a list; one string is one key.

    >>> normalize_keys("id")
    ['id']
    >>> normalize_keys(("id", "day"))
    ['id', 'day']
    """
    if isinstance(key_columns, str):
        keys: list[object] = [key_columns]
    elif isinstance(key_columns, Sequence):
        keys = list(key_columns)
    else:
        raise _refused(f"key_columns must be a string or a list of strings, not {type(key_columns).__name__}")
    if not keys:
        raise _refused("key_columns is empty: a merge needs at least one key column")
    names: list[str] = []
    for key in keys:
        if not isinstance(key, str):
            raise _refused(f"a key column must be named by a string, not by {key!r}")
        if not key:
            raise _refused("a key column has an empty name")
        if key in names:
            raise _refused(f'key column "{key}" is named twice')
        names.append(key)
    return names


def _refused(message: str) -> SchemaMismatchError:
    return SchemaMismatchError(message, hint=_HINT, in_place="nothing was written")
