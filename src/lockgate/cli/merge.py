"""`lockgate merge`: rows of a file or folder, merged by key into a Parquet dataset."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import click

from lockgate.cli import dataset_options as shared
from lockgate.cli.console import JSON, print_json

if TYPE_CHECKING:
    from lockgate.merging.result import MergeResult

_SHOWN_FILES = 20


@click.command(cls=shared.DatasetCommand)
@shared.SOURCE
@shared.TARGET
@click.option(
    "--strategy", required=True, metavar="[insert|update|upsert|full_merge|deduplicate]", help="What becomes of rows."
)
@click.option(
    "--key", required=True, multiple=True, metavar="COLUMN", help="A key column; repeat it, or put commas between."
)
@click.option(
    "--engine", default="auto", show_default=True, metavar="[auto|arrow|duckdb|spark]", help="What does the work."
)
@click.option(
    "--order-by", multiple=True, metavar="ORDER", help='For deduplicate: "updated_at DESC"; the first row stays.'
)
@shared.PARTITION_BY
@shared.SCHEMA
@click.option("--skip-unchanged", is_flag=True, help="Leave matched rows alone that are equal already.")
@click.option("--allow-partition-moves", is_flag=True, help="Let a row whose partition changed move there.")
@shared.COMPRESSION
@shared.MAX_ROWS_PER_FILE
@shared.ROW_GROUP_SIZE
@click.option("--use-merge/--no-use-merge", default=None, help="DuckDB: by MERGE, or not. Else as its version allows.")
@shared.LOCK_TIMEOUT
@shared.S3_CONNECTION
@click.option("--dry-run", is_flag=True, help="Say what would change, and write nothing.")
@JSON
@shared.DEBUG
def merge(
    source: str,
    target: str,
    strategy: str,
    key: tuple[str, ...],
    order_by: tuple[str, ...],
    partition_by: tuple[str, ...],
    json: bool,
    debug: bool,
    **options: Any,
) -> None:
    """Merge the rows of SOURCE by key into the Parquet dataset TARGET: all of it, or nothing.

    SOURCE is a .parquet, .csv, .json, .jsonl or .arrow file, or a folder of Parquet files. TARGET is a folder; all
    strategies but update make it if it is missing.
    """
    with shared.working_on(target, debug, json) as log:
        from lockgate.merging.keys import normalize_keys
        from lockgate.merging.order import parse_order_by
        from lockgate.merging.strategy import MergeStrategy

        with shared.right_option("--strategy"):
            wanted = MergeStrategy(strategy)
        with shared.right_option("--key"):
            keys = normalize_keys(shared.columns(key))
        with shared.right_option("--order-by"):
            parse_order_by(order_by)
        with shared.right_option("--partition-by"):
            partitions = shared.columns(partition_by)

        from lockgate.datasets import entry

        with ExitStack() as stack:
            if options["engine"] == "spark":
                options["spark"] = stack.enter_context(_session(debug))
            result = entry.merge(
                source,
                target,
                strategy=wanted,
                key_columns=keys,
                order_by=order_by or None,
                partition_by=partitions or None,
                **{name: value for name, value in options.items() if value is not None},
            )
    if json:
        print_json(result.to_json())
    else:
        for line in _lines(result, target, keys, log.choice):
            click.echo(line)


@contextmanager
def _session(debug: bool) -> Iterator[Any]:
    """The profile's Spark, as `lockgate run` would start or reach it."""
    from lockgate.config import load_project
    from lockgate.datasets.by_spark import active_session
    from lockgate.running.session import open_session

    project = load_project()
    was_there = active_session() is not None
    session = open_session(project.profile.spark, name="lockgate merge", scratch=project.state, debug=debug)
    try:
        yield session
    finally:
        if not was_there:
            session.stop()


def _lines(result: MergeResult, target: str, keys: Sequence[str], choice: str) -> list[str]:
    reason = choice.partition("because ")[2]
    engine = result.engine or "none, there was nothing to do"
    lines = [
        f"{result.strategy} into {target} by {', '.join(keys)}",
        f"  source:  {_rows(result.source_count)}, deduplicated {result.deduplicated:,}",
        f"  target:  {result.target_count_before:,} -> {_rows(result.target_count_after)}",
        f"  rows:    inserted {result.inserted:,}, updated {result.updated:,}, deleted {result.deleted:,}",
        f"  files:   {_files(result)}",
        f"  engine:  {engine}" + (f", because {reason}" if reason else ""),
    ]
    if result.dry_run:
        lines.append("dry run: nothing was written")
        lines += _named("would rewrite", result.rewritten_files) + _named("would remove", result.removed_files)
    return lines


def _files(result: MergeResult) -> str:
    # How many files new rows make is known when they are written.
    added = "not known yet" if result.dry_run else f"{len(result.inserted_files):,}"
    return (
        f"rewritten {len(result.rewritten_files):,}, added {added}, "
        f"removed {len(result.removed_files):,}, kept {len(result.preserved_files):,}"
    )


def _named(verb: str, files: Sequence[str]) -> list[str]:
    lines = [f"  {verb} {file}" for file in files[:_SHOWN_FILES]]
    if len(files) > _SHOWN_FILES:
        lines.append(f"  … and {len(files) - _SHOWN_FILES:,} more; --json names them all")
    return lines


def _rows(count: int) -> str:
    return f"{count:,} row{'' if count == 1 else 's'}"
