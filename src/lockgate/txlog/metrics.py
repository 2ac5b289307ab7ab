"""What the log measures, by the OpenTelemetry API. Without an SDK that is configured, nothing is kept or sent."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from lockgate.errors import VersionConflict

if TYPE_CHECKING:
    from lockgate.txlog.committer import Request


class Metrics:
    """Counters and histograms, made when first used."""

    @cached_property
    def _meter(self) -> Any:
        from opentelemetry.metrics import get_meter

        return get_meter("lockgate.txlog")

    @cached_property
    def _commits(self) -> Any:
        return self._meter.create_counter("lockgate.txlog.commits", description="versions committed")

    @cached_property
    def _conflicts(self) -> Any:
        return self._meter.create_counter("lockgate.txlog.conflicts", description="commits refused by another commit")

    @cached_property
    def _rebases(self) -> Any:
        return self._meter.create_counter("lockgate.txlog.rebases", description="commits that stood a newer version")

    @cached_property
    def _latency(self) -> Any:
        return self._meter.create_histogram("lockgate.txlog.commit.duration", unit="s", description="of a commit")

    @cached_property
    def _lag(self) -> Any:
        return self._meter.create_histogram(
            "lockgate.txlog.publish.lag", unit="{version}", description="versions that waited when publishing began"
        )

    @cached_property
    def _published(self) -> Any:
        return self._meter.create_counter("lockgate.txlog.published", description="versions published")

    def committed(self, request: Request, seconds: float) -> None:
        """A transaction came to its end, good or bad."""
        self._latency.record(seconds, {"outcome": "error" if request.error else "committed"})
        if request.error is None:
            self._commits.add(len(request.versions))
            if request.rebased:
                self._rebases.add(request.rebased)
        elif isinstance(request.error, VersionConflict):
            self._conflicts.add(1)

    def publishing(self, lag: int) -> None:
        self._lag.record(lag)

    def published(self, versions: int) -> None:
        self._published.add(versions)


METRICS = Metrics()
