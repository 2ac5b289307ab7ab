"""Python dicts as a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa


def from_rows(rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """One row a dict; what a dict lacks is NULL. Arrow's own from_pylist takes the names of the first dict alone.

    >>> from_rows([{"id": 1}, {"id": 2, "name": "x"}]).to_pylist()
    [{'id': 1, 'name': None}, {'id': 2, 'name': 'x'}]
    """
    names = dict.fromkeys(name for row in rows for name in row)
    return pa.table({name: [row.get(name) for row in rows] for name in names})
