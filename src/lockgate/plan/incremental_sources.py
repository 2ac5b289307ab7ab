"""What is wrong with the cursor and the lookback of a source."""

from __future__ import annotations

from collections.abc import Iterator

from lockgate.language.diagnostics import Diagnostic
from lockgate.language.statements import SourceStep
from lockgate.sources.lookback import FILE_CURSOR, parse_lookback


def incremental_problems(source: SourceStep) -> Iterator[Diagnostic]:
    """Complain about a lookback that says nothing, or that has no cursor to look back from."""
    params = source.params
    if "cursor" in params and not params["cursor"].strip():
        place = source.param_places.get("cursor", source.params_place)
        yield Diagnostic(place, "bad-parameter", "parameter 'cursor' must be the name of a column")
    if params.get("cursor") == FILE_CURSOR and "path" not in params:
        place = source.param_places.get("cursor", source.params_place)
        yield Diagnostic(place, "bad-parameter", f"the cursor {FILE_CURSOR} is for sources that read files")
    if params.get("cursor") == FILE_CURSOR and any("://" in p or "{" in p for p in _paths(source)):
        place = source.param_places.get("path", source.params_place)
        message = f"with the cursor {FILE_CURSOR} a path must be local, and without the pattern {{a,b}}"
        yield Diagnostic(place, "bad-parameter", message, "write a list of paths instead")
    if "lookback" not in params:
        return
    place = source.param_places.get("lookback", source.params_place)
    if "cursor" not in params:
        yield Diagnostic(place, "bad-parameter", "parameter 'lookback' needs the parameter 'cursor'")
    elif params["cursor"] == FILE_CURSOR:
        yield Diagnostic(
            place, "bad-parameter", f"the cursor {FILE_CURSOR} needs no lookback: a new name is a new file"
        )
    elif parse_lookback(params["lookback"]) is None:
        hint = 'write "2 days", "90 minutes", or a number where the cursor is a number'
        yield Diagnostic(place, "bad-parameter", "parameter 'lookback' is not a length of time or a number", hint)


def _paths(source: SourceStep) -> list[str]:
    path = source.params.get("path", [])
    return [path] if isinstance(path, str) else [str(p) for p in path]
