"""Pass: every SOURCE has a type that is known and parameters that the type takes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from lockgate.config import Connection
from lockgate.language.diagnostics import Diagnostic, did_you_mean
from lockgate.language.statements import SourceStep
from lockgate.plan.draft import Draft
from lockgate.plan.incremental_sources import incremental_problems
from lockgate.plan.postgres_sources import postgres_problems
from lockgate.plan.source_types import CONNECTION_TYPES, SOURCE_TYPES, Parameter, format_of_source
from lockgate.storage.s3_address import is_s3, parse_address
from lockgate.storage.s3_settings import connection_problem
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
    type_name = str(source.connector_type).upper()
    parameters = SOURCE_TYPES.get(type_name)
    if source.connection is not None:
        type_name = connections[source.connection].type.upper()
        if type_name not in CONNECTION_TYPES:
            message = f"connection {source.connection} has the type {type_name}, which this version cannot read from"
            hint = "files are read with TYPE CSV, JSON or PARQUET"
            yield Diagnostic(source.type_place, "unknown-type", message, hint)
            return
        parameters = {name: known for name, known in SOURCE_TYPES[type_name].items() if name != "connection"}
    if parameters is None:
        yield _unknown_type(source, type_name)
        return
    if type_name == "S3":
        form = format_of_source(source.params)
        if form is None:
            message = "TYPE S3 needs the parameter 'format': csv, json or parquet"
            yield Diagnostic(source.param_places.get("format", source.params_place), "missing-parameter", message)
            return
        parameters = {**SOURCE_TYPES[form], **parameters}
    yield from _s3_problems(source, type_name, connections)
    found = list(_parameter_problems(source, type_name, parameters))
    yield from found
    if not found:  # what belongs together is judged where each by itself is right
        yield from incremental_problems(source)
        if type_name == "POSTGRES":
            yield from postgres_problems(source, connections)


def _s3_problems(source: SourceStep, type_name: str, connections: Mapping[str, Connection]) -> Iterator[Diagnostic]:
    """What is wrong with addresses of S3 and with how they are reached."""
    given = source.params.get("path")
    paths = [p for p in (given if isinstance(given, list) else [given]) if isinstance(p, str)]
    place = source.param_places.get("path", source.params_place)
    on_s3 = [path for path in paths if is_s3(path)]
    if len(on_s3) < len(paths) and (on_s3 or type_name == "S3"):
        yield Diagnostic(place, "bad-parameter", "the paths of one source are all on S3 or all on this machine")
        return
    for path in on_s3:
        try:
            parse_address(path)
        except ValueError as error:
            yield Diagnostic(place, "bad-parameter", str(error), "s3:// addresses look like s3://bucket/key")
    name = source.params.get("connection")
    if on_s3 and (name is None or isinstance(name, str)) and (problem := connection_problem(connections, name)):
        yield Diagnostic(source.param_places.get("connection", place), "bad-connection", problem)


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
