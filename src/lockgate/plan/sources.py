"""Pass: every SOURCE has a type that is known and parameters that the type takes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from lockgate.config import Connection
from lockgate.language.diagnostics import Diagnostic, did_you_mean
from lockgate.language.statements import SourceStep
from lockgate.plan.draft import Draft
from lockgate.plan.source_types import SOURCE_TYPES, Parameter
from lockgate.tables.places import name_problem

_KIND_NAMES: Mapping[type, str] = {
    str: "text",
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    list: "a list",
    dict: "an object",
}


def check_sources(draft: Draft) -> Draft:
    """Complain about types, connections, parameters and paths of sources."""
    found: list[Diagnostic] = []
    for statement in draft.statements:
        if isinstance(statement, SourceStep):
            found += _problems(statement, draft.profile.connections)
    return draft.complaining(found)


def _problems(source: SourceStep, connections: Mapping[str, Connection]) -> Iterator[Diagnostic]:
    if source.path_escape:
        hint = "write the path in the pipeline itself; a variable's value stays inside the project"
        yield Diagnostic(source.param_places.get("path", source.params_place), "path-escape", source.path_escape, hint)
    if source.connection is not None and source.connection not in connections:
        known = ", ".join(sorted(connections)) or "none"
        hint = did_you_mean(source.connection, connections) or f"connections of the profile: {known}"
        message = f"the profile has no connection {source.connection}"
        yield Diagnostic(source.type_place, "unknown-connection", message, hint)
        return
    if source.connection is not None:
        kind = connections[source.connection].type.upper()
        message = f"connection {source.connection} has the type {kind}, which this version cannot read from"
        yield Diagnostic(source.type_place, "unknown-type", message, "files are read with TYPE CSV, JSON or PARQUET")
        return
    type_name = str(source.connector_type).upper()
    parameters = SOURCE_TYPES.get(type_name)
    if parameters is None:
        yield _unknown_type(source, type_name)
        return
    yield from _parameter_problems(source, type_name, parameters)


def _unknown_type(source: SourceStep, type_name: str) -> Diagnostic:
    types = ", ".join(SOURCE_TYPES)
    near = did_you_mean(type_name, SOURCE_TYPES)
    hint = f"{near} ({types})" if near else f"there are {types}"
    return Diagnostic(source.type_place, "unknown-type", f"there is no source type {type_name}", hint)


def _parameter_problems(source: SourceStep, type_name: str, known: Mapping[str, Parameter]) -> Iterator[Diagnostic]:
    for name, value in source.params.items():
        place = source.param_places.get(name, source.params_place)
        if name not in known:
            hint = did_you_mean(name, known) or f"it takes {', '.join(known)}"
            yield Diagnostic(place, "unknown-parameter", f"{type_name} has no parameter {name!r}", hint)
        elif not _fits(value, known[name].kinds):
            kinds = " or ".join(_KIND_NAMES.get(kind, kind.__name__) for kind in known[name].kinds)
            yield Diagnostic(place, "bad-parameter", f"parameter {name!r} must be {kinds}")
        elif name == "path" and not _is_path(value):
            yield Diagnostic(place, "bad-parameter", "parameter 'path' must be a path or a list of paths, none empty")
    if type_name == "DELTA":
        yield from _delta_problems(source)
    for name, parameter in known.items():
        if parameter.required and name not in source.params:
            message = f"{type_name} needs the parameter {name!r}"
            yield Diagnostic(source.params_place, "missing-parameter", message)


def _delta_problems(source: SourceStep) -> Iterator[Diagnostic]:
    table, version = source.params.get("table"), source.params.get("version")
    problem = name_problem(table) if isinstance(table, str) else None
    if problem:
        place = source.param_places.get("table", source.params_place)
        yield Diagnostic(place, "bad-parameter", problem, 'name it like "sales.daily"')
    if isinstance(version, int) and version < 0:
        place = source.param_places.get("version", source.params_place)
        yield Diagnostic(place, "bad-parameter", "parameter 'version' must be 0 or more")
    yield from _changes_problems(source)
    if "version" in source.params and "timestamp" in source.params:
        place = source.param_places.get("timestamp", source.params_place)
        yield Diagnostic(place, "bad-parameter", "give 'version' or 'timestamp', not both")


def _changes_problems(source: SourceStep) -> Iterator[Diagnostic]:
    """Of `changes_from` and what goes with it."""
    given = [name for name in ("changes_from", "changes_to", "changes_key") if name in source.params]
    if not given:
        return
    place = source.param_places.get(given[0], source.params_place)
    first, last = source.params.get("changes_from"), source.params.get("changes_to")
    key = source.params.get("changes_key")
    if first is None:
        yield Diagnostic(place, "missing-parameter", f"parameter {given[0]!r} needs 'changes_from'")
    for name in ("version", "timestamp"):
        if name in source.params:
            yield Diagnostic(place, "bad-parameter", f"give 'changes_from' or {name!r}, not both")
    if isinstance(first, int) and (first < 0 or (isinstance(last, int) and last < first)):
        yield Diagnostic(place, "bad-parameter", "'changes_from' must be 0 or more, and not after 'changes_to'")
    if isinstance(key, list) and not (key and all(isinstance(each, str) and each for each in key)):
        place = source.param_places.get("changes_key", place)
        yield Diagnostic(place, "bad-parameter", "parameter 'changes_key' must be a column or a list of columns")


def _fits(value: object, kinds: tuple[type, ...]) -> bool:
    if isinstance(value, bool):  # a bool is an int to Python
        return bool in kinds
    return isinstance(value, kinds)


def _is_path(value: object) -> bool:
    paths = value if isinstance(value, list) else [value]
    return bool(paths) and all(isinstance(path, str) and path.strip() for path in paths)
