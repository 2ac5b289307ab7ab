"""TYPE PARQUET: one file where the path ends in `.parquet`, else a folder of files that is one table."""

from __future__ import annotations

from pathlib import Path

from lockgate.destinations.parquet_file import ParquetFileDestination
from lockgate.destinations.parquet_folder import ParquetFolderDestination
from lockgate.destinations.parquet_keyed import ParquetKeyedDestination
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
from lockgate.modes import KEYED_MODES
from lockgate.storage.staging import StagingArea


class ParquetDestination:
    """Hands each request to one of three forms, by the path and the mode that it names."""

    type = "PARQUET"

    def __init__(self) -> None:
        self._file: Destination = ParquetFileDestination()
        self._folder: Destination = ParquetFolderDestination()
        self._keyed: Destination = ParquetKeyedDestination()

    def _form(self, asked: ExportRequest | Prepared) -> Destination:
        if asked.destination.lower().endswith(".parquet"):
            return self._file
        return self._keyed if asked.mode in KEYED_MODES else self._folder

    def problems(self, request: ExportRequest) -> list[Complaint]:
        return self._form(request).problems(request)

    def layout(self, request: ExportRequest) -> Layout:
        return self._form(request).layout(request)

    def staging_place(self, request: ExportRequest) -> Path:
        return self._form(request).staging_place(request)

    def stage(self, request: ExportRequest, area: StagingArea, rows: StagedRows) -> Prepared:
        return self._form(request).stage(request, area, rows)

    def publish(self, prepared: Prepared, around: Surroundings) -> Outcome:
        return self._form(prepared).publish(prepared, around)

    def is_decided(self, prepared: Prepared, around: Surroundings) -> bool:
        return self._form(prepared).is_decided(prepared, around)

    def discard(self, prepared: Prepared, around: Surroundings) -> None:
        self._form(prepared).discard(prepared, around)
