"""What `lockgate merge` and `lockgate write` share: options, lists of columns, the log, and being interrupted."""

from __future__ import annotations

import csv
import logging
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import click

from lockgate.cli.console import as_json, errors_shown, print_json
from lockgate.errors import ConfigError, MergeError, SchemaMismatchError

SOURCE = click.argument("source")
TARGET = click.argument("target")
PARTITION_BY = click.option(
    "--partition-by", multiple=True, metavar="COLUMN", help="Partition columns, if the dataset is not there yet."
)
SCHEMA = click.option(
    "--schema",
    default="strict",
    show_default=True,
    type=click.Choice(["strict", "evolve"]),
    help="May the source bring new columns and wider types?",
)
COMPRESSION = click.option(
    "--compression",
    type=click.Choice(["none", "snappy", "gzip", "brotli", "zstd", "lz4"], case_sensitive=False),
    help="Of new files; else as the files that are there.",
)
MAX_ROWS_PER_FILE = click.option(
    "--max-rows-per-file", type=click.IntRange(min=1), metavar="N", help="Of new files.  [default: 5000000]"
)
ROW_GROUP_SIZE = click.option(
    "--row-group-size", type=click.IntRange(min=1), metavar="N", help="In new files.  [default: 500000]"
)
LOCK_TIMEOUT = click.option(
    "--lock-timeout",
    type=click.FloatRange(min=0),
    metavar="SECONDS",
    help="How long to wait for another writer.  [default: 60]",
)
S3_CONNECTION = click.option(
    "--s3-connection", metavar="NAME", help="Of the profile, for s3:// addresses; else its only one."
)
DEBUG = click.option("--debug", is_flag=True, help="Show the engine's log and, on failure, the traceback.")


class DatasetCommand(click.Command):
    """With --json a wrong command line is said as an object too, like every other failure."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        json = "--json" in args
        try:
            return super().make_context(info_name, args, parent, **extra)
        except click.UsageError as error:
            if json:
                print_json(as_json(ConfigError(error.format_message(), in_place="nothing was written")))
            raise


def columns(texts: Sequence[str]) -> list[str]:
    """Names from options that may be repeated or hold several, with commas between them.

    >>> columns(["id,day", '"odd, name"'])
    ['id', 'day', 'odd, name']
    """
    return [name for row in csv.reader(texts, skipinitialspace=True) for name in row]


@contextmanager
def right_option(option: str) -> Iterator[None]:
    """What is wrong with the text of an option is wrong with the command line, not with the data."""
    try:
        yield
    except (SchemaMismatchError, ValueError, csv.Error) as error:
        hint = error.hint if isinstance(error, SchemaMismatchError) else None
        raise ConfigError(f"{option}: {error}", hint=hint, in_place="nothing was written") from None


class EngineLog(logging.Handler):
    """What the engine says while it works. Warnings go to standard error at once, and all of it with --debug."""

    def __init__(self, debug: bool) -> None:
        super().__init__(logging.INFO)
        self._debug = debug
        self.choice = ""

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        if text.startswith("auto: "):
            self.choice = text
        # An error is raised as well, and shown then.
        if self._debug or record.levelno == logging.WARNING:
            click.echo(f"note: {text}", err=True)


@contextmanager
def working_on(target: str, debug: bool, json: bool) -> Iterator[EngineLog]:
    """Errors are shown, Ctrl-C and SIGTERM among them, and the engine's log is followed."""
    log, handler = logging.getLogger("lockgate.merge"), EngineLog(debug)
    before = log.level
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    try:
        with errors_shown(debug, json):
            signal.signal(signal.SIGTERM, signal.default_int_handler)
            try:
                yield handler
            except KeyboardInterrupt as error:
                raise _interrupted(target, error) from None
    finally:
        log.removeHandler(handler)
        log.setLevel(before)


def _interrupted(target: str, error: KeyboardInterrupt) -> MergeError:
    said = str(error.args[0]) if error.args else "nothing was written"  # said by the dataset, once it is open
    return MergeError(f"interrupted while writing to {target}", in_place=said)
