"""Which partitions of a dataset a source has rows for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from lockgate.errors import SchemaMismatchError
from lockgate.merging.partitions import column_texts, typed_value

_UNKNOWN = object()


class SourcePartitions:
    """The partitions that a source has rows for; NULL is one of them.

    >>> days = SourcePartitions(pa.table({"id": [1], "day": ["2025-01-01"]}))
    >>> days.may_hold({"day": "2025-01-01"}), days.may_hold({"day": "2025-01-02"}), days.may_hold(None)
    (True, False, True)
    """

    def __init__(self, source: pa.Table, schema: pa.Schema | None = None) -> None:
        self._columns = {name: source.column(i) for i, name in enumerate(source.column_names)}
        self._types = {name: _type_of(name, column, schema) for name, column in self._columns.items()}
        self._combinations: dict[tuple[str, ...], set[tuple[Any, ...]] | None] = {}
        self._answers: dict[tuple[tuple[str, Any], ...], bool] = {}

    def may_hold(self, partition: Mapping[str, Any] | None) -> bool:
        """Whether rows of the source may belong there. What is not known, or not of the column's type, may."""
        if not partition:
            return True
        common = tuple((name, value) for name, value in partition.items() if name in self._columns)
        if not common:
            return True
        try:
            return self._answers[common]
        except KeyError:
            answer = self._answers[common] = self._may_hold(common)
            return answer

    def _may_hold(self, common: tuple[tuple[str, Any], ...]) -> bool:
        known = [(name, text) for name, value in common if (text := self._text(name, value)) is not _UNKNOWN]
        if not known:
            return True
        combinations = self._combinations_of(tuple(name for name, _ in known))
        return combinations is None or tuple(text for _, text in known) in combinations

    def _text(self, name: str, value: Any) -> Any:
        """The one spelling of a value, so that 007 and 7 are the same number."""
        type = self._types[name]
        try:
            typed = typed_value(value, type, name) if isinstance(value, str) else value
            return column_texts(pa.array([typed], type))[0]
        except (SchemaMismatchError, pa.ArrowException, ValueError, TypeError):
            return _UNKNOWN

    def _combinations_of(self, names: tuple[str, ...]) -> set[tuple[Any, ...]] | None:
        if names not in self._combinations:
            self._combinations[names] = self._spell(names)
        return self._combinations[names]

    def _spell(self, names: Sequence[str]) -> set[tuple[Any, ...]] | None:
        try:
            texts = [column_texts(self._columns[name].cast(self._types[name])) for name in names]
        except (SchemaMismatchError, pa.ArrowException, ValueError):
            return None
        return set(zip(*texts, strict=True))


def _type_of(name: str, column: pa.ChunkedArray, schema: pa.Schema | None) -> pa.DataType:
    type = column.type
    if schema is not None and schema.get_field_index(name) >= 0:
        type = schema.field(name).type
    return type.value_type if pa.types.is_dictionary(type) else type
