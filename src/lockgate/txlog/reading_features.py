"""What a reader of a table's files must understand, and that nobody reads them who does not.

Whoever asks for a snapshot says which of these features it keeps right. All others are refused by name, so that no
part of the program can show a row that is deleted, or miss a column that was renamed.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from lockgate.errors import UnsupportedFeature
from lockgate.txlog.actions import Metadata
from lockgate.txlog.column_mapping import mapping_mode

if TYPE_CHECKING:
    import pyarrow as pa

DELETION_VECTORS = "deletionVectors"
COLUMN_MAPPING = "columnMapping"
BOTH = frozenset({DELETION_VECTORS, COLUMN_MAPPING})


def require_understood(
    table: str, version: int, metadata: Metadata, files: pa.Table, understood: Collection[str]
) -> None:
    """Refuse to show the files of a version to somebody who would misread them.

    >>> import pyarrow as pa
    >>> mapped = Metadata("t", "{}", configuration={"delta.columnMapping.mode": "name"})
    >>> require_understood("t", 3, mapped, pa.table({"deletion_vector": pa.nulls(1)}), ())
    Traceback (most recent call last):
    ...
    lockgate.errors.UnsupportedFeature: t at version 3 uses the Delta feature columnMapping, which this cannot do yet
    """
    used = []
    if mapping_mode(metadata.configuration) != "none":
        used.append(COLUMN_MAPPING)
    vectors = files.column("deletion_vector")
    if vectors.null_count < len(vectors):
        used.append(DELETION_VECTORS)
    for feature in used:
        if feature not in understood:
            raise UnsupportedFeature(
                f"{table} at version {version} uses the Delta feature {feature}, which this cannot do yet",
                feature=feature,
                hint="read it with Table.to_arrow(); to change it with another engine, release it first "
                f"(`lockgate table release {table}`)",
            )
