"""Reading a SOURCE into Spark."""

from __future__ import annotations

import glob
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lockgate.config import Project
from lockgate.errors import SourceError
from lockgate.language.diagnostics import Diagnostic, nearest
from lockgate.language.statements import SourceStep
from lockgate.targets import journal
from lockgate.targets.folder import needs_recovery, recover

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# Our parameter -> Spark's option. What is not here is handled by name below.
_SPARK_OPTION = {
    "header": "header",
    "delimiter": "sep",
    "quote": "quote",
    "escape": "escape",
    "null_value": "nullValue",
    "encoding": "encoding",
    "compression": "compression",
    "multiline": "multiLine",
    "mode": "mode",
    "infer_schema": "inferSchema",
    "date_format": "dateFormat",
    "timestamp_format": "timestampFormat",
    "merge_schema": "mergeSchema",
}

# Spark gives an empty field its nullValue and then takes every value equal to that for NULL, a quoted "" too. With a
# mark that no file holds, the empty field is NULL and "" is the empty string, as our own files say it.
_NO_VALUE = "\x00null\x00"

_DEFAULTS: Mapping[str, Mapping[str, Any]] = {
    # A quoted value may hold a line end, a malformed row must not turn into NULLs, and names come from the header.
    "CSV": {"header": True, "infer_schema": True, "multiline": True, "mode": "FAILFAST", "quote": '"'},
    "JSON": {"mode": "FAILFAST"},
    "PARQUET": {},
}


def read_source(
    session: SparkSession,
    step: SourceStep,
    project: Project,
    files: Sequence[str] | None = None,
    base: str | None = None,
) -> DataFrame:
    """The source as a DataFrame; only its schema is looked at now. `files`: some of its files alone, which are in the
    folder `base` where its partitions begin."""
    kind = str(step.connector_type).upper()
    if kind == "DELTA":
        from lockgate.running.delta_source import read_delta

        return read_delta(session, step, project)
    params = {**_DEFAULTS[kind], **step.params}
    if kind == "CSV":
        params = {"escape": params["quote"], **params}
        params["null_value"] = params.get("null_value") or _NO_VALUE
    reader = session.read
    for name, value in params.items():
        if option := _SPARK_OPTION.get(name):
            reader = reader.option(option, str(value).lower() if isinstance(value, bool) else str(value))
    if schema := params.get("schema"):
        reader = reader.schema(schema)
        if kind == "CSV":
            # Else Spark takes the schema's columns by position and does not look at the header's names.
            reader = reader.option("enforceSchema", "false")
            reader = reader.option("inferSchema", "false")
    for name, value in params.get("spark", {}).items():
        reader = reader.option(name, str(value).lower() if isinstance(value, bool) else str(value))
    if base is not None:
        reader = reader.option("basePath", base)
    paths = _spark_paths(params["path"], project.root) if files is None else [_literal(path) for path in files]
    return reader.format(kind.lower()).load(paths)


def locations(path: str | list[str], project: Path) -> list[str]:
    each = [path] if isinstance(path, str) else path
    return [p if "://" in p else str(project / p) for p in each]


def _spark_paths(path: str | list[str], project: Path) -> list[str]:
    """The same as Spark takes them: the author may write `*.csv`, but what the project's folder is called is no
    pattern."""
    literal = _literal(str(project))
    return [
        literal + p.removeprefix(str(project)) if p.startswith(str(project)) else p for p in locations(path, project)
    ]


def _literal(path: str) -> str:
    return re.sub(r"([\\\[\]{}*?])", r"\\\1", path)


def find_missing(step: SourceStep, project: Path) -> None:
    """Raise now, before Spark is started, if a local source file is not there."""
    path = step.params.get("path")
    for location in locations(path, project) if isinstance(path, str | list) else []:
        if "://" in location or _exists(location):
            continue
        folder = Path(location).parent
        beside = [p.name for p in folder.iterdir()] if folder.is_dir() else []
        close = nearest(Path(location).name, beside)
        missing = Diagnostic(
            step.params_place,
            "missing-file",
            f"the source {step.name} reads {location}, which does not exist",
            f"did you mean {close}?" if close else None,
        )
        raise SourceError(missing.render(), in_place="nothing was run")


def recover_folders(step: SourceStep, project: Path) -> None:
    """Finish interrupted writes to the Parquet folders that a source reads, so that it reads all old or all new."""
    path = step.params.get("path")
    for location in locations(path, project) if isinstance(path, str | list) else []:
        if Path(location).is_dir() and needs_recovery(Path(location)):
            recover(location)


def refuse_unfinished(step: SourceStep, project: Path) -> None:
    """For who may change nothing: refuse a Parquet folder in which an interrupted write is still to be finished."""
    path = step.params.get("path")
    for location in locations(path, project) if isinstance(path, str | list) else []:
        if Path(location).is_dir() and journal.read(Path(location)) is not None:
            unfinished = Diagnostic(
                step.params_place,
                "source",
                f"the source {step.name} reads {location}, where a decided write was interrupted and is not finished",
                f"run `lockgate recover {location}`, then try again",
            )
            raise SourceError(unfinished.render(), in_place="nothing was written")


def _exists(location: str) -> bool:
    return Path(location).exists() or bool(glob.glob(location)) or "{" in location  # Spark's own globs know {a,b}
