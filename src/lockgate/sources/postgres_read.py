"""What is read, and how it is divided: everything a worker must know, in a form that can be sent to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from lockgate.identifiers import double_quoted
from lockgate.sources.conditions import Condition, rendered
from lockgate.sources.postgres_session import Access
from lockgate.sources.postgres_types import ReadColumn

# Of the session, so that what the server says as text does not depend on how its users like to see it.
_TEXT_FORMS = (("intervalstyle", "iso_8601"), ("datestyle", "ISO, YMD"), ("bytea_output", "hex"))


@dataclass(frozen=True)
class PostgresRead:
    source: str
    access: Access
    relation: str  # what stands behind FROM
    columns: tuple[ReadColumn, ...]
    partitions: tuple[Condition | None, ...] = (None,)
    conditions: tuple[Condition, ...] = ()
    batch_bytes: int = 16 * 2**20

    def narrowed(self, conditions: Sequence[Condition]) -> PostgresRead:
        return replace(self, conditions=(*self.conditions, *conditions))

    def query(self, partition: int) -> tuple[str, tuple[tuple[str, str], ...]]:
        """The SELECT of one partition, and the settings of its transaction."""
        part = self.partitions[partition]
        where, values = rendered([*self.conditions, *([part] if part else [])])
        asked = [f"{c.sql} AS {double_quoted(c.name)}" for c in self.columns]
        # Arrow has no arrays of more than one dimension, so theirs are asked for too.
        asked += [f"array_ndims({c.quoted})" for c in self.arrays]
        return f"SELECT {', '.join(asked)} FROM {self.relation} WHERE {where}", (*_TEXT_FORMS, *values)

    @property
    def arrays(self) -> tuple[ReadColumn, ...]:
        return tuple(c for c in self.columns if c.kind == "array")
