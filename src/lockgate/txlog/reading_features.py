"""What a reader of a table's files must understand, and that nobody reads them who does not.

Whoever asks for a snapshot says which of these features it keeps right. All others are refused by name, so that no
part of the program can show a row that is deleted, or miss a column that was renamed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from lockgate.errors import UnsupportedFeature
from lockgate.txlog.actions import Action, Add, Metadata, Remove
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
    vectors = files.column("deletion_vector")
    _refuse(table, version, _used(metadata, vectors.null_count < len(vectors)), understood)


def require_actions_understood(
    table: str, version: int, actions: Iterable[Action], understood: Collection[str]
) -> None:
    """The same for the files that join and leave with a version."""
    for action in actions:
        if isinstance(action, Metadata):
            _refuse(table, version, _used(action, False), understood)
        elif isinstance(action, (Add, Remove)) and action.deletion_vector is not None:
            _refuse(table, version, [DELETION_VECTORS], understood)


def _used(metadata: Metadata, vectors: bool) -> list[str]:
    mapped = mapping_mode(metadata.configuration) != "none"
    return [COLUMN_MAPPING] * mapped + [DELETION_VECTORS] * vectors


def _refuse(table: str, version: int, used: Iterable[str], understood: Collection[str]) -> None:
    for feature in used:
        if feature not in understood:
            raise UnsupportedFeature(
                f"{table} at version {version} uses the Delta feature {feature}, which this cannot do yet",
                feature=feature,
                hint="read it with Table.to_arrow(); to change it with another engine, release it first "
                f"(`lockgate table release {table}`)",
            )
