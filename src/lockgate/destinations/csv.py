"""One CSV file. NULL is an empty field, an empty string is `""`, quotes are doubled, line ends are kept in quotes."""

from __future__ import annotations

from pathlib import Path

from lockgate.destinations.one_file import OneFileDestination
from lockgate.destinations.options import Option
from lockgate.destinations.protocol import Complaint, ExportRequest, Layout, StagedRows
from lockgate.storage.local import LocalStorage

TIMESTAMP_FORMAT = "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX"
TIMESTAMP_NTZ_FORMAT = "yyyy-MM-dd'T'HH:mm:ss.SSSSSS"
TEXT_COMPRESSION = Option(str, choices=("none", "gzip", "bz2", "zstd", "lz4"))


class CsvDestination(OneFileDestination):
    type = "CSV"
    options = {
        "header": Option(bool),
        "delimiter": Option(str, one_character=True),
        "quote": Option(str, one_character=True),
        "escape": Option(str, one_character=True),
        "null_value": Option(str),
        "encoding": Option(str, encoding=True),
        "compression": TEXT_COMPRESSION,
        "date_format": Option(str),
        "timestamp_format": Option(str),
    }

    def problems(self, request: ExportRequest) -> list[Complaint]:
        found = super().problems(request)
        if any(c.about == "options" for c in found):
            return found
        options = self.layout(request).text_options
        delimiter, quote, escape = options["sep"], options["quote"], options["escape"]
        for name, value in (("delimiter", delimiter), ("quote", quote), ("escape", escape)):
            if value in "\r\n\0":
                found.append(Complaint("options", "bad-option", f"option {name!r} cannot be a line end or NUL"))
        if delimiter in (quote, escape):
            message = "option 'delimiter' must differ from 'quote' and 'escape', or no reader can split the line"
            found.append(Complaint("options", "bad-option", message))
        return found

    def layout(self, request: ExportRequest) -> Layout:
        given = request.options
        quote = given.get("quote", '"')
        options = {
            "sep": given.get("delimiter", ","),
            "quote": quote,
            "escape": given.get("escape", quote),
            "nullValue": given.get("null_value", ""),
            "emptyValue": quote * 2,
            # Spark trims white space by default, which loses data.
            "ignoreLeadingWhiteSpace": "false",
            "ignoreTrailingWhiteSpace": "false",
            "dateFormat": given.get("date_format", "yyyy-MM-dd"),
            "timestampFormat": given.get("timestamp_format", TIMESTAMP_FORMAT),
            "timestampNTZFormat": given.get("timestamp_format", TIMESTAMP_NTZ_FORMAT),
        }
        return Layout(shape="csv", text_options=options)

    def write(self, request: ExportRequest, rows: StagedRows, file: Path, storage: LocalStorage) -> int:
        from lockgate.destinations.text_file import write_lines

        header = header_line(request, rows.columns) if request.options.get("header", True) else ""
        return write_lines(request, rows, file, storage, header=header)


def header_line(request: ExportRequest, columns: tuple[str, ...]) -> str:
    """The names of the columns as a CSV line, quoted where they need it."""
    options = CsvDestination().layout(request).text_options
    delimiter, quote, escape = options["sep"], options["quote"], options["escape"]
    special = {delimiter, quote, "\n", "\r"}

    def quoted(name: str) -> str:
        if name and not special & set(name):
            return name
        escaped = name.replace(escape, escape * 2) if escape != quote else name
        return quote + escaped.replace(quote, escape + quote) + quote

    return delimiter.join(quoted(c) for c in columns) + "\n"
