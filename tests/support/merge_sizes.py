"""Rows that do not compress, so that a file of them has a size one can rely on."""

from __future__ import annotations

import random

import pyarrow as pa

ROWS = 2_000


def large_rows(value: str) -> pa.Table:
    noise = random.Random(value)
    ids = [2 * number if value == "new" else number for number in range(ROWS)]
    return pa.table({"id": ids, "v": [value + noise.randbytes(50).hex() for _ in ids]})
