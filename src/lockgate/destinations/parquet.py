"""TYPE PARQUET: one file where the path ends in `.parquet`, else a folder of files that is one table."""

from __future__ import annotations

from pathlib import Path

from lockgate.destinations.parquet_file import ParquetFileDestination
from lockgate.destinations.parquet_folder import ParquetFolderDestination
from lockgate.destinations.protocol import Complaint, Destination, ExportRequest, Layout, Outcome, Prepared, StagedRows
from lockgate.storage.local import LocalStorage
from lockgate.storage.staging import StagingArea


class ParquetDestination:
    """Hands each request to the file or the folder form, by the path it names."""

    type = "PARQUET"

    def __init__(self) -> None:
        self._file: Destination = ParquetFileDestination()
        self._folder: Destination = ParquetFolderDestination()

    def _form(self, destination: str) -> Destination:
        return self._file if destination.lower().endswith(".parquet") else self._folder

    def problems(self, request: ExportRequest) -> list[Complaint]:
        return self._form(request.destination).problems(request)

    def layout(self, request: ExportRequest) -> Layout:
        return self._form(request.destination).layout(request)

    def staging_place(self, request: ExportRequest) -> Path:
        return self._form(request.destination).staging_place(request)

    def stage(self, request: ExportRequest, area: StagingArea, rows: StagedRows) -> Prepared:
        return self._form(request.destination).stage(request, area, rows)

    def publish(self, prepared: Prepared, storage: LocalStorage) -> Outcome:
        return self._form(prepared.destination).publish(prepared, storage)

    def is_decided(self, prepared: Prepared) -> bool:
        return self._form(prepared.destination).is_decided(prepared)

    def discard(self, prepared: Prepared, storage: LocalStorage) -> None:
        self._form(prepared.destination).discard(prepared, storage)
