"""Destinations by TYPE: ours, and those that other packages add by the entry point group `lockgate.destinations`."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from typing import cast

from lockgate.destinations.protocol import Destination

GROUP = "lockgate.destinations"

# TYPE -> module and class; imported when first asked for, so that `check` stays light.
BUILT_IN = {
    "CSV": "lockgate.destinations.by_place:CsvByPlace",
    "DELTA": "lockgate.destinations.delta:DeltaDestination",
    "JSON": "lockgate.destinations.by_place:JsonByPlace",
    "PARQUET": "lockgate.destinations.by_place:ParquetByPlace",
    "POSTGRES": "lockgate.destinations.postgres:PostgresDestination",
    "S3": "lockgate.destinations.s3:S3Destination",
}


@cache
def _added() -> dict[str, str]:
    return {point.name.upper(): point.value for point in entry_points(group=GROUP)}


def types() -> tuple[str, ...]:
    """Every TYPE an EXPORT may name."""
    return tuple(sorted({*BUILT_IN, *_added()}))


@cache
def find(type_name: str) -> Destination | None:
    """The destination of a TYPE in any case, or None if there is none.

    >>> find("csv").type
    'CSV'
    """
    name = type_name.upper()
    target = BUILT_IN.get(name) or _added().get(name)
    if target is None:
        return None
    module, _, attribute = target.partition(":")
    return cast(Destination, getattr(import_module(module), attribute)())
