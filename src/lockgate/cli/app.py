"""The `lockgate` command."""

from __future__ import annotations

import gc

# Loading the SQL grammar makes many small objects that live to the end; collecting among them is wasted time.
gc.disable()

import typer  # noqa: E402

from lockgate.cli import check, init, plan, recover, run, runs  # noqa: E402

app = typer.Typer(
    name="lockgate",
    help="Run SQL pipelines on Spark; let their results in only when all of them are ready.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command("init")(init.init)
app.command("check")(check.check)
app.command("plan")(plan.plan)
app.command("run")(run.run)
app.command("resume")(runs.resume)
app.command("runs")(runs.runs)
app.command("recover")(recover.recover)


def _version(wanted: bool) -> None:
    if wanted:
        from lockgate import __version__

        typer.echo(f"lockgate {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: bool = typer.Option(False, "--version", help="Print the version.", callback=_version, is_eager=True),
) -> None:
    del version
    gc.enable()
    gc.freeze()


def main() -> None:
    app()
