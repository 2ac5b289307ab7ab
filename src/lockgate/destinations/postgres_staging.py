"""The staging table on the server: temporary and filled by one COPY, or an unlogged one that several fill at once."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from lockgate.config import Profile
from lockgate.destinations.postgres_columns import ORDINAL, Column
from lockgate.destinations.postgres_options import Wanted
from lockgate.destinations.postgres_rows import reader
from lockgate.destinations.postgres_session import Session, session
from lockgate.identifiers import double_quoted

_TEMPORARY = "lockgate_staged"


@dataclass(frozen=True)
class StagingTable:
    """Filled outside of the transaction that swaps it in, if it is in a schema; else it lives and dies with that."""

    name: str
    schema: str | None = None

    @classmethod
    def of(cls, wanted: Wanted) -> StagingTable:
        if wanted.parallel > 1:
            # Known before it is made, so that whoever comes after a crash can remove it.
            mark = hashlib.sha256(wanted.identity.encode()).hexdigest()[:24]
            return cls(f"lockgate_staged_{mark}", wanted.staging_schema)
        return cls(_TEMPORARY)

    @property
    def sql(self) -> str:
        return f"{double_quoted(self.schema or 'pg_temp')}.{double_quoted(self.name)}"

    def make(self, opened: Session, columns: Sequence[Column], *, numbered: bool) -> None:
        fields = [f"{c.staged_name} {c.fit.staged}" for c in columns] + ([f"{ORDINAL} bigint"] if numbered else [])
        if self.schema is None:
            opened.run(f"CREATE TEMPORARY TABLE {double_quoted(self.name)} ({', '.join(fields)}) ON COMMIT DROP")
            return
        self.drop(opened)  # what an earlier try left
        opened.run(f"CREATE UNLOGGED TABLE {self.sql} ({', '.join(fields)})")

    def drop(self, opened: Session) -> None:
        opened.run(f"DROP TABLE IF EXISTS {self.sql}")

    def fill(self, opened: Session, parts: Sequence[Path], columns: Sequence[Column], *, numbered: bool) -> int:
        return opened.copy(self.name, self.schema, reader(parts, columns, numbered=numbered))


@dataclass(frozen=True)
class ParallelFill:
    """Several COPYs at once into one unlogged table, each on a connection of its own."""

    table: StagingTable
    profile: Profile
    wanted: Wanted
    columns: Sequence[Column]
    numbered: bool

    def run(self, parts: Sequence[Path]) -> int:
        with session(self.profile, self.wanted.connection) as opened:
            self.table.make(opened, self.columns, numbered=self.numbered)
        streams = list(_shares(parts, self.wanted.parallel, whole=self.numbered))
        with ThreadPoolExecutor(len(streams)) as pool:
            counts = [pool.submit(self._stream, share) for share in streams]
            return sum(count.result() for count in counts)

    def _stream(self, parts: Sequence[Path]) -> int:
        with session(self.profile, self.wanted.connection) as opened:
            return self.table.fill(opened, parts, self.columns, numbered=self.numbered)

    def clean_up(self) -> None:
        """After an error that is told already: what cannot be dropped now is dropped when the run is discarded."""
        with suppress(Exception), session(self.profile, self.wanted.connection) as opened:
            self.table.drop(opened)


def _shares(parts: Sequence[Path], streams: int, *, whole: bool) -> Iterator[list[Path]]:
    """The parts dealt out by size, the largest first. Where rows are numbered their order is kept: one stream."""
    if whole:
        yield list(parts)
        return
    shares: list[list[Path]] = [[] for _ in range(min(streams, len(parts)))]
    sizes = [0] * len(shares)
    for part in sorted(parts, key=lambda p: p.stat().st_size, reverse=True):
        least = sizes.index(min(sizes))
        shares[least].append(part)
        sizes[least] += part.stat().st_size
    yield from shares
