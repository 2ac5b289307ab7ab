"""What every destination answers. Light on purpose: `lockgate check` loads this without pyarrow or Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

from lockgate.config import Profile, load_project
from lockgate.storage.local import LocalStorage
from lockgate.storage.staging import StagingArea

if TYPE_CHECKING:
    from lockgate.txlog.commits import Note

DEFAULT_MAX_ROWS_PER_FILE = 5_000_000


@dataclass(frozen=True)
class Layout:
    """How Spark is to lay out the rows it stages."""

    shape: Literal["rows", "csv", "json"] = "rows"  # as they are, or each row as one line of text, its end included
    text_options: Mapping[str, str] = field(default_factory=dict)  # Spark's options of to_csv or to_json
    compression: str = "snappy"
    partition_by: tuple[str, ...] = ()
    max_rows_per_file: int = DEFAULT_MAX_ROWS_PER_FILE


@dataclass(frozen=True)
class StagedRows:
    """What Spark wrote: Parquet files below `root`, in the order of the rows, and the names of the columns."""

    root: Path
    parts: tuple[Path, ...]
    columns: tuple[str, ...]
    schema: str = ""  # Spark's JSON of it, partition columns and all


@dataclass(frozen=True)
class Window:
    """From `start` to `end`, both included: dates for a DATE column, else datetimes."""

    column: str
    start: date
    end: date

    def __str__(self) -> str:
        return f"{self.column} from {self.start} to {self.end}"


@dataclass(frozen=True)
class ExportRequest:
    """One export as its destination sees it. Everything in it is known before Spark starts."""

    destination: str  # as the pipeline wrote it
    type: str
    mode: str
    options: Mapping[str, Any] = field(default_factory=dict)
    keys: tuple[str, ...] = ()
    order_by: tuple[str, ...] = ()
    project: Path = Path()  # relative paths are relative to it
    profile: Profile = field(default_factory=Profile)  # its connections and its log
    run: str = ""
    number: int = 1  # the export's place among the exports of its pipeline, from 1
    window: Window | None = None  # of an INCREMENTAL table: the rows that these take the place of; known when staging


@dataclass(frozen=True)
class Complaint:
    """Why a destination cannot do what an export asks, and which clause of the statement asks it."""

    about: Literal["type", "mode", "options", "destination"]
    code: str
    message: str
    hint: str | None = None


@dataclass(frozen=True)
class Prepared:
    """An export that is staged and durable, with all that publishing it needs. Survives as JSON in the run record."""

    destination: str
    type: str
    mode: str
    staging: str
    rows: int
    bytes: int
    instructions: Mapping[str, Any]


@dataclass(frozen=True)
class Outcome:
    """What publishing did. Counts that are not known without extra work are None."""

    inserted: int | None = None
    updated: int | None = None
    deleted: int | None = None
    files: Mapping[str, int] = field(default_factory=lambda: {"rewritten": 0, "added": 0, "preserved": 0})
    version: int | None = None
    paths: tuple[str, ...] = ()
    engine: str | None = None  # what did the merge of a keyed mode; None: Spark wrote all there is


@dataclass(frozen=True)
class Surroundings:
    """What publishing needs besides the record of the export. Passwords are here alone: no record holds them."""

    storage: LocalStorage
    project: Path = Path()
    profile: Profile = field(default_factory=Profile)
    notes: tuple[Note, ...] = ()  # what a log of transactions is to keep with the run's rows: its watermarks

    def of(self, profile: str) -> Surroundings:
        """The same with another profile, that of an earlier run."""
        if profile == self.profile.name:
            return self
        return replace(self, profile=load_project(self.project, profile=profile).profile)


class PublishesTogether(Protocol):
    """What a destination adds that can make several exports of a run visible at once."""

    def publish_together(self, prepared: Sequence[Prepared], around: Surroundings) -> list[Outcome]:
        """Swap all of them in, or none. Gets every export of the run that is of its type, published ones too, in the
        run's order; called again after a crash it finishes or finds it done."""
        ...


class Destination(Protocol):
    """Stage, publish, discard. Registered by its TYPE; another package adds one by entry point."""

    type: str

    def problems(self, request: ExportRequest) -> list[Complaint]:
        """Everything about the request that can be refused before anything runs."""
        ...

    def layout(self, request: ExportRequest) -> Layout:
        """How the rows are to be staged."""
        ...

    def staging_place(self, request: ExportRequest) -> Path:
        """The folder in which the staging area is made; it is on the destination's filesystem."""
        ...

    def stage(self, request: ExportRequest, area: StagingArea, rows: StagedRows) -> Prepared:
        """Make the staged rows into what publish will swap in, durable on disk."""
        ...

    def publish(self, prepared: Prepared, around: Surroundings) -> Outcome:
        """Swap it in. Called again after a crash it finishes or finds it done; it never does it twice."""
        ...

    def is_decided(self, prepared: Prepared, around: Surroundings) -> bool:
        """Whether the swap has happened or will: after a failed publish, whether the old content still stands."""
        ...

    def discard(self, prepared: Prepared, around: Surroundings) -> None:
        """Remove what was staged; the destination stays as it is. Fine to call when nothing is left. A swap that is
        decided, and so will happen, is finished first."""
        ...
