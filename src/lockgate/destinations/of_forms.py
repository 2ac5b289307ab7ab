"""A destination that comes in several forms, each a destination of its own: what it is asked is handed on."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path

from lockgate.destinations.protocol import (
    Complaint,
    Destination,
    ExportRequest,
    Layout,
    Outcome,
    Prepared,
    StagedRows,
    Surroundings,
)
from lockgate.storage.staging import StagingArea


class DestinationOfForms(ABC):
    type: str

    @abstractmethod
    def form(self, asked: ExportRequest | Prepared) -> Destination:
        """Which form a request is for. The same for what that form has prepared."""

    def problems(self, request: ExportRequest) -> list[Complaint]:
        return self.form(request).problems(request)

    def layout(self, request: ExportRequest) -> Layout:
        return self.form(request).layout(request)

    def staging_place(self, request: ExportRequest) -> Path:
        return self.form(request).staging_place(request)

    def stage(self, request: ExportRequest, area: StagingArea, rows: StagedRows) -> Prepared:
        return self.form(request).stage(request, area, rows)

    def publish(self, prepared: Prepared, around: Surroundings) -> Outcome:
        return self.form(prepared).publish(prepared, around)

    def is_decided(self, prepared: Prepared, around: Surroundings) -> bool:
        return self.form(prepared).is_decided(prepared, around)

    def discard(self, prepared: Prepared, around: Surroundings) -> None:
        self.form(prepared).discard(prepared, around)
