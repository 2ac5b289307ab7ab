"""How commands end: errors to standard error in one form, the right exit code, and no traceback unless asked."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import click

from lockgate.errors import ConfigError, LockgateError

# Options that several commands share.
PIPELINE = click.argument("pipeline", type=click.Path(path_type=Path))
DEBUG = click.option("--debug", is_flag=True, help="Show Spark's own log and, on failure, the traceback.")
JSON = click.option("--json", is_flag=True, help="Print one JSON object on standard output.")
PROFILE = click.option("--profile", "-p", metavar="NAME", help="The profile of lockgate.toml to use.")
VAR = click.option(
    "--var", "-v", multiple=True, metavar="NAME=VALUE", help="Set a variable; NAME:TYPE=VALUE gives it a type."
)


@contextmanager
def errors_shown(debug: bool) -> Iterator[None]:
    """Turn our errors into a message and an exit code. With `debug` the traceback comes first."""
    try:
        yield
    except LockgateError as error:
        fail(error, debug)


def fail(error: LockgateError, debug: bool = False) -> NoReturn:
    if debug:
        import traceback

        traceback.print_exception(error, file=sys.stderr)
    click.echo(message(error), err=True)
    raise SystemExit(error.exit_code) from None


def message(error: LockgateError) -> str:
    text = error.render()
    return text if ": error[" in text.split("\n", 1)[0] else f"error: {text}"


def print_json(value: Any) -> None:
    sys.stdout.write(json.dumps(value, indent=2, default=str) + "\n")
    sys.stdout.flush()


def variables(pairs: Sequence[str]) -> dict[str, Any]:
    """`--var` options as values. A type makes a bound parameter typed; without one it is text."""
    found: dict[str, Any] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        name, _, kind = name.partition(":")
        if not equals or not name.isidentifier():
            raise ConfigError(f"--var {pair!r} is not NAME=VALUE", hint="for example --var run_date=2026-01-31")
        found[name] = typed(name, kind, text)
    return found


def typed(name: str, kind: str, text: str) -> Any:
    """The text as a value of the named type.

    >>> typed("n", "int", "7")
    7
    """
    from datetime import date, datetime
    from decimal import Decimal, InvalidOperation

    def boolean(word: str) -> bool:
        if word.lower() not in ("true", "false"):
            raise ValueError
        return word.lower() == "true"

    kinds = {
        "": str,
        "string": str,
        "int": int,
        "double": float,
        "decimal": Decimal,
        "boolean": boolean,
        "date": date.fromisoformat,
        "timestamp": datetime.fromisoformat,
    }
    if kind not in kinds:
        raise ConfigError(f"--var {name}: there is no type {kind!r}", hint=f"known: {', '.join(k for k in kinds if k)}")
    try:
        return kinds[kind](text)  # type: ignore[operator]
    except (ValueError, InvalidOperation):
        raise ConfigError(f"--var {name}: {text!r} is not a {kind}") from None
