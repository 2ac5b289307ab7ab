"""TYPE PARQUET: one file where the path ends in `.parquet`, else a folder of files that is one table."""

from __future__ import annotations

from lockgate.destinations.of_forms import DestinationOfForms
from lockgate.destinations.parquet_file import ParquetFileDestination
from lockgate.destinations.parquet_folder import ParquetFolderDestination
from lockgate.destinations.parquet_keyed import ParquetKeyedDestination
from lockgate.destinations.protocol import Destination, ExportRequest, Prepared
from lockgate.modes import KEYED_MODES


class ParquetDestination(DestinationOfForms):
    """The form goes by the path and the mode."""

    type = "PARQUET"

    def __init__(self) -> None:
        self._file: Destination = ParquetFileDestination()
        self._folder: Destination = ParquetFolderDestination()
        self._keyed: Destination = ParquetKeyedDestination()

    def form(self, asked: ExportRequest | Prepared) -> Destination:
        if asked.destination.lower().endswith(".parquet"):
            return self._file
        return self._keyed if asked.mode in KEYED_MODES else self._folder
