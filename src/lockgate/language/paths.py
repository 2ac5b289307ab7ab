"""Whether a variable's value took a path where its author did not send it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from lockgate.language.variables import Span

# A leading slash, a drive or a scheme: all of them leave the project folder.
_ABSOLUTE = re.compile(r"\s*(?:[/\\]|[A-Za-z][A-Za-z0-9+.-]*:(?://)?)")
# Braces and commas too: Spark expands `{../a,b}` in the path of a source.
_COMPONENT = re.compile(r"[^/\\{},]+")


def escape(spans: Sequence[Span]) -> str | None:
    """How a value from outside made the path absolute or climb, or None if it did neither.

    A value is blamed also when it only touches what it completes: an empty one in front of the author's `/` makes the
    path absolute just as well.

    >>> escape([Span("out/"), Span("../x", "${d}, given on the command line,")])
    "${d}, given on the command line, puts '..' into the path"
    """
    path = "".join(span.text for span in spans)
    ranges: list[tuple[int, int, str]] = []
    position = 0
    for span in spans:
        if span.given_by:
            ranges.append((position, position + len(span.text), span.given_by))
        position += len(span.text)
    if not ranges:
        return None
    absolute = _ABSOLUTE.match(path)
    if absolute:
        for start, _end, giver in ranges:
            if start < absolute.end():
                return f"{giver} makes the path absolute"
    for component in _COMPONENT.finditer(path):
        if component[0].strip() == "..":
            for start, end, giver in ranges:
                if start <= component.end() and end >= component.start():
                    return f"{giver} puts '..' into the path"
    return None
