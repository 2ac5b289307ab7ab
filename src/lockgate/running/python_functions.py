"""Making the project's Python functions known to Spark."""

from __future__ import annotations

import importlib.util
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lockgate.errors import FunctionError
from lockgate.functions import MARK, FunctionMark
from lockgate.identifiers import quoted
from lockgate.running.session import quietly

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FOLDER = "functions"


def register_functions(session: SparkSession, project: Path) -> list[str]:
    """Register every decorated function under `functions/`; returns their names."""
    from pyspark.sql import functions as F

    seen: dict[str, Path] = {}
    for path in sorted((project / FOLDER).glob("*.py")):
        for mark, target in _marked(path):
            if (other := seen.get(mark.name.casefold())) is not None:
                raise FunctionError(
                    f"the function {mark.name} is defined twice: in {other} and in {path}",
                    in_place="nothing was run",
                    hint="rename one of them",
                )
            seen[mark.name.casefold()] = path
            try:
                made = (F.arrow_udf if mark.vectorized else F.udf)(target, mark.returns)
                session.udf.register(mark.name, made)
            except Exception as error:  # a bad type name, a bad signature: Spark's words, our file
                raise FunctionError(
                    f"{path}: Spark does not take the function {mark.name}: {error}", in_place="nothing was run"
                ) from error
    return sorted(seen)


def forget_functions(session: SparkSession, names: list[str]) -> None:
    """Take them out of the session again; one that is gone by itself is fine."""
    for name in names:
        quietly(session.sql, f"DROP TEMPORARY FUNCTION IF EXISTS {quoted(name)}")


def _marked(path: Path) -> Iterator[tuple[FunctionMark, Any]]:
    """The decorated functions of a file. The module is kept out of sys.modules on purpose: what no executor can
    import is sent to it by value."""
    spec = importlib.util.spec_from_file_location(f"lockgate_project_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise FunctionError(f"{path} cannot be loaded as Python", in_place="nothing was run")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename == str(path)]
        line = error.lineno if isinstance(error, SyntaxError) else (frames[-1].lineno if frames else 1)
        raise FunctionError(f"{path}:{line}: {type(error).__name__}: {error}", in_place="nothing was run") from error
    found = [(mark, v) for v in vars(module).values() if isinstance(mark := getattr(v, MARK, None), FunctionMark)]
    for _, target in found:
        # The mark would travel with the function, and an executor's Python need not have lockgate to read it.
        vars(target).pop(MARK, None)
    yield from found
