"""CSV, JSON and PARQUET: on this machine's filesystem, or on S3 where the destination is an `s3://` address."""

from __future__ import annotations

from lockgate.destinations.csv import CsvDestination
from lockgate.destinations.json import JsonDestination
from lockgate.destinations.of_forms import DestinationOfForms
from lockgate.destinations.parquet import ParquetDestination
from lockgate.destinations.protocol import Destination, ExportRequest, Prepared
from lockgate.destinations.s3 import S3Destination
from lockgate.storage.s3_address import is_s3


class _ByPlace(DestinationOfForms):
    def __init__(self, here: Destination) -> None:
        self.type = here.type
        self._here = here
        self._s3: Destination = S3Destination()

    def form(self, asked: ExportRequest | Prepared) -> Destination:
        return self._s3 if is_s3(asked.destination) else self._here


class CsvByPlace(_ByPlace):
    def __init__(self) -> None:
        super().__init__(CsvDestination())


class JsonByPlace(_ByPlace):
    def __init__(self) -> None:
        super().__init__(JsonDestination())


class ParquetByPlace(_ByPlace):
    def __init__(self) -> None:
        super().__init__(ParquetDestination())
