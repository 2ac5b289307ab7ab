"""One JSON file, a JSON object a line (JSON Lines), as Spark, DuckDB and pandas read it."""

from __future__ import annotations

from pathlib import Path

from lockgate.destinations.csv import TEXT_COMPRESSION, TIMESTAMP_FORMAT, TIMESTAMP_NTZ_FORMAT
from lockgate.destinations.one_file import OneFileDestination
from lockgate.destinations.options import Option
from lockgate.destinations.protocol import ExportRequest, Layout, StagedRows
from lockgate.storage.local import LocalStorage


class JsonDestination(OneFileDestination):
    type = "JSON"
    options = {
        "encoding": Option(str, encoding=True),
        "compression": TEXT_COMPRESSION,
        "ignore_null_fields": Option(bool),
        "date_format": Option(str),
        "timestamp_format": Option(str),
    }

    def layout(self, request: ExportRequest) -> Layout:
        given = request.options
        options = {
            "ignoreNullFields": "true" if given.get("ignore_null_fields", False) else "false",
            "dateFormat": given.get("date_format", "yyyy-MM-dd"),
            "timestampFormat": given.get("timestamp_format", TIMESTAMP_FORMAT),
            "timestampNTZFormat": given.get("timestamp_format", TIMESTAMP_NTZ_FORMAT),
        }
        return Layout(shape="json", text_options=options)

    def write(self, request: ExportRequest, rows: StagedRows, file: Path, storage: LocalStorage) -> int:
        from lockgate.destinations.text_file import write_lines

        return write_lines(request, rows, file, storage)
