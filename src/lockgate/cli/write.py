"""`lockgate write`: rows of a file or folder as new files of a Parquet dataset."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from lockgate.cli import dataset_options as shared
from lockgate.cli.console import JSON, print_json

if TYPE_CHECKING:
    from lockgate.merging.result import WriteResult


@click.command(cls=shared.DatasetCommand)
@shared.SOURCE
@shared.TARGET
@click.option(
    "--mode", default="append", show_default=True, metavar="[append|overwrite]", help="Add rows, or replace all rows."
)
@shared.PARTITION_BY
@shared.SCHEMA
@shared.COMPRESSION
@shared.MAX_ROWS_PER_FILE
@shared.ROW_GROUP_SIZE
@shared.LOCK_TIMEOUT
@shared.S3_CONNECTION
@JSON
@shared.DEBUG
def write(
    source: str, target: str, mode: str, partition_by: tuple[str, ...], json: bool, debug: bool, **options: Any
) -> None:
    """Write the rows of SOURCE as new files of the Parquet dataset TARGET: all of them, or none.

    SOURCE is a .parquet, .csv, .json, .jsonl or .arrow file, or a folder of Parquet files. TARGET is a folder, and is
    made if it is missing.
    """
    with shared.working_on(target, debug, json):
        with shared.right_option("--partition-by"):
            partitions = shared.columns(partition_by)

        from lockgate.datasets import entry

        result = entry.write_dataset(
            source,
            target,
            mode=mode,  # type: ignore[arg-type]  # checked there
            partition_by=partitions or None,
            **{name: value for name, value in options.items() if value is not None},
        )
    if json:
        print_json(result.to_json())
    else:
        click.echo(_line(result, target))


def _line(result: WriteResult, target: str) -> str:
    removed = f", {len(result.removed_files):,} removed" if result.mode == "overwrite" else ""
    return (
        f"{result.mode} to {target}: {result.total_rows:,} row{'' if result.total_rows == 1 else 's'}; "
        f"files: {len(result.files):,} added{removed}"
    )
