"""Spark's exceptions as ours: its message, and the place in the pipeline that it speaks of."""

from __future__ import annotations

import re
from collections.abc import Iterable

from lockgate.errors import QueryError
from lockgate.language.diagnostics import Diagnostic, Place
from lockgate.language.statements import Sql

_PARSE_POSITION = re.compile(r"\(line (\d+), pos (\d+)\)")
_NOISE = re.compile(r"\n?(== SQL.*|JVM stacktrace:.*|\s+at [\w.$]+\(.*)", re.DOTALL)
_TASK_CAUSE = re.compile(r"\[([A-Z][A-Z0-9_.]+)\] [^\n]+")
# Wrappers that say only that a task failed; what failed stands in the cause that follows.
_WRAPPERS = ("TASK_WRITE_FAILED", "FAILED_EXECUTE_UDF", "JOB_ABORTED", "WRITING_JOB_ABORTED")


def query_error(error: Exception, step: str, statement: Place, queries: Iterable[Sql]) -> QueryError:
    """The error of a statement. `queries` are the SQL texts it may come from: its own, then those it reads."""
    message = spark_message(error)
    place = _place(error, list(queries)) or statement
    shown = Diagnostic(place, "spark", f"Spark refused {step}: {message}")
    return QueryError(shown.render(), in_place="nothing was published; every destination is as it was")


def spark_message(error: Exception) -> str:
    """What Spark says, without plans and traces."""
    get_message = getattr(error, "getMessage", None)
    text = str((get_message() if get_message else None) or error)
    causes = [m for m in _TASK_CAUSE.finditer(str(error)) if not m[1].startswith(_WRAPPERS)]
    if causes and any(wrapper in text for wrapper in _WRAPPERS):
        text = causes[-1][0]
    elif "Caused by:" in str(error) and not text.startswith("["):
        text = str(error).rsplit("Caused by:", 1)[1].strip().splitlines()[0]
    text = _NOISE.sub("", text).strip()
    return text or type(error).__name__


def _place(error: Exception, queries: list[Sql]) -> Place | None:
    for context in _contexts(error):
        start, stop, fragment = context
        for query in queries:
            if fragment and query.text[start : stop + 1] == fragment:
                return query.place_of(start)
    position = _PARSE_POSITION.search(str(error))
    if position and queries:
        lines = queries[0].text.split("\n")
        line, column = int(position[1]), int(position[2])
        if line <= len(lines):
            return queries[0].place_of(sum(len(each) + 1 for each in lines[: line - 1]) + column)
    return None


def _contexts(error: Exception) -> list[tuple[int, int, str]]:
    get_context = getattr(error, "getQueryContext", None)
    found = []
    for context in (get_context() if get_context else None) or []:
        try:
            found.append((context.startIndex(), context.stopIndex(), context.fragment()))
        except Exception:  # a context of the DataFrame API has no SQL text and raises what its server raises
            continue
    return found
