"""What is wrong with a POSTGRES source whose parameters are each of the right kind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from lockgate.config import Connection
from lockgate.language.diagnostics import Diagnostic, did_you_mean
from lockgate.language.statements import SourceStep
from lockgate.postgres.address import address_problem, is_postgres

_LEAST_BATCH = 1024


def postgres_problems(source: SourceStep, connections: Mapping[str, Connection]) -> Iterator[Diagnostic]:
    """Complain about its connection, and about parameters that exclude or need each other."""
    yield from _connection_problems(source, connections)
    params = source.params
    if ("table" in params) == ("query" in params):
        code = "bad-parameter" if "table" in params else "missing-parameter"
        place = source.param_places.get("query", source.params_place)
        yield Diagnostic(place, code, "POSTGRES needs either the parameter 'table' or the parameter 'query'")
    for name in ("table", "query", "partition_column"):
        if name in params and not params[name].strip():
            yield _bad(source, name, "must not be empty")
    for name in ("columns", "as_text"):
        names = params.get(name, ["-"])
        if not names or not all(isinstance(each, str) and each for each in names) or len({*names}) < len(names):
            yield _bad(source, name, "must be a list of the names of columns, none twice")
    if params.get("partitions", 1) < 1:
        yield _bad(source, "partitions", "must be 1 or more")
    if params.get("batch_bytes", _LEAST_BATCH) < _LEAST_BATCH:
        yield _bad(source, "batch_bytes", f"must be {_LEAST_BATCH} or more")
    if params.get("partitions", 1) > 1 and "query" in params and "partition_column" not in params:
        hint = 'name a "partition_column" of the query'
        place = source.param_places["partitions"]
        yield Diagnostic(place, "bad-parameter", "a query can only be divided by a column", hint)


def _connection_problems(source: SourceStep, connections: Mapping[str, Connection]) -> Iterator[Diagnostic]:
    name = source.connection or source.params["connection"]
    place = source.type_place if source.connection else source.param_places.get("connection", source.params_place)
    connection = connections.get(name)
    if connection is None:
        known = ", ".join(sorted(connections)) or "none"
        hint = did_you_mean(name, connections) or f"connections of the profile: {known}"
        yield Diagnostic(place, "unknown-connection", f"the profile has no connection {name}", hint)
        return
    if not is_postgres(connection):
        message = f"connection {name} has the type {connection.type.upper()}, and a POSTGRES source needs POSTGRES"
        yield Diagnostic(place, "unknown-type", message)
        return
    if problem := address_problem(connection):
        yield Diagnostic(place, "bad-connection", f"connection {name} {problem.message}", problem.hint)


def _bad(source: SourceStep, name: str, what: str) -> Diagnostic:
    place = source.param_places.get(name, source.params_place)
    return Diagnostic(place, "bad-parameter", f"parameter {name!r} {what}")
