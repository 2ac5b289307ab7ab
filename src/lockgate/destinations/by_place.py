"""CSV, JSON and PARQUET: on this machine's filesystem, or on S3 where the destination is an `s3://` address."""

from __future__ import annotations

from pathlib import Path

from lockgate.destinations.csv import CsvDestination
from lockgate.destinations.json import JsonDestination
from lockgate.destinations.parquet import ParquetDestination
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
from lockgate.destinations.s3 import S3Destination
from lockgate.storage.s3_address import is_s3
from lockgate.storage.staging import StagingArea


class _ByPlace:
    """Hands each request to one of two forms, by its destination."""

    def __init__(self, here: Destination) -> None:
        self.type = here.type
        self._here = here
        self._s3: Destination = S3Destination()

    def _form(self, asked: ExportRequest | Prepared) -> Destination:
        return self._s3 if is_s3(asked.destination) else self._here

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


class CsvByPlace(_ByPlace):
    def __init__(self) -> None:
        super().__init__(CsvDestination())


class JsonByPlace(_ByPlace):
    def __init__(self) -> None:
        super().__init__(JsonDestination())


class ParquetByPlace(_ByPlace):
    def __init__(self) -> None:
        super().__init__(ParquetDestination())
