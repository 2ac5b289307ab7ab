"""What is wrong with a request for a folder of Parquet files, whatever its mode."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from lockgate.destinations.options import Option, local_path, option_problems, path_problems
from lockgate.destinations.parquet_file import COMPRESSION
from lockgate.destinations.protocol import Complaint, ExportRequest
from lockgate.targets.folder import is_hidden

FOLDER_OPTIONS = {
    "compression": COMPRESSION,
    "partition_by": Option(list),
    "max_rows_per_file": Option(int, positive=True),
}

ENGINES = ("auto", "arrow", "duckdb", "spark")  # those that `datasets.choice` knows
MERGE_OPTIONS = {
    "engine": Option(str, choices=ENGINES),
    "schema": Option(str, choices=("strict", "evolve")),
    "skip_unchanged": Option(bool),
    "allow_partition_moves": Option(bool),
}


def folder_problems(request: ExportRequest, options: Mapping[str, Option]) -> list[Complaint]:
    """Options, partition columns and the folder itself."""
    return [
        *option_problems(request, options),
        *path_problems(request),
        *partition_problems(request),
        *_place_problems(request),
    ]


def partition_problems(request: ExportRequest) -> Iterator[Complaint]:
    """What is wrong with the option `partition_by`."""
    columns = request.options.get("partition_by", [])
    if not isinstance(columns, list):
        return  # said already
    if not all(isinstance(c, str) and c for c in columns):
        yield Complaint("options", "bad-option", "option 'partition_by' must be a list of column names")
        return
    folded = [c.casefold() for c in columns]
    twice = [c for c in columns if folded.count(c.casefold()) > 1]
    if twice:
        yield Complaint("options", "bad-option", f"option 'partition_by' names {twice[0]} more than once")
    dotted = [c for c in columns if c.startswith(".")]
    if dotted:
        message = f"a folder for the partition column {dotted[0]} would be hidden from every reader"
        yield Complaint("options", "bad-option", message, "rename the column")


def _place_problems(request: ExportRequest) -> Iterator[Complaint]:
    if not path_problems(request) and local_path(request).resolve() in (
        request.project.resolve(),
        *request.project.resolve().parents,
    ):
        message = f"{request.destination!r} holds the project itself; a folder of data is a folder of its own"
        yield Complaint("destination", "bad-path", message, "name a folder inside the project")
    hidden = [part for part in Path(request.destination).parts if is_hidden(part) and part not in (".", "..")]
    if hidden:
        message = f"{request.destination!r} has the hidden part {hidden[-1]!r}, which readers do not take for data"
        yield Complaint("destination", "bad-path", message, "use a name without a leading _ or .")
