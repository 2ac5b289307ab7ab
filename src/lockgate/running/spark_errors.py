"""Spark's exceptions as ours: its message, and the place in the pipeline that it speaks of."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from lockgate.errors import QueryError
from lockgate.language.diagnostics import Diagnostic, Place
from lockgate.language.statements import Sql

_PARSE_POSITION = re.compile(r"\(line (\d+), pos (\d+)\)")
_PLAN_AND_TRACE = re.compile(r"\n?(== SQL.*|JVM stacktrace:.*|\s+at [\w.$]+\(.*)", re.DOTALL)
_JAVA_CAUSE = re.compile(r"^\s*(?:: |Caused by: )([\w.$]+): (.*)$", re.MULTILINE)
_PYTHON_FRAME = re.compile(r'File "([^"]+)", line (\d+), in (\w+)')


def query_error(error: Exception, step: str, statement: Place, queries: Iterable[Sql]) -> QueryError:
    """The error of a statement. `queries` are the SQL texts it may come from: its own, then those it reads."""
    message = spark_message(error)
    place = _place(error, list(queries)) or statement
    shown = Diagnostic(place, "spark", f"Spark refused {step}: {message}")
    full = "No space left on device" in message
    return QueryError(
        shown.render(),
        in_place="nothing was published; every destination is as it was",
        hint="free some space on the disk of that folder, then run again" if full else None,
    )


def speaks_of_sql(error: BaseException) -> bool:
    """Whether Spark says which piece of SQL text it speaks of: then a statement of the pipeline is to blame."""
    return isinstance(error, Exception) and bool(_contexts(error))


def spark_message(error: Exception) -> str:
    """What Spark says, without plans and traces.

    Most exceptions arrive with a message of their own. Some come as the bare Java one: then its first line and those
    of its causes tell the story, such as which file could not be read and why.
    """
    get_message = getattr(error, "getMessage", None)
    text = str(get_message() or "") if get_message else ""
    if not text:
        causes = [cause.strip() for _, cause in _JAVA_CAUSE.findall(str(error)) if cause.strip()]
        text = ": ".join(dict.fromkeys(causes)) or str(error)
    if "Traceback (most recent call last)" in text:
        text = _python_message(text)
    return _PLAN_AND_TRACE.sub("", text).strip() or type(error).__name__


def _python_message(text: str) -> str:
    """The last line of a Python function's traceback, and the last place in it."""
    head, _, trace = text.partition("Traceback (most recent call last):")
    frames = _PYTHON_FRAME.findall(trace)
    last = next((line for line in reversed(trace.splitlines()) if line.strip() and "SQLSTATE" not in line), "")
    where = f" ({frames[-1][0]}, line {frames[-1][1]}, in {frames[-1][2]})" if frames else ""
    return f"{head.strip()} {last.strip()}{where}"


def _place(error: Exception, queries: list[Sql]) -> Place | None:
    for context in _contexts(error):
        start, stop, fragment = context
        for query in queries:
            if fragment and query.text[start : stop + 1] == fragment:
                return replace(query.place_of(start), length=len(fragment.split("\n", 1)[0]))
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
