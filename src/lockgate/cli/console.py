"""How commands end: errors to standard error in one form, the right exit code, and no traceback unless asked."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import click

from lockgate.errors import ConfigError, LockgateError

_VARIABLE = re.compile(r"[^\W\d]\w*(?:[.-]\w+)*")  # what ${...} can name

# Options that several commands share.
PIPELINE = click.argument("pipeline", type=click.Path(path_type=Path))
DEBUG = click.option("--debug", is_flag=True, help="Show Spark's own log and, on failure, the traceback.")
JSON = click.option("--json", is_flag=True, help="Print one JSON object on standard output.")
PROFILE = click.option("--profile", "-p", metavar="NAME", help="The profile of lockgate.toml to use.")
VAR = click.option(
    "--var", "-v", multiple=True, metavar="NAME=VALUE", help="Set a variable; NAME:TYPE=VALUE gives it a type."
)


@contextmanager
def errors_shown(debug: bool, json: bool = False) -> Iterator[None]:
    """Turn our errors into a message and an exit code. With `debug` the traceback comes first; with `json` standard
    output gets the error as an object too."""
    try:
        yield
    except LockgateError as error:
        if json:
            print_json(as_json(error))
        fail(error, debug)


def as_json(error: LockgateError) -> dict[str, Any]:
    """A failure in the shape of a run's result, so that a reader of --json needs to know one shape only."""
    if error.result is not None:
        return dict(error.result.to_json())
    status = "invalid" if error.exit_code == 2 else "failed"
    return {
        "run": None,
        "pipeline": None,
        "status": status,
        "exit_code": error.exit_code,
        "steps": [],
        "exports": [],
        "checks": [],
        "error": error.render(),
    }


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
        if not equals or not _VARIABLE.fullmatch(name):
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
