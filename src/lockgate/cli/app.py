"""The `lockgate` command."""

from __future__ import annotations

import gc
import os
import sys

# Loading the SQL grammar makes many small objects that live to the end; collecting among them is wasted time.
gc.disable()

import click  # noqa: E402

from lockgate.cli import check, init, merge, plan, recover, run, runs, table, table_care, write  # noqa: E402


def _print_version(context: click.Context, parameter: click.Parameter, wanted: bool) -> None:
    del parameter
    if wanted:
        from lockgate import __version__

        click.echo(f"lockgate {__version__}")
        context.exit()


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--version", is_flag=True, is_eager=True, expose_value=False, callback=_print_version, help="Print it.")
def app() -> None:
    """Run SQL pipelines on Spark; let their results in only when all of them are ready."""
    gc.enable()
    gc.freeze()


for command in (
    init.init, check.check, plan.plan, run.run, runs.resume, runs.runs, merge.merge, write.write, recover.recover,
    table.table,
):  # fmt: skip
    app.add_command(command)
table_care.join(table.table)


def main() -> None:
    # Arrow's default allocator asks for huge pages, which a machine may take long to find (benchmarks/merge).
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    try:
        app(prog_name="lockgate")
    finally:
        _let_go_of_broken_streams()


def _let_go_of_broken_streams() -> None:
    """Python ends with 120 when what is left in a closed stream cannot be written; our exit code says more."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
