"""What a run did, as an object and as the JSON of `lockgate run --json`."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from lockgate.destinations.protocol import Outcome


@dataclass
class StepResult:
    name: str
    kind: str
    status: str = "pending"
    seconds: float = 0.0
    rows: int | None = None


@dataclass
class ExportResult:
    name: str
    destination: str
    type: str
    mode: str
    status: str = "pending"
    inserted: int | None = None
    updated: int | None = None
    deleted: int | None = None
    rows: int | None = None
    version: int | None = None
    files: dict[str, int] = field(default_factory=lambda: {"rewritten": 0, "added": 0, "preserved": 0})
    engine: str = "spark"
    paths: list[str] = field(default_factory=list)

    def take(self, outcome: Outcome) -> None:
        self.status = "published"
        self.inserted, self.updated, self.deleted = outcome.inserted, outcome.updated, outcome.deleted
        self.version = outcome.version
        self.files = dict(outcome.files)
        self.paths = list(outcome.paths)
        self.engine = outcome.engine or self.engine

    @property
    def changes(self) -> str:
        """The counts of a keyed mode, in words."""
        counts = ((what, getattr(self, what)) for what in ("inserted", "updated", "deleted"))
        return ", ".join(f"{what} {count:,}" for what, count in counts if count is not None)


@dataclass
class CheckResult:
    name: str
    passed: bool
    failing_rows: int = 0
    examples: list[dict[str, str]] = field(default_factory=list)


@dataclass
class RunResult:
    """The outcome of a run. `ok` is true only when everything was published."""

    run: str
    pipeline: str
    status: str = "failed"
    exit_code: int = 1
    steps: list[StepResult] = field(default_factory=list)
    exports: list[ExportResult] = field(default_factory=list)
    checks: list[CheckResult] = field(default_factory=list)
    error: str | None = None

    @property
    def ok(self) -> bool:
        return self.exit_code == 0

    def to_json(self) -> dict[str, Any]:
        return asdict(self)
