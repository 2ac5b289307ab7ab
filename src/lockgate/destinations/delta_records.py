"""What an export to a Delta table puts on record: what is wanted, and the change that was made ready for it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from lockgate.destinations.keyed_records import Wanted
from lockgate.destinations.protocol import ExportRequest, Outcome, Window
from lockgate.modes import KEYED_MODES

OUTCOME = "outcome"  # the key of a commit's metrics under which a run finds its counts again


@dataclass(frozen=True)
class DeltaExport:
    """An export as it survives a crash: enough to make its change ready again, for a newer version of the table."""

    table: str
    folder: str
    mode: str
    run: str
    number: int
    rows: str  # where Spark has staged them, relative to the folder
    schema: str  # of the rows, in Spark's JSON
    partition_by: tuple[str, ...] | None = None
    staged_by: tuple[str, ...] = ()  # the columns by which the staged rows lie in folders
    schema_mode: str = "strict"
    compression: str | None = None
    max_rows_per_file: int = 5_000_000
    merge: Wanted | None = None
    window: tuple[str, str, str] | None = None  # the column and its bounds, as texts; these rows take its place

    @property
    def id(self) -> str:
        return f"{self.run}-{self.number}"

    @property
    def root(self) -> Path:
        return Path(self.folder)

    @property
    def is_keyed(self) -> bool:
        return self.mode in KEYED_MODES

    @classmethod
    def by(cls, request: ExportRequest, folder: Path, rows: Path, schema: str, staged_by: Sequence[str]) -> DeltaExport:
        wanted = Wanted.by(request)
        return cls(
            table=request.destination,
            folder=str(folder),
            mode=request.mode,
            run=request.run,
            number=request.number,
            rows=rows.relative_to(folder).as_posix(),
            schema=schema,
            partition_by=wanted.partition_by,
            staged_by=tuple(staged_by),
            schema_mode=wanted.schema,
            compression=wanted.compression,
            max_rows_per_file=wanted.max_rows_per_file,
            merge=wanted if request.mode in KEYED_MODES else None,
            window=_texts(request.window) if request.window is not None else None,
        )

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> DeltaExport:
        merge = record["merge"]
        lists = {name: tuple(value) for name, value in record.items() if isinstance(value, list)}
        return cls(**{**record, **lists, "merge": Wanted.from_json(merge) if merge else None})


@dataclass(frozen=True)
class DeltaChange:
    """A change that is staged. It holds for the version that it was made for, and for newer ones as the log decides."""

    read_version: int | None  # None: there was no table
    moves: Mapping[str, str] = field(default_factory=dict)  # names in the table -> staged files, relative to the folder
    adds: tuple[str, ...] = ()  # of these files, as the log takes them
    removes: tuple[str, ...] = ()
    removes_all: bool = False  # every file of that version
    read: tuple[str, ...] | None = None
    read_all: bool = False
    schema: str | None = None  # in Delta's JSON, what the table needs; None: as it is
    partition_columns: tuple[str, ...] = ()
    replaces_schema: bool = False
    operation: str = "WRITE"
    parameters: Mapping[str, Any] = field(default_factory=dict)
    outcome: Outcome = field(default_factory=Outcome)

    def is_staged(self, root: Path) -> bool:
        """Whether every file is still there, where it was staged or in its place."""
        return all((root / staged).exists() or (root / name).exists() for name, staged in self.moves.items())

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> DeltaChange:
        lists = {name: tuple(value) for name, value in record.items() if isinstance(value, list)}
        return cls(**{**record, **lists, "outcome": outcome_from(record["outcome"])})


def _texts(window: Window) -> tuple[str, str, str]:
    return window.column, window.start.isoformat(), window.end.isoformat()


def outcome_from(record: Mapping[str, Any]) -> Outcome:
    return Outcome(**{**record, "paths": tuple(record["paths"])})


def outcome_text(outcome: Outcome) -> str:
    """As a commit carries it. The names of the files are in the commit itself."""
    return json.dumps({**asdict(outcome), "paths": []})
