"""How many rows of a column are NULL, whatever way the column is packed."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc


def null_rows(column: Any) -> int:
    """The number of NULLs. `null_count` alone misses those inside a dictionary or a run of equal values.

    >>> null_rows(pa.DictionaryArray.from_arrays([0, 1, 1], ["a", None]))
    2
    """
    type_ = getattr(column, "type", None)
    if type_ is not None and (pa.types.is_dictionary(type_) or pa.types.is_run_end_encoded(type_)):
        return int(pc.sum(pc.is_null(column)).as_py() or 0)
    return int(getattr(column, "null_count", 0))
