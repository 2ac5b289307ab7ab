"""TYPE S3, and CSV, JSON and PARQUET at an `s3://` address: handed on by the format and by what the address names."""

from __future__ import annotations

from dataclasses import replace

from lockgate.destinations.csv import CsvDestination
from lockgate.destinations.json import JsonDestination
from lockgate.destinations.of_forms import DestinationOfForms
from lockgate.destinations.options import option_problems, path_problems
from lockgate.destinations.parquet_file import ParquetFileDestination
from lockgate.destinations.protocol import (
    Complaint,
    Destination,
    ExportRequest,
    Prepared,
)
from lockgate.destinations.s3_append import S3AppendDestination
from lockgate.destinations.s3_keyed import S3KeyedDestination
from lockgate.destinations.s3_object import S3ObjectDestination
from lockgate.destinations.s3_place import S3_OPTIONS, connection_of, format_of, is_prefix
from lockgate.modes import KEYED_MODES
from lockgate.storage.s3_address import is_s3
from lockgate.storage.s3_settings import connection_problem

_OBJECTS: dict[str, Destination] = {
    "CSV": S3ObjectDestination(CsvDestination()),
    "JSON": S3ObjectDestination(JsonDestination()),
    "PARQUET": S3ObjectDestination(ParquetFileDestination()),
}


_APPENDED: Destination = S3AppendDestination()
_KEYED: Destination = S3KeyedDestination()


def _form(asked: ExportRequest | Prepared, kind: str) -> Destination:
    if kind == "PARQUET" and is_prefix(asked.destination, kind):
        return _KEYED if asked.mode in KEYED_MODES else _APPENDED
    return _OBJECTS[kind]


class S3Destination(DestinationOfForms):
    type = "S3"

    def problems(self, request: ExportRequest) -> list[Complaint]:
        if not is_s3(request.destination):
            message = f"TYPE S3 writes to s3:// addresses, and {request.destination!r} is none"
            return [Complaint("destination", "bad-path", message, "write s3://bucket/key")]
        if found := path_problems(request):
            return found
        own = {name: value for name, value in request.options.items() if name in S3_OPTIONS}
        if found := option_problems(replace(request, options=own), S3_OPTIONS):
            return found
        if problem := connection_problem(request.profile.connections, connection_of(request)):
            return [Complaint("options", "bad-connection", problem)]
        kind = format_of(request)
        if kind is None:
            message = f"TYPE S3 needs the option 'format', which {request.destination!r} does not tell by its suffix"
            return [Complaint("options", "missing-option", message, '{"format": "csv"}, "json" or "parquet"')]
        return _form(request, kind).problems(request)

    def form(self, asked: ExportRequest | Prepared) -> Destination:
        if isinstance(asked, Prepared):
            return _form(asked, asked.instructions["format"])
        kind = format_of(asked)
        assert kind is not None, "the planner refuses it"
        return _form(asked, kind)
